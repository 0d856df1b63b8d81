//! The conformance suite as a program, and that each of its tests can fail: a transport between it
//! and the real door alters one answer, as a provider would that doesn't conform.

use std::path::Path;
use std::process::{Command, Output};

use bodyguard_app::conformance::{Answer, Backend, House, NAMES, Record, SignedReport, TestResult, Transport, run};
use bodyguard_policy::KeyList;
use bodyguard_protocol::{Digest, canonical_bytes};
use serde_json::{Value, json};

/// The program with a display, a session bus and a home that it must not use.
fn bodyguard(home: &Path, search: &str, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bodyguard"))
        .arg("conformance")
        .args(arguments)
        .env_clear()
        .env("PATH", search)
        .env("HOME", home)
        .env("DISPLAY", ":4711")
        .env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent")
        .current_dir(home)
        .output()
        .expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn all_twelve_hold(backend: &str) {
    let home = tempfile::tempdir().unwrap();
    let search = std::env::var("PATH").unwrap();
    let output = bodyguard(home.path(), &search, &["--backend", backend, "--report", "report.json"]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}{}", text(&output.stderr));
    let mut expected: Vec<String> = (1..).zip(NAMES).map(|(number, name)| format!("ok {number} {name}")).collect();
    expected.push("12 passed, 0 failed".to_owned());
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
    let made: Vec<_> = std::fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(made, ["report.json"], "nothing of the person's is touched");
    let report = std::fs::read_to_string(home.path().join("report.json")).unwrap();
    let signed: SignedReport = serde_json::from_str(&report).unwrap();
    assert_eq!((signed.report.backend.as_str(), signed.report.results.len()), (backend, 12));
    let mut unsigned: Value = serde_json::from_str(&report).unwrap();
    let attestation = unsigned.as_object_mut().unwrap().remove("attestation").unwrap();
    let part = |name: &str| attestation[name].as_str().unwrap().to_owned();
    let mut keys = KeyList::new();
    keys.add(&part("verifying_key")).unwrap();
    keys.verify(&part("key_id"), &canonical_bytes(&unsigned).unwrap(), &part("signature")).unwrap();
}

#[test]
fn r70_r71_all_twelve_hold_in_the_simulator() {
    all_twelve_hold("simulator");
}

#[test]
fn r70_r72_all_twelve_hold_on_this_machine() {
    all_twelve_hold("host");
}

#[test]
fn r72_without_containment_the_host_backend_says_why_it_cannot_run() {
    let home = tempfile::tempdir().unwrap();
    let output = bodyguard(home.path(), "/nonexistent", &["--backend", "host"]);
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), String::new()), "{said}");
    assert!(said.contains("host backend can't run here: bubblewrap isn't installed"), "{said}");
}

/// What was asked: a tool, or a record of a trace.
#[derive(Clone, Copy)]
enum Asked<'a> {
    Tool(&'a str),
    Record(Record),
}

/// A transport that alters what comes back.
struct Altered<T, F> {
    real: T,
    alter: F,
}

impl<T: Transport, F: FnMut(Asked<'_>, &mut Value) + Send> Transport for Altered<T, F> {
    fn call<'a>(&'a mut self, tool: &'a str, arguments: Value) -> Answer<'a> {
        Box::pin(async move {
            let mut answer = self.real.call(tool, arguments).await?;
            (self.alter)(Asked::Tool(tool), &mut answer);
            Ok(answer)
        })
    }

    fn read<'a>(&'a mut self, record: Record, trace_id: &'a str) -> Answer<'a> {
        Box::pin(async move {
            let mut answer = self.real.read(record, trace_id).await?;
            (self.alter)(Asked::Record(record), &mut answer);
            Ok(answer)
        })
    }
}

