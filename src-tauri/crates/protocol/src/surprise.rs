//! Surprise: what came of an act against what was predicted (OS-011 §8).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    ActionType, BODY_SUBTYPE, ErrorCode, OutcomeStatus, StateHash, Timestamp, TraceId, canonical_bytes, escape_line,
};

/// The CloudEvents type of a signal that leaves.
pub const SURPRISE_EVENT: &str = "org.opensentience.pulse.surprise_signal.v1";
/// The version of PULSE that defines the token.
pub const PULSE_VERSION: &str = "0.1.1";

const STATUS: f64 = 1.0;
const PARTIAL: f64 = 0.5;
const STATE: f64 = 0.8;
const OBSERVED: f64 = 0.6;
const LATENCY: f64 = 0.3;
/// A latency is far from the usual one beyond this factor and this many milliseconds.
const FAR_FACTOR: u64 = 10;
const FAR_MS: u64 = 5_000;

/// Which token it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SurpriseToken {
    /// The sixth canonical token of PULSE.
    SurpriseSignal,
}

/// The version of the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SurpriseVersion {
    /// OS-011 §8.2.
    #[serde(rename = "0.1")]
    V0_1,
}

/// In what an act came out otherwise (OS-011 §8.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SurpriseKind {
    /// Another page than predicted; other bodies' affair.
    UnexpectedNavigation,
    /// A change was predicted and nothing changed.
    UnexpectedUnchanged,
    /// What is there afterwards isn't what was predicted.
    UnexpectedStructure,
    /// An error where success was predicted.
    UnexpectedError,
    /// The system refused what was expected to be permitted.
    UnexpectedPermission,
    /// It took far longer or shorter than usual.
    UnexpectedLatency,
    /// Anything else; `evidence.reason` says what.
    Other,
}

/// An act that came out otherwise than predicted (OS-011 §8.2, PULSE 0.1.1).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SurpriseSignal {
    /// Always `SurpriseSignal`.
    pub token: SurpriseToken,
    /// Always `0.1`.
    pub version: SurpriseVersion,
    /// The trace that records the act.
    pub trace_id: TraceId,
    /// Its edge.
    #[schemars(range(min = 1))]
    pub edge_id: u64,
    /// Always `os`.
    pub body_subtype: String,
    /// What kind of action.
    pub action_type: ActionType,
    /// The state that was predicted; null where none could be told, as for a new command.
    pub predicted_state_hash: Option<StateHash>,
    /// The state that came; null where it couldn't be read.
    pub actual_state_hash: Option<StateHash>,
    /// From 0, as predicted, to 1; by the metric of the capability contract.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub surprise_magnitude: f64,
    /// In what.
    pub surprise_kind: SurpriseKind,
    /// What was predicted and what came, side by side.
    pub evidence: Map<String, Value>,
    /// When the act had ended.
    pub timestamp: Timestamp,
}

impl SurpriseSignal {
    /// The signal as a CloudEvent (JSON format, v1.0). Equal signals have equal ids, so that one that is
    /// delivered twice is known.
    pub fn to_cloud_event(&self) -> Value {
        json!({
            "specversion": "1.0",
            "id": format!("{}/{}", self.trace_id, self.edge_id),
            "source": "urn:bodyguard:body.os",
            "type": SURPRISE_EVENT,
            "subject": self.trace_id,
            "time": self.timestamp,
            "datacontenttype": "application/json",
            "data": self,
        })
    }
}

/// What an act is expected to come to. What isn't predicted is no surprise.
#[derive(Debug, Clone, PartialEq)]
pub struct Forecast {
    /// How it ends.
    pub status: OutcomeStatus,
    /// The state before.
    pub state_before: Option<StateHash>,
    /// The state afterwards, where it can be told.
    pub state_after: Option<StateHash>,
    /// Fields of what is observed, each predicted exactly.
    pub observed: Map<String, Value>,
    /// Milliseconds that such acts took before, the median.
    pub latency_ms: Option<u64>,
}

/// What an act came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Actual {
    /// How it ended.
    pub status: OutcomeStatus,
    /// Why not, if not.
    pub error: Option<ErrorCode>,
    /// The state afterwards, if it could be read.
    pub state_after: Option<StateHash>,
    /// What was observed.
    pub observed: Option<Value>,
    /// Milliseconds it took.
    pub latency_ms: u64,
}

