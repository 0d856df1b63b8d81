//! The template that a person starts from.

use bodyguard_policy::{Containment, Operation, Policy, Resource, Verdict, template};
use bodyguard_protocol::{ActionType, Digest, QueryMode};

use crate::common::{command, decide, decide_in, folder, on_its_own_desktop, path, process, screen, short, window};

const fn act(kind: ActionType) -> Operation {
    Operation::Act(kind)
}

fn careful() -> Policy {
    Policy::parse("careful.cedar", template::CAREFUL).unwrap()
}

#[test]
fn r32_careful_allows_looks_asks_for_changes_and_refuses_the_outside() {
    use ActionType::{
        FileDelete, FileEdit, FileRead, FileWrite, KeyboardInput, MouseClick, MouseDrag, ProcessSignal, ProcessSpawn,
        ScreenCapture, ShellExec,
    };
    let policy = careful();
    let look = Operation::Perceive;
    let table: [(Operation, Resource, (&str, &str)); 37] = [
        (act(FileRead), path(true, false), ("allow", "read-files")),
        (act(FileRead), path(true, true), ("allow", "read-files")),
        (act(FileRead), path(false, false), ("deny", "outside-the-workspace")),
        (look(QueryMode::Filesystem), folder(true), ("allow", "look-around")),
        (look(QueryMode::Git), folder(true), ("allow", "look-around")),
        (look(QueryMode::Filesystem), folder(false), ("deny", "outside-the-workspace")),
        (look(QueryMode::Screen), screen(), ("ask", "see-the-screen")),
        (act(ScreenCapture), screen(), ("ask", "see-the-screen")),
        (look(QueryMode::Full), folder(true), ("allow", "look-around")),
        (look(QueryMode::Full), folder(false), ("deny", "outside-the-workspace")),
        (look(QueryMode::Process), folder(true), ("allow", "look-around")),
        (look(QueryMode::Shell), folder(true), ("allow", "look-around")),
        (act(FileEdit), path(true, false), ("ask", "change-files")),
        (act(FileEdit), path(true, true), ("ask", "change-what-runs-later")),
        (act(FileEdit), path(false, false), ("deny", "outside-the-workspace")),
        (act(ShellExec), command(true, false), ("ask", "run-commands")),
        (act(ShellExec), command(false, false), ("deny", "outside-the-workspace")),
        (act(ShellExec), command(true, true), ("deny", "no-network")),
        (act(FileWrite), path(true, false), ("ask", "change-files")),
        (act(FileWrite), path(false, false), ("deny", "outside-the-workspace")),
        (act(FileDelete), path(true, false), ("ask", "delete-files")),
        (act(FileDelete), path(true, true), ("ask", "change-what-runs-later")),
        (act(FileDelete), path(false, false), ("deny", "outside-the-workspace")),
        (act(ProcessSpawn), command(true, false), ("ask", "start-programs")),
        (act(ProcessSpawn), command(false, false), ("deny", "outside-the-workspace")),
        (act(ProcessSpawn), command(true, true), ("deny", "no-network")),
        (act(ProcessSignal), process(), ("ask", "signal-own-programs")),
        (act(KeyboardInput), window(false), ("ask", "type-and-click")),
        (act(KeyboardInput), window(true), ("deny", "keys-to-a-shell")),
        (act(MouseClick), window(false), ("ask", "type-and-click")),
        (act(MouseClick), window(true), ("deny", "keys-to-a-shell")),
        (look(QueryMode::Screen), on_its_own_desktop(screen()), ("allow", "see-its-own-desktop")),
        (act(ScreenCapture), on_its_own_desktop(screen()), ("allow", "see-its-own-desktop")),
        (act(KeyboardInput), on_its_own_desktop(window(false)), ("ask", "type-on-its-own-desktop")),
        (act(MouseClick), on_its_own_desktop(window(true)), ("ask", "type-on-its-own-desktop")),
        (act(MouseDrag), window(false), ("ask", "type-and-click")),
        (act(MouseDrag), window(true), ("deny", "keys-to-a-shell")),
    ];
    for (operation, resource, expected) in table {
        let decision = decide(&policy, operation, resource.clone());
        assert_eq!(short(&decision), expected, "{operation:?} {resource:?}");
    }
}

#[test]
fn r32_careful_never_allows_a_destructive_act_unasked() {
    let policy = careful();
    for kind in ActionType::ALL.into_iter().filter(|kind| kind.is_destructive()) {
        let targets = [path(true, false), path(true, true), command(true, false), screen(), folder(true)];
        for resource in targets.into_iter().chain([window(false), window(true), process()]) {
            assert_ne!(short(&decide(&policy, act(kind), resource)).0, "allow", "{kind:?}");
        }
    }
}

#[test]
fn r73_careful_refuses_a_command_that_nothing_contains() {
    let policy = careful();
    let run = |containment| decide_in(&policy, act(ActionType::ShellExec), command(true, false), containment);
    assert_eq!(short(&run(Containment::None)), ("deny", "no-uncontained-commands"));
    assert_eq!(short(&run(Containment::Reduced)), ("ask", "run-commands"));
    let edit = decide_in(&policy, act(ActionType::FileEdit), path(true, false), Containment::None);
    assert_eq!(short(&edit), ("ask", "change-files"));
}

#[test]
fn a_place_that_runs_later_is_asked_with_a_reason_of_its_own() {
    let policy = careful();
    let why = |runs_later| match decide(&policy, act(ActionType::FileEdit), path(true, runs_later)).verdict() {
        Verdict::Ask { why, .. } => why.clone(),
        other => panic!("{other:?}"),
    };
    assert_ne!(why(true), why(false));
    assert!(why(true).contains("later"), "{}", why(true));
}

#[test]
fn r33_a_decision_names_its_rule_and_the_policy_text() {
    let policy = careful();
    assert_eq!(policy.digest(), &Digest::of(template::CAREFUL.as_bytes()));
    let edit = decide(&policy, act(ActionType::FileEdit), path(true, false));
    assert_eq!(edit.policy_id(), "policy:web/change-files");
    assert_eq!(edit.policy_digest(), policy.digest());
    assert_eq!(edit.agent_id(), "claude@web");
    assert_eq!(
        decide(&policy, act(ActionType::ProcessSpawn), path(true, false)).policy_id(),
        "policy:web/default-deny"
    );
}
