//! What differs between a recorded state and the one that is there.

use bodyguard_protocol::{Difference, ErrorCode, Fault, StableFields, StateHash, TraceId};
use bodyguard_trace::SeenState;
use serde_json::Value;

use super::result::{Stop, difference};
use crate::core::Core;
use crate::session::Session;

/// Why a state isn't the recorded one.
pub(super) async fn state_stop(
    core: &Core,
    edge: u64,
    when: &str,
    expected: &StateHash,
    actual: &StableFields,
    known_in: &[&TraceId],
) -> Stop {
    let found = match actual.hash() {
        Ok(found) => found,
        Err(fault) => return Stop::at(edge, fault),
    };
    let details = state_differences(core, expected, actual, known_in).await;
    let names = details.iter().map(|one| one.field.as_str()).collect::<Vec<_>>().join(", ");
    let named = if names.is_empty() { String::new() } else { format!(": {names}") };
    let fault = Fault::new(ErrorCode::StateHashMismatch, format!("the state {when} isn't the recorded one{named}"))
        .hint(
            "nothing further was done; bring the workspace to the recorded state, or do the rest as acts of your own",
        );
    Stop::at(edge, fault).between(expected, &found).differing(details)
}

/// The fields behind a hash are known where a look noted them.
async fn state_differences(
    core: &Core,
    expected: &StateHash,
    actual: &StableFields,
    known_in: &[&TraceId],
) -> Vec<Difference> {
    for trace_id in known_in {
        match core.log.reader().seen_state(trace_id, expected).await {
            Ok(Some(seen)) => return field_differences(&seen, actual),
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "a recorded state can't be read"),
        }
    }
    Vec::new()
}

fn field_differences(seen: &SeenState, actual: &StableFields) -> Vec<Difference> {
    let now = SeenState::from(actual);
    let mut found = Vec::new();
    if seen.cwd != now.cwd {
        found.push(difference("cwd", Some(&seen.cwd), Some(&now.cwd)));
    }
    if seen.git_head != now.git_head {
        found.push(difference("git_head", Some(&seen.git_head), Some(&now.git_head)));
    }
    if seen.key_process_names != now.key_process_names {
        found.push(difference("key_process_names", Some(&seen.key_process_names), Some(&now.key_process_names)));
    }
    if seen.env_fingerprint != now.env_fingerprint {
        found.push(difference("env_fingerprint", Some(&seen.env_fingerprint), Some(&now.env_fingerprint)));
    }
    if found.is_empty() {
        // All that is left. Titles belong to the screen, so that neither is told.
        found.push(difference::<()>("focused_window_title", None, None));
    }
    found
}

/// Where two predictions differ, by their fields.
pub(super) fn prediction_differences(recorded: &Value, now: &Value) -> Vec<Difference> {
    let (Some(before), Some(after)) = (recorded.as_object(), now.as_object()) else {
        return vec![difference("predicted_outcome", Some(recorded), Some(now))];
    };
    let names = before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)));
    names
        .filter(|name| before.get(*name) != after.get(*name))
        .map(|name| difference(&format!("predicted_outcome.{name}"), before.get(name), after.get(name)))
        .collect()
}

/// What an act would come to now, against what was expected when it was recorded (OS-011 §8.4).
pub(super) fn foreseen_otherwise(core: &Core, edge: u64, recorded: &Value, now: &Value) -> Option<Stop> {
    let now = core.log.redactor().value(now.clone());
    if recorded.is_null() || now.is_null() || *recorded == now {
        return None;
    }
    let fault = Fault::new(ErrorCode::OutcomeMismatch, "it would come to something else than was recorded")
        .hint("nothing was done; what it is about has changed since the trace was recorded");
    Some(Stop::at(edge, fault).differing(prediction_differences(recorded, &now)))
}

/// Adds the difference of the states where there is one, because it explains most other failures.
pub(super) async fn explained(
    core: &Core,
    session: &Session,
    stop: Stop,
    expected: &StateHash,
    known_in: &[&TraceId],
) -> Stop {
    let Ok(state) = core.stable(session).await else { return stop };
    match state.fields.hash() {
        Ok(found) if found != *expected && stop.expected.is_none() => {
            let details = state_differences(core, expected, &state.fields, known_in).await;
            stop.between(expected, &found).differing(details)
        }
        Ok(_) | Err(_) => stop,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bodyguard_protocol::Digest;
    use serde_json::json;

    fn fields() -> StableFields {
        StableFields {
            cwd: "workspace:/".into(),
            focused_window_title: "Bank".into(),
            git_head: "sha1:00".into(),
            key_process_names: vec!["node".into()],
            env_fingerprint: Digest::of(b""),
        }
    }

    #[test]
    fn r46_each_field_that_differs_is_named_and_a_title_is_never_told() {
        let seen = SeenState::from(&fields());
        let other = StableFields { git_head: "sha1:01".into(), ..fields() };
        let found = field_differences(&seen, &other);
        assert_eq!(found, [difference("git_head", Some("sha1:00"), Some("sha1:01"))]);
        let changes: [fn(&mut StableFields); 3] =
            [|s| s.cwd.push('x'), |s| s.key_process_names.clear(), |s| s.env_fingerprint = Digest::of(b"x")];
        for change in changes {
            let mut other = fields();
            change(&mut other);
            assert_eq!(field_differences(&seen, &other).len(), 1);
        }
        let titled = StableFields { focused_window_title: "Mail".into(), ..fields() };
        let found = field_differences(&seen, &titled);
        assert_eq!(found, [difference::<()>("focused_window_title", None, None)]);
        assert!(!serde_json::to_string(&found).unwrap().contains("Mail"));
    }

    #[test]
    fn r45_predictions_are_compared_by_their_fields() {
        let recorded = json!({"after_sha256": "a", "bytes": 3});
        let found = prediction_differences(&recorded, &json!({"after_sha256": "b", "bytes": 3}));
        assert_eq!(found, [difference("predicted_outcome.after_sha256", Some("a"), Some("b"))]);
        assert!(prediction_differences(&recorded, &recorded).is_empty());
        assert_eq!(prediction_differences(&recorded, &json!({"bytes": 3})).len(), 1);
    }
}