/// Where a forecast and what came part.
#[derive(Debug, Clone, PartialEq)]
pub struct Surprise {
    /// In [0, 1].
    pub magnitude: f64,
    /// In what.
    pub kind: SurpriseKind,
    /// What was predicted and what came.
    pub evidence: Map<String, Value>,
}

impl Surprise {
    /// The signal of an edge.
    pub fn into_signal(
        self,
        trace_id: TraceId,
        edge_id: u64,
        action_type: ActionType,
        (predicted, actual): (Option<StateHash>, Option<StateHash>),
        timestamp: Timestamp,
    ) -> SurpriseSignal {
        SurpriseSignal {
            token: SurpriseToken::SurpriseSignal,
            version: SurpriseVersion::V0_1,
            trace_id,
            edge_id,
            body_subtype: BODY_SUBTYPE.to_owned(),
            action_type,
            predicted_state_hash: predicted,
            actual_state_hash: actual,
            surprise_magnitude: self.magnitude,
            surprise_kind: self.kind,
            evidence: self.evidence,
            timestamp,
        }
    }
}

/// The metric in words, for the contract's metadata (OS-011 §8.2).
pub fn surprise_metric() -> Value {
    json!({
        "id": "bodyguard.largest_part.v1",
        "range": [0, 1],
        "definition": "the largest of the parts that were predicted and came out otherwise; 0 where there is none, \
            and then no signal",
        "parts": {
            "outcome_status": STATUS,
            "outcome_status_partial": PARTIAL,
            "state_hash": STATE,
            "observed_outcome": format!("{OBSERVED} x the share of the predicted fields that differ"),
            "latency": LATENCY,
        },
        "latency_differs_beyond": { "factor": FAR_FACTOR, "milliseconds": FAR_MS },
    })
}

/// Compares what was predicted with what came; nothing where it came as predicted.
pub fn surprise(forecast: &Forecast, actual: &Actual) -> Option<Surprise> {
    let parts =
        [status(forecast, actual), state(forecast, actual), observed(forecast, actual), latency(forecast, actual)];
    let mut evidence = Map::new();
    let mut largest: Option<(f64, SurpriseKind)> = None;
    for part in parts.into_iter().flatten() {
        evidence.insert(format!("predicted_{}", part.name), part.predicted);
        evidence.insert(format!("actual_{}", part.name), part.actual);
        if let Some(reason) = part.reason {
            evidence.insert("reason".to_owned(), reason.into());
        }
        // The parts come in the order of what explains most.
        if largest.is_none_or(|(magnitude, _)| part.magnitude > magnitude) {
            largest = Some((part.magnitude, part.kind));
        }
    }
    let (magnitude, kind) = largest?;
    if kind != SurpriseKind::Other {
        evidence.remove("reason");
    }
    Some(Surprise { magnitude, kind, evidence })
}

/// One thing that came out otherwise.
struct Part {
    name: &'static str,
    magnitude: f64,
    kind: SurpriseKind,
    predicted: Value,
    actual: Value,
    reason: Option<String>,
}

fn status(forecast: &Forecast, actual: &Actual) -> Option<Part> {
    if forecast.status == actual.status {
        return None;
    }
    let partial = [forecast.status, actual.status].contains(&OutcomeStatus::Partial);
    let (kind, reason) = match (actual.status, actual.error) {
        (OutcomeStatus::Success, _) => {
            (SurpriseKind::Other, Some("it succeeded where it had not the last time".to_owned()))
        }
        (_, Some(ErrorCode::PermissionDenied)) => (SurpriseKind::UnexpectedPermission, None),
        (OutcomeStatus::Blocked, _) => (SurpriseKind::UnexpectedPermission, None),
        (OutcomeStatus::Timeout, _) => (SurpriseKind::UnexpectedLatency, None),
        (OutcomeStatus::Failure | OutcomeStatus::Partial, _) => (SurpriseKind::UnexpectedError, None),
    };
    let came = json!({ "status": actual.status, "error": actual.error, "exit_code": exit_code(actual) });
    Some(Part {
        name: "outcome",
        magnitude: if partial { PARTIAL } else { STATUS },
        kind,
        predicted: json!({ "status": forecast.status }),
        actual: came,
        reason,
    })
}

fn exit_code(actual: &Actual) -> Value {
    actual.observed.as_ref().and_then(|observed| observed.get("exit_code")).cloned().unwrap_or_default()
}

