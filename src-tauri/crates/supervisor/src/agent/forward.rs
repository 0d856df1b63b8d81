//! The forward model: what an act is expected to come to (OS-011 §8.1), and how far from it what came is.
//!
//! Files are predicted exactly and commands by the latest run of the very same one; nothing is
//! predicted that isn't known.

use bodyguard_protocol::{
    ActionType, Actual, ErrorCode, Forecast, OutcomeStatus, StableFields, StateHash, SurpriseSignal, Timestamp,
    TraceId, surprise,
};
use bodyguard_trace::EarlierRun;
use serde_json::{Map, Value};

use super::admission::Admitted;
use super::ended::Ended;
use crate::core::Core;
use crate::session::Session;

/// Acts of the past that a latency is told from.
const EXAMPLES: u32 = 31;

/// What is expected of the state afterwards.
#[derive(Debug, Clone, PartialEq)]
enum After {
    Unchanged,
    As(StateHash),
    Unknown,
}

/// What is expected of an act.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Outlook {
    pub(super) status: OutcomeStatus,
    /// What will be observed, as far as it is told.
    pub(super) observed: Map<String, Value>,
    pub(super) latency_ms: Option<u64>,
    after: After,
}

impl Outlook {
    /// What an admitted act will come to. Where the past can't be read, less is expected.
    pub(super) async fn of(core: &Core, session: &Session, admitted: &Admitted, now: &StateHash) -> Self {
        let action = admitted.action();
        let reader = core.log.reader();
        if action.kind == ActionType::ShellExec {
            let workspace = &session.workspace.name;
            let runs = reader.earlier_runs(workspace, action.kind, &admitted.action_digest, EXAMPLES).await;
            let runs = runs.inspect_err(|error| tracing::warn!(%error, "earlier runs can't be read"));
            return Self::as_before(runs.unwrap_or_default(), now);
        }
        let latency_ms = reader.typical_latency(action.kind, EXAMPLES).await;
        let latency_ms = latency_ms.inspect_err(|error| tracing::warn!(%error, "latencies can't be read"));
        let observed = match action.kind {
            ActionType::FileWrite | ActionType::FileEdit | ActionType::FileDelete => {
                admitted.inspection.prediction.as_object().cloned().unwrap_or_default()
            }
            _ => Map::new(),
        };
        let after = after(action.kind, &action.target);
        Self { status: OutcomeStatus::Success, observed, latency_ms: latency_ms.ok().flatten(), after }
    }

    /// What a command will come to, by its earlier runs, newest first.
    fn as_before(mut runs: Vec<EarlierRun>, now: &StateHash) -> Self {
        runs.retain(|run| !was_cut_off(run.outcome.error.as_ref().map(|error| error.code)));
        let mut took: Vec<u64> = runs.iter().map(|run| run.outcome.latency_ms).collect();
        took.sort_unstable();
        let latency_ms = took.get(took.len() / 2).copied();
        let Some(EarlierRun { state_before, outcome }) = runs.into_iter().next() else {
            return Self {
                status: OutcomeStatus::Success,
                observed: Map::new(),
                latency_ms: None,
                after: After::Unknown,
            };
        };
        let told = |name: &str| Some((name.to_owned(), outcome.observed.as_ref()?.get(name)?.clone()));
        let after = match outcome.state_after {
            Some(state) if state == state_before => After::Unchanged,
            Some(state) if state_before == *now => After::As(state),
            Some(_) | None => After::Unknown,
        };
        let observed = ["exit_code", "signal"].into_iter().filter_map(told).collect();
        Self { status: outcome.status, observed, latency_ms, after }
    }

    /// The state afterwards, where it can be told.
    pub(super) fn state_after(&self, before: &StateHash) -> Option<StateHash> {
        match &self.after {
            After::Unchanged => Some(before.clone()),
            After::As(state) => Some(state.clone()),
            After::Unknown => None,
        }
    }

    /// The signal of an act that came out otherwise.
    pub(super) fn signal(self, of: What<'_>) -> Option<SurpriseSignal> {
        let What { before, after, ended, trace_id, edge_id, kind, now } = of;
        let error = ended.error.as_ref().map(|error| error.code);
        if was_cut_off(error) {
            return None;
        }
        // Whom a person gives the focus meanwhile is no consequence of the act.
        let before = before.map(|before| match after {
            Some(after) => StableFields { focused_window_title: after.focused_window_title.clone(), ..before.clone() },
            None => before.clone(),
        });
        let hash = |fields: Option<&StableFields>| fields.and_then(|fields| fields.hash().ok());
        let (state_before, actual_state) = (hash(before.as_ref()), hash(after));
        let predicted = state_before.as_ref().and_then(|before| self.state_after(before));
        let forecast = Forecast {
            status: self.status,
            state_before,
            state_after: predicted.clone(),
            observed: self.observed,
            latency_ms: self.latency_ms,
        };
        let actual = Actual {
            status: ended.status,
            error,
            state_after: actual_state.clone(),
            observed: ended.observed.clone(),
            latency_ms: ended.latency_ms,
        };
        let found = surprise(&forecast, &actual)?;
        Some(found.into_signal(trace_id.clone(), edge_id, kind, (predicted, actual_state), now))
    }
}

