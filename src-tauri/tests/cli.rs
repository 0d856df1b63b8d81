//! The command line as a program: exit codes, JSON, and what happens where something is missing.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// The program with nothing of this process's surroundings but the path.
fn bodyguard(home: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bodyguard"))
        .args(arguments)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home)
        .current_dir(home)
        .output()
        .expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}{}", text(&output.stdout), text(&output.stderr)))
}

/// A home with an initialised data folder `data` and a workspace folder `ws`.
fn initialised() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("ws")).unwrap();
    let output =
        bodyguard(home.path(), &["init", "--data", "data", "--workspace", "demo=ws", "--agent", "demo", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(json(&output)["agent_socket"].is_string());
    home
}

#[test]
fn env_01_without_a_display_it_says_so_and_does_not_panic() {
    let home = tempfile::tempdir().unwrap();
    for arguments in [&[][..], &["--data", "data"]] {
        let output = bodyguard(home.path(), arguments);
        assert_eq!(output.status.code(), Some(3));
        let said = text(&output.stderr);
        assert!(said.contains("there is no display") && !said.contains("panicked"), "{said}");
    }
}

#[test]
fn env_06_a_dead_display_is_no_display() {
    let home = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_bodyguard"))
        .env_clear()
        .env("HOME", home.path())
        .env("DISPLAY", ":4711")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("there is no display"));
}

#[test]
fn a_wrong_call_ends_with_2() {
    let home = tempfile::tempdir().unwrap();
    for arguments in [
        &["approve"][..],
        &["trace", "show", "../../etc/passwd"],
        &["mcp"],
        &["mcp", "--agent", "../x"],
        &["init", "--data", "d", "--workspace", "demo", "--agent", "a"],
        &["init", "--data", "d", "--workspace", "demo=/nowhere-at-all", "--agent", "a"],
        &["verify", "--key", "zz"],
    ] {
        let output = bodyguard(home.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output.stderr));
    }
}

#[test]
fn what_is_not_there_ends_with_3() {
    let home = initialised();
    for arguments in [
        &["trace", "list", "--data", "none"][..],
        &["verify", "--data", "none"],
        &["verify", "no-such-file", "--data", "data"],
        &["trace", "show", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "--data", "data"],
        &["trace", "export", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "--data", "data"],
    ] {
        let output = bodyguard(home.path(), arguments);
        assert_eq!(output.status.code(), Some(3), "{arguments:?}: {}", text(&output.stderr));
    }
    assert!(!home.path().join("none").exists(), "asking makes nothing");
}

#[test]
fn init_makes_a_private_folder_once() {
    use std::os::unix::fs::PermissionsExt;
    let home = initialised();
    let data = home.path().join("data");
    assert_eq!(std::fs::metadata(&data).unwrap().permissions().mode() & 0o777, 0o700);
    let token = std::fs::metadata(data.join("tokens/demo")).unwrap();
    assert_eq!(token.permissions().mode() & 0o777, 0o600);
    let again = bodyguard(home.path(), &["init", "--data", "data", "--workspace", "all=.", "--agent", "other"]);
    assert_eq!(again.status.code(), Some(3), "{}", text(&again.stderr));
    assert!(!data.join("tokens/other").exists());
}

#[test]
fn a_new_log_lists_nothing_and_verifies() {
    let home = initialised();
    let list = bodyguard(home.path(), &["trace", "list", "--data", "data", "--json"]);
    assert_eq!(json(&list)["total"], 0);
    let verified = bodyguard(home.path(), &["verify", "--data", "data", "--json"]);
    let report = json(&verified);
    assert_eq!((verified.status.code(), &report["ok"]), (Some(0), &Value::Bool(true)), "{report}");
    assert!(report["leaves"].as_u64().unwrap() > 0);
}

#[test]
fn a_changed_record_is_found_by_verify() {
    let home = initialised();
    let db = home.path().join("data/log.db");
    // Only the records' own bytes are searched for; the file is changed in place, of equal length.
    let mut bytes = std::fs::read(&db).unwrap();
    let (from, to) = (b"\"demo\"", b"\"evil\"");
    let places: Vec<usize> =
        bytes.windows(from.len()).enumerate().filter(|(_, part)| *part == from).map(|(at, _)| at).collect();
    assert!(!places.is_empty(), "the log holds the agent's name");
    for at in places {
        bytes[at..at + to.len()].copy_from_slice(to);
    }
    std::fs::write(&db, bytes).unwrap();
    let verified = bodyguard(home.path(), &["verify", "--data", "data", "--json"]);
    assert_eq!(verified.status.code(), Some(1), "{}{}", text(&verified.stdout), text(&verified.stderr));
}

#[test]
fn doctor_says_what_to_do_and_ends_with_1_where_something_is_missing() {
    let home = tempfile::tempdir().unwrap();
    let output = bodyguard(home.path(), &["doctor", "--json"]);
    assert_eq!(output.status.code(), Some(1), "there is no display here");
    let checks = json(&output)["checks"].as_array().unwrap().clone();
    let display = checks.iter().find(|check| check["name"] == "display").unwrap();
    assert_eq!(display["status"], "failed");
    assert!(display["advice"].as_str().unwrap().contains("DISPLAY"));
}