async fn tested(number: usize, alter: impl FnMut(Asked<'_>, &mut Value) + Send) -> TestResult {
    let house = House::start(Backend::Simulator, Path::new("/nonexistent")).await.unwrap();
    let real = house.door(number).await.unwrap();
    let result = run(number, &house, &mut Altered { real, alter }).await;
    house.end().await;
    result
}

/// The test fails, and for this reason.
async fn turns_red(number: usize, why: &str, alter: impl FnMut(Asked<'_>, &mut Value) + Send) {
    let result = tested(number, alter).await;
    let reason = result.reason.unwrap_or_else(|| panic!("{} holds although it was altered", result.name));
    assert!(reason.contains(why), "{}: {reason}", result.name);
}

/// Turns a refusal for one reason into a success.
fn done_all_the_same(code: &'static str) -> impl FnMut(Asked<'_>, &mut Value) + Send {
    move |_, answer| {
        if answer["error"]["code"] == code {
            answer["outcome_status"] = json!("success");
            answer["error"] = Value::Null;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r70_what_is_passed_on_unaltered_holds() {
    for number in [3, 5, 12] {
        let result = tested(number, |_, _| ()).await;
        assert!(result.passed, "{result:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r70_01_an_observation_without_provenance_is_found() {
    turns_red(1, "doesn't fit `os_observation`", |_, answer| {
        answer.as_object_mut().unwrap().remove("provenance");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r70_02_a_hash_with_the_time_in_it_is_found() {
    let mut looks = 0;
    turns_red(2, "two perceptions of one state differ", move |asked, answer| {
        if matches!(asked, Asked::Tool("body_os_perceive")) {
            looks += 1;
            answer["state_hash"] = json!(Digest::of(&[looks]));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r70_02_a_hash_that_never_changes_is_found() {
    turns_red(2, "another state has the same hash", |_, answer| {
        if answer["state_hash"].is_string() {
            answer["state_hash"] = json!(Digest::of(b""));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r70_03_a_stale_ref_that_still_works_is_found() {
    turns_red(3, "isn't refused as stale", done_all_the_same("stale_ref")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r70_04_an_act_beyond_the_affordances_is_found() {
    turns_red(4, "isn't blocked", done_all_the_same("denied_by_policy")).await;
    turns_red(4, "a precondition that doesn't hold isn't refused", done_all_the_same("precondition_failed")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r70_05_an_affordance_that_the_policy_denies_is_found() {
    turns_red(5, "file_write is listed", |asked, answer| {
        if matches!(asked, Asked::Tool("body_os_affordances")) && answer["policy_filtered_out"] != 0 {
            let more = json!({"affordance_id": "file_write@/x", "action_type": "file_write", "target": "/x",
                "target_label": "x", "policy_allowed": true, "asks": false});
            answer["affordances"].as_array_mut().unwrap().push(more);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r70_06_a_count_that_is_one_too_low_is_found() {
    turns_red(6, "the count isn't that of what is denied", |_, answer| {
        if let Some(count) = answer["policy_filtered_out"].as_u64() {
            answer["policy_filtered_out"] = json!(count.saturating_sub(1));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r70_07_an_edge_without_its_state_or_its_provenance_is_found() {
    turns_red(7, "an edge has no `state_after`", |asked, answer| {
        if matches!(asked, Asked::Record(Record::Trace)) {
            answer["edges"][1]["state_after"] = json!("");
        }
    })
    .await;
    turns_red(7, "the provenance has no `agent_id`", |asked, answer| {
        if matches!(asked, Asked::Record(Record::Trace)) {
            answer["edges"][0]["provenance"]["agent_id"] = json!("");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r70_08_a_change_that_nobody_authorised_is_found() {
    turns_red(8, "it wasn't blocked", done_all_the_same("authorization_required")).await;
    turns_red(8, "a claimed authorization isn't refused", done_all_the_same("authorization_failure")).await;
    turns_red(8, "has no `approved_by`", |_, answer| {
        if answer["authorization"].is_object() {
            answer["authorization"]["approved_by"] = Value::Null;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r70_09_a_replay_from_another_state_is_found() {
    turns_red(9, "it didn't fail before anything was done", |asked, answer| {
        if matches!(asked, Asked::Tool("body_os_replay")) {
            answer["status"] = json!("success");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r70_10_a_replay_that_goes_on_is_found() {
    turns_red(10, "it carried out other edges", |asked, answer| {
        if matches!(asked, Asked::Tool("body_os_replay")) && answer["status"] == "partial" {
            answer["edges_replayed"] = json!([1, 2]);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r70_11_an_authorization_that_is_used_again_is_found() {
    let mut first = Value::Null;
    turns_red(11, "the authorization isn't a new one", move |asked, answer| match asked {
        Asked::Tool("body_os_act") if first.is_null() => first = answer["authorization"].clone(),
        Asked::Record(Record::Trace) => answer["edges"][0]["authorization"] = first.clone(),
        _ => {}
    })
    .await;
    turns_red(11, "a replay that is forbidden by now isn't refused", |asked, answer| {
        if matches!(asked, Asked::Tool("body_os_replay")) && answer["reason"] == "denied_by_policy" {
            answer["status"] = json!("success");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r70_12_a_signal_out_of_range_or_without_a_key_is_found() {
    turns_red(12, "doesn't fit `surprise_signal`", |asked, answer| {
        if matches!(asked, Asked::Record(Record::Surprises)) {
            answer[0]["data"]["surprise_magnitude"] = json!(1.5);
        }
    })
    .await;
    turns_red(12, "doesn't fit `surprise_signal`", |asked, answer| {
        if matches!(asked, Asked::Record(Record::Surprises)) {
            answer[0]["data"].as_object_mut().unwrap().remove("predicted_state_hash");
        }
    })
    .await;
    turns_red(12, "the one surprise", |asked, answer| {
        if matches!(asked, Asked::Record(Record::Surprises)) {
            *answer = json!([]);
        }
    })
    .await;
}