/// What came of which act.
pub(super) struct What<'a> {
    /// The state just before it ran.
    pub(super) before: Option<&'a StableFields>,
    pub(super) after: Option<&'a StableFields>,
    pub(super) ended: &'a Ended,
    pub(super) trace_id: &'a TraceId,
    pub(super) edge_id: u64,
    pub(super) kind: ActionType,
    pub(super) now: Timestamp,
}

/// The stable fields don't cover the content of files, so only what reaches a repository's own files
/// changes them. What a program or a click does can't be told.
fn after(kind: ActionType, target: &str) -> After {
    let in_repository = target.split('/').any(|part| part == ".git");
    match kind {
        ActionType::FileRead | ActionType::ScreenCapture => After::Unchanged,
        ActionType::FileWrite | ActionType::FileEdit | ActionType::FileDelete if !in_repository => After::Unchanged,
        ActionType::FileWrite | ActionType::FileEdit | ActionType::FileDelete => After::Unknown,
        ActionType::ShellExec
        | ActionType::KeyboardInput
        | ActionType::MouseClick
        | ActionType::MouseDrag
        | ActionType::ProcessSpawn
        | ActionType::ProcessSignal => After::Unknown,
    }
}

/// What was ended from outside says nothing about the act.
fn was_cut_off(error: Option<ErrorCode>) -> bool {
    matches!(
        error,
        Some(
            ErrorCode::Cancelled
                | ErrorCode::Interrupted
                | ErrorCode::BodyLost
                | ErrorCode::PersonActive
                | ErrorCode::Stopped
        )
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use bodyguard_protocol::Digest;
    use bodyguard_trace::OutcomeRecord;
    use serde_json::json;

    fn state(text: &str) -> StateHash {
        Digest::of(text.as_bytes())
    }

    fn run(before: &str, after: &str, exit_code: i32, latency_ms: u64) -> EarlierRun {
        let status = if exit_code == 0 { OutcomeStatus::Success } else { OutcomeStatus::Failure };
        let observed = Some(json!({ "exit_code": exit_code, "stdout": "now" }));
        let state_after = Some(state(after));
        let outcome =
            OutcomeRecord { status, state_after, latency_ms, observed, error: None, picture: None, surprise: None };
        EarlierRun { state_before: state(before), outcome }
    }

    #[test]
    fn r51_a_command_is_expected_to_end_as_it_ended_last() {
        let new = Outlook::as_before(Vec::new(), &state("a"));
        assert_eq!((new.status, &new.after, new.latency_ms), (OutcomeStatus::Success, &After::Unknown, None));
        let failed =
            Outlook::as_before(vec![run("a", "a", 1, 9), run("a", "a", 0, 1), run("a", "b", 0, 2)], &state("c"));
        assert_eq!((failed.status, failed.latency_ms), (OutcomeStatus::Failure, Some(2)));
        assert_eq!(Value::Object(failed.observed.clone()), json!({ "exit_code": 1 }), "what it wrote isn't predicted");
        assert_eq!(failed.state_after(&state("c")), Some(state("c")));
    }

    #[test]
    fn r51_the_state_after_a_command_is_told_only_from_the_same_state() {
        let changed = || vec![run("a", "b", 0, 1)];
        assert_eq!(Outlook::as_before(changed(), &state("a")).state_after(&state("a")), Some(state("b")));
        assert_eq!(Outlook::as_before(changed(), &state("c")).state_after(&state("c")), None);
    }

    #[test]
    fn r53_what_a_person_cut_off_or_focused_is_no_surprise() {
        let fields = |title: &str| StableFields {
            cwd: "workspace:/".into(),
            focused_window_title: title.into(),
            git_head: "none".into(),
            key_process_names: Vec::new(),
            env_fingerprint: Digest::of(b""),
        };
        let (before, after) = (fields("Mail"), fields("Bank"));
        let trace_id: TraceId = "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap();
        let signal = |kind: ActionType, error: Option<ErrorCode>, after: &StableFields| {
            let status = error.map_or(OutcomeStatus::Success, |_| OutcomeStatus::Failure);
            let error = error.map(|code| bodyguard_protocol::Fault::new(code, "so").into());
            let ended = Ended { status, observed: None, error, image: None, latency_ms: 1 };
            let outlook = Outlook {
                status: OutcomeStatus::Success,
                observed: Map::new(),
                latency_ms: None,
                after: super::after(kind, "/ws/a"),
            };
            let (before, after, ended) = (Some(&before), Some(after), &ended);
            let (trace_id, edge_id, now) = (&trace_id, 1, Timestamp::from_millis(0));
            outlook.signal(What { before, after, ended, trace_id, edge_id, kind, now })
        };
        assert_eq!(signal(ActionType::FileEdit, None, &after), None);
        assert_eq!(signal(ActionType::FileEdit, Some(ErrorCode::Cancelled), &after), None);
        let committed = StableFields { git_head: "sha1:00".into(), ..after.clone() };
        let found = signal(ActionType::FileEdit, None, &committed).unwrap();
        assert_eq!(found.actual_state_hash, committed.hash().ok());
        assert_ne!(found.predicted_state_hash, found.actual_state_hash);
        assert_eq!(signal(ActionType::MouseClick, None, &committed), None);
        assert!(signal(ActionType::FileEdit, Some(ErrorCode::StateChanged), &after).is_some());
    }
}
