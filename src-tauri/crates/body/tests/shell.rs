//! `shell_exec` in the real containment.

mod common;

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use bodyguard_body::{Body as _, Review, SandboxLevel};
use bodyguard_protocol::{ErrorCode, OutcomeStatus};
use common::{code, lab, lab_with};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

fn shell(root: &std::path::Path, params: Value) -> Value {
    json!({"type":"shell_exec","target":root,"params":params})
}

fn stdout(effect: &bodyguard_body::Effect) -> &str {
    effect.observed["stdout"].as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_runs_as_it_was_shown_and_tells_how_it_ended() {
    let lab = lab().await;
    assert_eq!(lab.body.sandbox().level, SandboxLevel::Bubblewrap, "{:?}", lab.body.sandbox());
    let done = lab.shell("echo out; echo err >&2; pwd; exit 3").await;
    assert_eq!(done.status, OutcomeStatus::Failure);
    assert_eq!(stdout(&done), format!("out\n{}\n", lab.root().display()));
    assert_eq!((&done.observed["stderr"], &done.observed["exit_code"]), (&json!("err\n"), &json!(3)));
    let killed = lab.shell("kill -TERM $$").await;
    assert_eq!((&killed.observed["signal"], &killed.observed["exit_code"]), (&json!("SIGTERM"), &Value::Null));
    let argv = lab.act(shell(lab.root(), json!({"argv":["printf","%s|","a b","$HOME;x"]}))).await.unwrap();
    assert_eq!(stdout(&argv), "a b|$HOME;x|");
    let written = lab.shell("printf hi > made && cat made").await;
    assert_eq!((written.status, stdout(&written)), (OutcomeStatus::Success, "hi"));
    assert_eq!(lab.get("made"), b"hi");
    let env = lab.act(shell(lab.root(), json!({"command":"env | sort","env":{"A":"1"}}))).await.unwrap();
    let shown = lab.inspect(shell(lab.root(), json!({"command":"env","env":{"A":"1"}}))).await.unwrap().review;
    let Review::Command { env: told, .. } = shown else { panic!("another review") };
    for line in stdout(&env).lines().filter(|line| !line.starts_with("PWD=") && !line.starts_with("OLDPWD=")) {
        let (name, value) = line.split_once('=').unwrap();
        assert_eq!(told.get(name).map(String::as_str), Some(value), "{name} was not shown");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_not_there_is_named_before_anyone_is_asked() {
    let lab = lab().await;
    let fault = lab.inspect(shell(lab.root(), json!({"argv":["no-such-program"]}))).await.unwrap_err();
    assert_eq!(fault.code, ErrorCode::ProgramNotFound);
    assert!(fault.hint.is_some() && fault.message.contains("no-such-program"));
    lab.put("script", "#!/no/such/interpreter\n");
    std::fs::set_permissions(lab.root().join("script"), PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!(code(lab.act(shell(lab.root(), json!({"argv":["./script"]}))).await), ErrorCode::ProgramNotFound);
    assert_eq!(code(lab.inspect(shell("/etc".as_ref(), json!({"command":"ls"}))).await), ErrorCode::OutsideWorkspace);
    assert_eq!(code(lab.inspect(shell(&lab.root().join("no"), json!({"command":"ls"}))).await), ErrorCode::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn dsp_09_a_nul_byte_runs_nothing_and_the_next_call_works() {
    let lab = lab().await;
    let ran = shell(lab.root(), json!({"command":"echo a\u{0}; touch ran"}));
    assert_eq!(code(lab.act(ran).await), ErrorCode::NulByte);
    assert!(!lab.root().join("ran").exists());
    assert_eq!(stdout(&lab.shell("echo fine").await), "fine\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn dsp_01_hidden_characters_run_as_they_are() {
    let lab = lab().await;
    lab.shell("echo o\u{200b}k; : > r\u{2063}an").await;
    assert!(lab.root().join("r\u{2063}an").exists() && !lab.root().join("ran").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn out_01_endless_output_is_counted_cut_and_ended() {
    let lab = lab_with(|config| config.limits.output_bytes = 8 << 20).await;
    let started = Instant::now();
    let action =
        shell(lab.root(), json!({"command":"yes 0123456789abcdef","timeout_ms":20_000,"max_output_bytes":1000}));
    let done = lab.act(action).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(15));
    assert_eq!((done.status, done.error.unwrap().code), (OutcomeStatus::Partial, ErrorCode::TooLarge));
    let info = &done.observed["stdout_info"];
    assert_eq!(info["truncated"], true);
    assert!(info["bytes_seen"].as_u64().unwrap() > 8 << 20 && info["bytes_kept"].as_u64().unwrap() <= 1000);
    assert!(done.observed["stdout"].as_str().unwrap().len() < 1200);
    assert_eq!(stdout(&lab.shell("echo next").await), "next\n");
    let binary = lab.shell("printf '\\377\\000\\376'").await;
    assert_eq!((&binary.observed["stdout_info"]["binary"], stdout(&binary)), (&json!(true), "/wD+"));
}

#[tokio::test(flavor = "multi_thread")]
async fn out_04_standard_input_is_at_its_end_or_what_was_given() {
    let lab = lab().await;
    for command in ["read -r a; echo \"[$a]\"", "cat", "python3 -"] {
        let started = Instant::now();
        let done = lab.shell(command).await;
        assert!(started.elapsed() < Duration::from_secs(5), "{command}");
        assert_eq!((&done.observed["stdin"], &done.observed["exit_code"]), (&json!("empty"), &json!(0)), "{command}");
    }
    let given = lab.act(shell(lab.root(), json!({"argv":["cat"],"stdin":"line\n"}))).await.unwrap();
    assert_eq!((&given.observed["stdin"], stdout(&given)), (&json!("text"), "line\n"));
    assert_eq!(
        stdout(&lab.shell("test -t 0 || test -t 1 || test -t 2 || echo none; ps -o tty= $$").await).lines().next(),
        Some("none")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn out_06_what_is_left_behind_is_listed_and_ends_with_the_action() {
    let lab = lab().await;
    let daemon = "import subprocess;subprocess.Popen([\"sleep\",\"600\"],start_new_session=True);import time;time.sleep(0.3);print(1)";
    for command in ["sleep 600 & sleep 0.3; echo started".to_owned(), format!("python3 -c '{daemon}'")] {
        let started = Instant::now();
        let done = lab.shell(&command).await;
        assert!(started.elapsed() < Duration::from_secs(5), "{command}");
        assert_eq!(done.status, OutcomeStatus::Success);
        let survivors = done.observed["survivors_ended"].as_array().unwrap().clone();
        assert_eq!(survivors.len(), 1, "{survivors:?}");
        assert_eq!(survivors[0]["name"], "sleep");
        assert!(survivors[0]["pid"].as_u64().unwrap() > 1 && survivors[0]["started_boot_ms"].as_u64().unwrap() > 0);
        assert_eq!(running(&lab, "600"), 0);
    }
}

/// Processes of this lab's user with an argument; `ps` of the outside sees into the sandboxes.
fn running(lab: &common::Lab<bodyguard_body::HostBody>, argument: &str) -> usize {
    // Descendants of this host only: tests run side by side.
    let mut ours = vec![lab.body.pid()];
    let mut count = 0;
    let all: Vec<(u32, u32, Vec<u8>)> = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            let parent = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()?;
            Some((pid, parent, std::fs::read(entry.path().join("cmdline")).ok()?))
        })
        .collect();
    for _ in 0..8 {
        for (pid, parent, _) in &all {
            if ours.contains(parent) && !ours.contains(pid) {
                ours.push(*pid);
            }
        }
    }
    for (pid, _, words) in &all {
        count += usize::from(ours.contains(pid) && words.split(|b| *b == 0).any(|word| word == argument.as_bytes()));
    }
    count
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_keeps_the_output_so_far_and_ends_everything() {
    let lab = lab().await;
    let action =
        shell(lab.root(), json!({"command":"echo before; (sleep 601 &) ; sleep 601; touch late","timeout_ms":700}));
    let started = Instant::now();
    let done = lab.act(action).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_eq!((done.status, done.error.as_ref().unwrap().code), (OutcomeStatus::Timeout, ErrorCode::Timeout));
    assert_eq!(stdout(&done), "before\n");
    assert_eq!(running(&lab, "601"), 0);
    assert!(!lab.root().join("late").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_command_ends_at_once() {
    let lab = lab().await;
    let inspection = lab.inspect(shell(lab.root(), json!({"command":"echo before; sleep 602"}))).await.unwrap();
    let permit = lab.permit(&inspection).await;
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let started = Instant::now();
    let (acted, ()) = tokio::join!(lab.body.act(permit, inspection.resolved, cancel), async move {
        tokio::time::sleep(Duration::from_millis(800)).await;
        stop.cancel();
    });
    let done = acted.unwrap();
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_eq!((done.status, done.error.unwrap().code), (OutcomeStatus::Partial, ErrorCode::Cancelled));
    assert_eq!(running(&lab, "602"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_host_dies_its_commands_die_and_the_caller_is_told() {
    let lab = lab().await;
    let inspection =
        lab.inspect(shell(lab.root(), json!({"command":"echo > up; sleep 603; echo > late"}))).await.unwrap();
    let permit = lab.permit(&inspection).await;
    let pid = lab.body.pid();
    let up = lab.root().join("up");
    let (acted, ()) = tokio::join!(lab.body.act(permit, inspection.resolved, CancellationToken::new()), async move {
        while !up.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let host = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        rustix::process::kill_process(host, rustix::process::Signal::KILL).unwrap();
    });
    assert_eq!(code(acted), ErrorCode::BodyLost);
    assert!(lab.body.is_lost());
    assert_eq!(code(lab.body.stable("").await), ErrorCode::BodyLost);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let alive = std::process::Command::new("pgrep").args(["-f", "^sleep 603$"]).output().unwrap().stdout;
    assert!(alive.is_empty(), "the command outlived its host: {}", String::from_utf8_lossy(&alive));
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_the_body_ends_the_host_and_its_commands() {
    let lab = lab().await;
    let inspection = lab.inspect(shell(lab.root(), json!({"command":"echo > up; sleep 605"}))).await.unwrap();
    let permit = lab.permit(&inspection).await;
    let (pid, up) = (lab.body.pid(), lab.root().join("up"));
    {
        let act = lab.body.act(permit, inspection.resolved, CancellationToken::new());
        // Given up while it runs, as when the supervisor ends a session.
        let waited = async {
            while !up.exists() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            done = act => panic!("it ended: {done:?}"),
            () = waited => {}
        }
    }
    drop(lab);
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "the host is still there");
    tokio::time::sleep(Duration::from_millis(300)).await;
    let alive = std::process::Command::new("pgrep").args(["-f", "^sleep 605$"]).output().unwrap().stdout;
    assert!(alive.is_empty(), "the command outlived the body");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_that_changed_after_the_yes_does_not_run() {
    let lab = lab().await;
    lab.put("run.sh", "echo good\n");
    for command in ["sh run.sh", "sh -e ./run.sh > out"] {
        let inspection = lab.inspect(shell(lab.root(), json!({"command":command}))).await.unwrap();
        let Review::Command { scripts, .. } = &inspection.review else { panic!("another review") };
        assert_eq!(scripts.iter().map(|one| one.path.as_str()).collect::<Vec<_>>(), [lab.path("run.sh")]);
        let permit = lab.permit(&inspection).await;
        lab.put("run.sh", "touch ran\n");
        let acted = lab.body.act(permit, inspection.resolved, CancellationToken::new()).await;
        assert_eq!(code(acted), ErrorCode::StateChanged);
        assert!(!lab.root().join("ran").exists());
        lab.put("run.sh", "echo good\n");
    }
}