fn state(forecast: &Forecast, actual: &Actual) -> Option<Part> {
    let (predicted, came) = (forecast.state_after.as_ref()?, actual.state_after.as_ref()?);
    if predicted == came {
        return None;
    }
    let unchanged = forecast.state_before.as_ref() == Some(came);
    Some(Part {
        name: "state_hash",
        magnitude: STATE,
        kind: if unchanged { SurpriseKind::UnexpectedUnchanged } else { SurpriseKind::UnexpectedStructure },
        predicted: json!(predicted),
        actual: json!(came),
        reason: None,
    })
}

/// Only fields that were observed at all: what failed observes nothing, and its status says so.
fn observed(forecast: &Forecast, actual: &Actual) -> Option<Part> {
    let came = actual.observed.as_ref()?.as_object()?;
    let differing: Vec<_> = forecast
        .observed
        .iter()
        .filter_map(|(name, predicted)| Some((name, predicted, came.get(name)?)))
        .filter(|(_, predicted, came)| !same(predicted, came))
        .collect();
    if differing.is_empty() {
        return None;
    }
    let side = |pick: fn(&(&String, &Value, &Value)) -> Value| {
        let fields = differing.iter().map(|entry| (escape_line(entry.0), pick(entry)));
        Value::Object(fields.collect())
    };
    let share = differing.len() as f64 / forecast.observed.len() as f64;
    Some(Part {
        name: "observed_outcome",
        magnitude: OBSERVED * share,
        kind: SurpriseKind::UnexpectedStructure,
        predicted: side(|(_, predicted, _)| (*predicted).clone()),
        actual: side(|(_, _, came)| (*came).clone()),
        reason: None,
    })
}

/// Whether two values are one in canonical form.
fn same(a: &Value, b: &Value) -> bool {
    a == b || matches!((canonical_bytes(a), canonical_bytes(b)), (Ok(a), Ok(b)) if a == b)
}

fn latency(forecast: &Forecast, actual: &Actual) -> Option<Part> {
    let (usual, took) = (forecast.latency_ms?, actual.latency_ms);
    let (less, more) = (usual.min(took), usual.max(took));
    if more - less <= FAR_MS || more <= less.saturating_mul(FAR_FACTOR) {
        return None;
    }
    Some(Part {
        name: "latency_ms",
        magnitude: LATENCY,
        kind: SurpriseKind::UnexpectedLatency,
        predicted: json!(usual),
        actual: json!(took),
        reason: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Digest;
    use proptest::prelude::*;

    const HASHES: [&str; 3] = ["a", "b", "c"];

    fn hash(text: &str) -> StateHash {
        serde_json::from_value(json!(Digest::of(text.as_bytes()))).unwrap()
    }

    fn edit() -> (Forecast, Actual) {
        let fields = json!({ "after_sha256": "x", "bytes": 3 });
        let forecast = Forecast {
            status: OutcomeStatus::Success,
            state_before: Some(hash("a")),
            state_after: Some(hash("a")),
            observed: fields.as_object().unwrap().clone(),
            latency_ms: Some(20),
        };
        let actual = Actual {
            status: OutcomeStatus::Success,
            error: None,
            state_after: Some(hash("a")),
            observed: Some(json!({ "after_sha256": "x", "bytes": 3, "path": "/ws/a" })),
            latency_ms: 900,
        };
        (forecast, actual)
    }

    fn kind_of(change: impl FnOnce(&mut Forecast, &mut Actual)) -> Option<(SurpriseKind, f64)> {
        let (mut forecast, mut actual) = edit();
        change(&mut forecast, &mut actual);
        surprise(&forecast, &actual).map(|found| (found.kind, found.magnitude))
    }

    #[test]
    fn r55_each_kind_says_in_what() {
        use SurpriseKind::*;
        assert_eq!(kind_of(|_, _| {}), None);
        assert_eq!(kind_of(|_, a| a.status = OutcomeStatus::Failure), Some((UnexpectedError, 1.0)));
        let denied = |_: &mut Forecast, a: &mut Actual| {
            (a.status, a.error) = (OutcomeStatus::Failure, Some(ErrorCode::PermissionDenied));
        };
        assert_eq!(kind_of(denied), Some((UnexpectedPermission, 1.0)));
        assert_eq!(kind_of(|_, a| a.status = OutcomeStatus::Timeout), Some((UnexpectedLatency, 1.0)));
        assert_eq!(kind_of(|_, a| a.state_after = Some(hash("b"))), Some((UnexpectedStructure, 0.8)));
        assert_eq!(kind_of(|f, _| f.state_after = Some(hash("b"))), Some((UnexpectedUnchanged, 0.8)));
        assert_eq!(kind_of(|_, a| a.latency_ms = 5_021), Some((UnexpectedLatency, 0.3)));
        assert_eq!(kind_of(|_, a| a.latency_ms = 5_020), None);
        assert_eq!(kind_of(|f, a| (f.latency_ms, a.latency_ms) = (Some(1_000), 9_999)), None);
        let other = json!({ "after_sha256": "y", "bytes": 3 });
        assert_eq!(kind_of(|_, a| a.observed = Some(other)), Some((UnexpectedStructure, 0.3)));
    }

    #[test]
    fn r55_what_is_other_says_why_in_its_evidence() {
        let (forecast, actual) = edit();
        let found = surprise(&Forecast { status: OutcomeStatus::Failure, ..forecast }, &actual).unwrap();
        assert_eq!(found.kind, SurpriseKind::Other);
        assert!(found.evidence["reason"].is_string());
    }

    #[test]
    fn r53_a_signal_has_the_twelve_keys_also_where_a_state_is_unknown() {
        let (forecast, actual) = edit();
        let actual = Actual { status: OutcomeStatus::Failure, ..actual };
        let trace = "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap();
        let found = surprise(&forecast, &actual).unwrap();
        let signal = found.into_signal(trace, 12, ActionType::FileEdit, (None, None), Timestamp::from_millis(0));
        let value = serde_json::to_value(&signal).unwrap();
        let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
        keys.sort_unstable();
        let twelve = [
            "action_type",
            "actual_state_hash",
            "body_subtype",
            "edge_id",
            "evidence",
            "predicted_state_hash",
            "surprise_kind",
            "surprise_magnitude",
            "timestamp",
            "token",
            "trace_id",
            "version",
        ];
        assert_eq!(keys, twelve);
        assert_eq!((&value["token"], &value["version"]), (&json!("SurpriseSignal"), &json!("0.1")));
        assert_eq!(serde_json::from_value::<SurpriseSignal>(value).unwrap(), signal);
        let event = signal.to_cloud_event();
        assert_eq!(event["type"], SURPRISE_EVENT);
        assert_eq!(event["data"], serde_json::to_value(&signal).unwrap());
    }

    fn statuses() -> impl Strategy<Value = OutcomeStatus> {
        prop::sample::select(vec![
            OutcomeStatus::Success,
            OutcomeStatus::Partial,
            OutcomeStatus::Failure,
            OutcomeStatus::Blocked,
            OutcomeStatus::Timeout,
        ])
    }

    fn states() -> impl Strategy<Value = Option<StateHash>> {
        prop::option::of(prop::sample::select(HASHES.map(hash).to_vec()))
    }

    fn fields() -> impl Strategy<Value = Map<String, Value>> {
        prop::collection::btree_map("[a-c]", 0..3u8, 0..3)
            .prop_map(|fields| fields.into_iter().map(|(name, value)| (name, json!(value))).collect())
    }

    fn forecasts() -> impl Strategy<Value = Forecast> {
        let latency = prop::option::of(0..100_000u64);
        (statuses(), states(), states(), fields(), latency).prop_map(
            |(status, state_before, state_after, observed, latency_ms)| Forecast {
                status,
                state_before,
                state_after,
                observed,
                latency_ms,
            },
        )
    }

    proptest! {
        #[test]
        fn r54_a_magnitude_is_between_0_and_1_and_never_0_for_a_surprise(
            forecast in forecasts(), status in statuses(), state_after in states(),
            observed in prop::option::of(fields()), latency_ms: u64,
        ) {
            let observed = observed.map(Value::Object);
            let actual = Actual { status, error: None, state_after, observed, latency_ms };
            if let Some(found) = surprise(&forecast, &actual) {
                prop_assert!(found.magnitude > 0.0 && found.magnitude <= 1.0, "{}", found.magnitude);
                prop_assert!(!found.evidence.is_empty());
                prop_assert_eq!(found.kind == SurpriseKind::Other, found.evidence.contains_key("reason"));
            }
        }

        #[test]
        fn r54_what_comes_as_predicted_is_no_surprise(forecast in forecasts()) {
            let Forecast { status, state_after, observed, latency_ms, .. } = forecast.clone();
            let (observed, latency_ms) = (Some(Value::Object(observed)), latency_ms.unwrap_or(7));
            let actual = Actual { status, error: None, state_after, observed, latency_ms };
            prop_assert_eq!(surprise(&forecast, &actual), None);
        }
    }
}
