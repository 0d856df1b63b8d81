//! `process_spawn` and `process_signal`. What they did is looked up in `/proc`, not asked of the body.

mod common;

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use bodyguard_body::{Body, Effect, HostBody, Review, SimulatorBody, SimulatorConfig};
use bodyguard_protocol::{ErrorCode, OutcomeStatus, ProcessEntry};
use common::{Lab, code, lab, workspace};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

fn spawn(program: &str, params: Value) -> Value {
    json!({"type":"process_spawn","target":program,"params":params})
}

fn signal(target: &str, name: &str) -> Value {
    json!({"type":"process_signal","target":target,"params":{"signal":name}})
}

/// Starts a program that goes on; its target.
async fn started<B: Body>(lab: &Lab<B>, program: &str, args: &[&str]) -> String {
    let done = lab.act(spawn(program, json!({"args":args}))).await.unwrap();
    assert_eq!((done.status, &done.observed["state"]), (OutcomeStatus::Success, &json!("running")), "{done:?}");
    target(&done)
}

fn target(effect: &Effect) -> String {
    effect.observed["target"].as_str().unwrap().to_owned()
}

async fn listing<B: Body>(lab: &Lab<B>) -> Vec<ProcessEntry> {
    lab.perceive(json!({"mode":"process"})).await.unwrap().processes
}

async fn listed<B: Body>(lab: &Lab<B>, target: &str) -> Option<ProcessEntry> {
    listing(lab).await.into_iter().find(|process| process.target == target)
}

fn parts(target: &str) -> (u32, u64) {
    let (pid, start) = target.strip_prefix("process:").unwrap().split_once(':').unwrap();
    (pid.parse().unwrap(), start.parse().unwrap())
}

/// State, parent and start of a process.
fn stat(pid: u32) -> Option<(char, u32, u64)> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat).into_owned();
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    Some((fields[0].chars().next()?, fields[1].parse().ok()?, fields[19].parse().ok()?))
}

fn runs(target: &str) -> bool {
    let (pid, start) = parts(target);
    stat(pid).is_some_and(|(state, _, started)| started == start && state != 'Z')
}

fn words(pid: u32) -> String {
    String::from_utf8(std::fs::read(format!("/proc/{pid}/cmdline")).unwrap()).unwrap().replace('\0', " ")
}

/// The processes below one.
fn below(top: u32) -> Vec<u32> {
    let pids = || std::fs::read_dir("/proc").unwrap().flatten().filter_map(|e| e.file_name().to_str()?.parse().ok());
    let mut found = vec![top];
    let mut next = 0;
    while next < found.len() {
        let parent = found[next];
        found.extend(pids().filter(|&pid: &u32| stat(pid).is_some_and(|(_, above, _)| above == parent)));
        next += 1;
    }
    found.split_off(1)
}

async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds().await {
        assert!(Instant::now() < deadline, "it never came about: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A process of the test's own, which no session started.
struct Foreign(Child);

impl Foreign {
    fn start() -> Self {
        Self(Command::new("sleep").arg("720").spawn().unwrap())
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r9_a_spawned_program_goes_on_and_is_listed() {
    let lab = lab().await;
    let wanted = spawn("sleep", json!({"args":["700"]}));
    let inspection = lab.inspect(wanted.clone()).await.unwrap();
    assert_eq!((inspection.resolved.target.as_str(), &inspection.prediction), ("sleep", &Value::Null));
    assert_eq!(inspection.binding["type"], "process_spawn");
    let Review::Command { program, cwd, .. } = inspection.review else { panic!("another review") };
    assert_eq!((program.name.as_str(), cwd), ("sleep", lab.path("").trim_end_matches('/').to_owned()));
    assert!(listing(&lab).await.is_empty());
    let done = lab.act(wanted).await.unwrap();
    assert_eq!(done.status, OutcomeStatus::Success);
    assert_eq!((&done.observed["state"], &done.observed["command"]), (&json!("running"), &json!("sleep 700")));
    let target = target(&done);
    let (pid, start) = parts(&target);
    assert_eq!((words(pid).trim_end(), stat(pid).unwrap().2), ("sleep 700", start));
    assert!(below(lab.body.pid()).contains(&pid));
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    assert!(!status.contains("Uid:\t0\t"), "it runs as root");
    // Something else meanwhile; then only the program itself is listed.
    assert_eq!(lab.shell("echo x").await.observed["stdout"], "x\n");
    let [one] = &listing(&lab).await[..] else { panic!("one process") };
    assert_eq!((one.target.as_str(), one.command.as_str(), one.state.as_str()), (&*target, "sleep 700", "sleeping"));
    assert!(runs(&target));
}

#[tokio::test(flavor = "multi_thread")]
async fn r9_a_program_that_can_t_be_started_is_refused_and_leaves_nothing() {
    let lab = lab().await;
    let refused = async |action: Value| {
        let fault = lab.act(action).await.unwrap_err();
        (fault.code, fault.field.unwrap())
    };
    let program = "action.target".to_owned();
    let cwd = "action.params.cwd".to_owned();
    assert_eq!(refused(spawn("no-such-program", json!({}))).await, (ErrorCode::ProgramNotFound, program.clone()));
    assert_eq!(refused(spawn(&lab.path("gone"), json!({}))).await, (ErrorCode::ProgramNotFound, program.clone()));
    assert_eq!(refused(spawn("/etc/passwd", json!({}))).await, (ErrorCode::ProgramNotFound, program.clone()));
    lab.put("plain", "#!/bin/sh\n");
    assert_eq!(refused(spawn(&lab.path("plain"), json!({}))).await, (ErrorCode::PermissionDenied, program.clone()));
    lab.put("odd", "#!/no/such/interpreter\n");
    executable(&lab, "odd");
    assert_eq!(refused(spawn(&lab.path("odd"), json!({}))).await, (ErrorCode::ProgramNotFound, program));
    for outside in ["/etc", "..", "/"] {
        let action = spawn("sleep", json!({"args":["701"],"cwd":outside}));
        assert_eq!(refused(action).await, (ErrorCode::OutsideWorkspace, cwd.clone()), "{outside}");
    }
    assert_eq!(refused(spawn("sleep", json!({"args":["701"],"cwd":"no"}))).await, (ErrorCode::NotFound, cwd));
    assert!(listing(&lab).await.is_empty());
    eventually("nothing is left", async || below(lab.body.pid()).is_empty()).await;
}

fn executable(lab: &Lab<HostBody>, name: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(lab.root().join(name), PermissionsExt::from_mode(0o755)).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn r9_arguments_folder_and_variables_arrive() {
    let lab = lab().await;
    lab.put("sub/x", "");
    lab.put("tool", "#!/bin/sh\nread -r line || line=closed\necho \"$# $1|$PWD|$GIVEN|$line\" > told\n");
    executable(&lab, "tool");
    for cwd in ["sub".to_owned(), lab.path("sub")] {
        let params = json!({"args":["a b","$HOME"],"cwd":cwd,"env":{"GIVEN":"it's here"}});
        let done = lab.act(spawn(&lab.path("tool"), params)).await.unwrap();
        assert_eq!(done.status, OutcomeStatus::Success);
        eventually("it wrote", async || lab.root().join("sub/told").exists()).await;
        let expected = format!("2 a b|{}|it's here|closed\n", lab.path("sub"));
        eventually("it wrote all", async || lab.get("sub/told") == expected.as_bytes()).await;
        std::fs::remove_file(lab.root().join("sub/told")).unwrap();
    }
    // Refused: what was approved is another program by now.
    let inspection = lab.inspect(spawn(&lab.path("tool"), json!({}))).await.unwrap();
    let permit = lab.permit(&inspection).await;
    lab.put("tool", "#!/bin/sh\ntouch other\n");
    let acted = lab.body.act(permit, inspection.resolved, CancellationToken::new()).await;
    assert_eq!(code(acted), ErrorCode::StateChanged);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!lab.root().join("other").exists() && !lab.root().join("told").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn prc_08_a_program_that_ends_at_once_says_how() {
    let lab = lab().await;
    let ends = [
        ("exit 0", json!(0), Value::Null, Value::Null),
        ("echo said; echo and >&2; exit 3", json!(3), Value::Null, json!("said\nand\n")),
        ("kill -TERM $$", Value::Null, json!("SIGTERM"), Value::Null),
    ];
    for (text, exit_code, signal, tail) in ends {
        let done = lab.act(spawn("sh", json!({"args":["-c",text]}))).await.unwrap();
        let target = target(&done);
        // On a busy machine the answer may come before the end; the listing tells it in any case.
        eventually(text, async || listed(&lab, &target).await.is_some_and(|one| one.state == "ended")).await;
        let one = listed(&lab, &target).await.unwrap();
        assert_eq!((json!(one.exit_code), json!(one.signal)), (exit_code.clone(), signal.clone()), "{text}");
        assert!(!runs(&target));
        // Both streams, in the order in which it wrote.
        assert_eq!(json!(one.output_tail), tail, "{text}");
        if done.observed["state"] == "ended" {
            assert_eq!((&done.observed["exit_code"], &done.observed["signal"]), (&exit_code, &signal));
        }
        assert_eq!(code(lab.inspect(self::signal(&target, "TERM")).await), ErrorCode::NotFound);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r9_a_signal_reaches_its_process_and_no_other() {
    let lab = lab().await;
    let (one, other) = (started(&lab, "sleep", &["702"]).await, started(&lab, "sleep", &["703"]).await);
    let inspection = lab.inspect(signal(&one, "STOP")).await.unwrap();
    assert_eq!(inspection.review, Review::Signal { command: "sleep 702".to_owned() });
    assert_eq!(inspection.binding, json!({"type":"process_signal","target":one,"command":"sleep 702"}));
    let stopped = lab.act(signal(&one, "STOP")).await.unwrap();
    assert_eq!(stopped.observed, json!({"target":one,"signal":"SIGSTOP","ended":false}));
    assert_eq!((stat(parts(&one).0).unwrap().0, listed(&lab, &one).await.unwrap().state.as_str()), ('T', "stopped"));
    lab.act(signal(&one, "CONT")).await.unwrap();
    assert_eq!(stat(parts(&one).0).unwrap().0, 'S');
    let ended = lab.act(signal(&one, "TERM")).await.unwrap();
    assert_eq!(ended.observed, json!({"target":one,"signal":"SIGTERM","ended":true}));
    assert!(!runs(&one) && runs(&other));
    eventually("it is listed as ended", async || listed(&lab, &one).await.unwrap().state == "ended").await;
    assert_eq!(listed(&lab, &one).await.unwrap().signal.as_deref(), Some("SIGTERM"));
    assert_eq!(code(lab.act(signal(&one, "KILL")).await), ErrorCode::NotFound);
    // A program that doesn't mind is told to go on.
    let stubborn = started(&lab, "python3", &["-c", STUBBORN]).await;
    eventually("it is ready", async || lab.root().join("ready").exists()).await;
    assert_eq!(lab.act(signal(&stubborn, "TERM")).await.unwrap().observed["ended"], false);
    assert!(runs(&stubborn));
    assert_eq!(lab.act(signal(&stubborn, "KILL")).await.unwrap().observed["ended"], true);
    assert!(!runs(&stubborn) && runs(&other));
}

const STUBBORN: &str =
    "import signal,time;signal.signal(signal.SIGTERM,signal.SIG_IGN);open('ready','w');time.sleep(600)";

#[tokio::test(flavor = "multi_thread")]
async fn prc_02_no_other_process_is_signalled() {
    let lab = lab().await;
    let foreign = Foreign::start();
    let mine = started(&lab, "sleep", &["704"]).await;
    let (pid, start) = parts(&mine);
    let named = |pid: u32| format!("process:{pid}:{}", stat(pid).unwrap().2);
    let host = lab.body.pid();
    let wrappers: Vec<u32> = below(host).into_iter().filter(|&below| below != pid).collect();
    assert_eq!(wrappers.len(), 3, "bwrap twice and the inner program");
    let mut others: Vec<String> =
        [foreign.0.id(), host, std::process::id(), 1].into_iter().chain(wrappers.clone()).map(named).collect();
    // The session's own number, at another time.
    others.extend([start + 1, start - 1, 0].map(|start| format!("process:{pid}:{start}")));
    others.extend(["process:0:0", "process:2147483648:1"].map(str::to_owned));
    for other in &others {
        assert_eq!(code(lab.inspect(signal(other, "KILL")).await), ErrorCode::NotFound, "{other}");
    }
    let odd =
        ["process:-1:0", "process:1.5:0", "process:12abc:0", "process:1", &format!("process:0{pid}:{start}"), "sleep"];
    for odd in odd {
        assert_eq!(code(lab.inspect(signal(odd, "KILL")).await), ErrorCode::InvalidArgument, "{odd}");
    }
    for name in ["SIGSEGV", "9", "KILL ", "kill", ""] {
        assert_eq!(code(lab.inspect(signal(&mine, name)).await), ErrorCode::InvalidArgument, "{name}");
    }
    for pid in wrappers.iter().chain(&[foreign.0.id(), host, pid]) {
        assert!(stat(*pid).is_some_and(|(state, ..)| state != 'Z'), "{pid} is gone");
    }
    // The control: the same way reaches the session's own.
    assert_eq!(lab.act(signal(&mine, "KILL")).await.unwrap().observed["ended"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn r9_a_process_that_went_after_the_yes_is_not_signalled() {
    let lab = lab().await;
    let mine = started(&lab, "sleep", &["705"]).await;
    let inspection = lab.inspect(signal(&mine, "TERM")).await.unwrap();
    let permit = lab.permit(&inspection).await;
    Command::new("kill").args(["-KILL", &parts(&mine).0.to_string()]).status().unwrap();
    eventually("it is gone", async || !runs(&mine)).await;
    let acted = lab.body.act(permit, inspection.resolved, CancellationToken::new()).await;
    assert_eq!(code(acted), ErrorCode::StateChanged);
}

#[tokio::test(flavor = "multi_thread")]
async fn prc_04_a_name_of_its_own_hides_and_shifts_nothing() {
    let lab = lab().await;
    for name in ["bwrap", "/.bodyguard/inner", "a) R 1 (b", "x\ny", "日本語プロセス名テスト"] {
        let exec = format!("exec -a '{name}' sleep 706");
        let done = started(&lab, "bash", &["-c", &exec]).await;
        let expected = format!("{name} 706");
        eventually(name, async || listed(&lab, &done).await.unwrap().command == expected).await;
        // Also as the system knows it, cut in the middle of a character.
        let named = format!("import ctypes,time;ctypes.CDLL(None).prctl(15,{:?}.encode());time.sleep(600)", name);
        let python = started(&lab, "python3", &["-c", &named]).await;
        assert_eq!(parts(&python).1, stat(parts(&python).0).unwrap().2, "{name}");
        assert!(listed(&lab, &python).await.is_some(), "{name}");
        for target in [done, python] {
            assert_eq!(lab.act(signal(&target, "TERM")).await.unwrap().observed["ended"], true, "{name}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn prc_08_what_a_program_starts_is_listed_and_ends_with_it() {
    let lab = lab().await;
    let text = "import os,time\nif os.fork()==0: os._exit(0)\nif os.fork()==0: os.setsid(); os.execvp('sleep',['sleep','707'])\ntime.sleep(600)";
    let program = started(&lab, "python3", &["-c", text]).await;
    eventually("both children", async || listing(&lab).await.len() == 3).await;
    let all = listing(&lab).await;
    let child = all.iter().find(|one| one.command == "sleep 707").unwrap().target.clone();
    let dead = all.iter().find(|one| one.state == "ended").unwrap().target.clone();
    assert_eq!(stat(parts(&dead).0).unwrap().0, 'Z');
    assert_eq!(code(lab.inspect(signal(&dead, "TERM")).await), ErrorCode::NotFound);
    assert!(runs(&child));
    lab.act(signal(&program, "TERM")).await.unwrap();
    eventually("the child is gone", async || !runs(&child)).await;
    eventually("its end is told", async || listing(&lab).await.len() == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn out_01_output_is_drained_and_only_its_end_is_kept() {
    let lab = lab().await;
    let host = lab.body.pid();
    let peak = || {
        let status = std::fs::read_to_string(format!("/proc/{host}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().to_owned();
        line.trim().split(' ').next().unwrap().parse::<u64>().unwrap()
    };
    let before = peak();
    let text = "yes 0123456789 | head -c 50000000; echo; echo END >&2; touch done; sleep 708";
    let noisy = started(&lab, "sh", &["-c", text]).await;
    eventually("all is written", async || lab.root().join("done").exists()).await;
    eventually("the end is kept", async || {
        listed(&lab, &noisy).await.unwrap().output_tail.is_some_and(|tail| tail.contains("END"))
    })
    .await;
    let tail = listed(&lab, &noisy).await.unwrap().output_tail.unwrap();
    assert!(tail.len() <= 2_000 && tail.contains("0123456789"), "{tail}");
    assert!(peak() < before + 16_000, "{} KiB after {before} KiB", peak());
}

#[tokio::test(flavor = "multi_thread")]
async fn r9_a_hundred_programs_leave_nothing_behind() {
    let lab = lab().await;
    let host = lab.body.pid();
    let threads = || std::fs::read_dir(format!("/proc/{host}/task")).unwrap().count();
    // A process that can't be traced shows its descriptors to root alone.
    let descriptors = || std::fs::read_dir(format!("/proc/{host}/fd")).map_or(0, std::iter::Iterator::count);
    let cycle = async |count: usize| {
        for _ in 0..count {
            let done = lab.act(spawn("true", json!({}))).await.unwrap();
            assert_eq!(done.status, OutcomeStatus::Success);
        }
        eventually("all ended", async || below(host).is_empty()).await;
    };
    cycle(3).await;
    // What reads requests, and what starts programs.
    eventually("all is cleared away", async || threads() == 2).await;
    let before = descriptors();
    cycle(100).await;
    eventually("threads and descriptors are back", async || threads() == 2 && descriptors() <= before).await;
    let all = listing(&lab).await;
    assert_eq!(all.len(), 32, "the last ones are told of");
    assert!(all.iter().all(|one| one.state == "ended" && one.exit_code == Some(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn r9_more_programs_than_a_session_may_have_are_refused() {
    let lab = lab().await;
    let mut targets = Vec::new();
    for _ in 0..32 {
        targets.push(started(&lab, "sleep", &["709"]).await);
    }
    assert_eq!(code(lab.act(spawn("sleep", json!({"args":["709"]}))).await), ErrorCode::BudgetExceeded);
    assert_eq!(listing(&lab).await.len(), 32);
    lab.act(signal(&targets[0], "TERM")).await.unwrap();
    eventually("its place is free", async || listed(&lab, &targets[0]).await.unwrap().state == "ended").await;
    started(&lab, "sleep", &["709"]).await;
    drop(lab);
    for target in targets {
        eventually("it ended with the session", async || !runs(&target)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r9_programs_end_with_the_session() {
    let lab = lab().await;
    let target = started(&lab, "sh", &["-c", "trap '' TERM HUP; while :; do sleep 710; done"]).await;
    let below = below(lab.body.pid());
    assert!(runs(&target) && below.len() >= 4);
    drop(lab);
    eventually("all is gone", async || !runs(&target) && below.iter().all(|&pid| stat(pid).is_none())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r9_programs_end_when_the_host_is_killed() {
    let lab = lab().await;
    let target = started(&lab, "sleep", &["711"]).await;
    let host = lab.body.pid();
    let below = below(host);
    assert!(runs(&target));
    Command::new("kill").args(["-KILL", &host.to_string()]).status().unwrap();
    eventually("all is gone", async || !runs(&target) && below.iter().all(|&pid| stat(pid).is_none())).await;
    assert_eq!(code(lab.act(spawn("true", json!({}))).await), ErrorCode::BodyLost);
}

async fn simulated() -> Lab<SimulatorBody> {
    let (folder, root) = workspace();
    let root = root.to_str().unwrap().to_owned();
    Lab::around(SimulatorBody::new(SimulatorConfig::for_root(&root)), folder, &root).await
}

/// What a body answers to a life of programs, without the numbers of processes.
async fn answers<B: Body>(lab: &Lab<B>) -> Vec<String> {
    let mut told = Vec::new();
    let mut tell = |answer: Result<Effect, bodyguard_protocol::Fault>| {
        told.push(match answer {
            Ok(effect) => {
                let mut observed = effect.observed;
                observed.as_object_mut().unwrap().remove("target");
                format!("{:?} {observed}", effect.status)
            }
            Err(fault) => format!("{:?} {:?}", fault.code, fault.field),
        });
    };
    let sleeping = lab.act(spawn("sleep", json!({"args":["712"]}))).await;
    let target = target(sleeping.as_ref().unwrap());
    tell(sleeping);
    for (program, args) in [("echo", json!(["a  b", "c"])), ("false", json!([]))] {
        let done = lab.act(spawn(program, json!({"args":args}))).await.unwrap();
        comes_to(lab, &self::target(&done), "ended").await;
    }
    tell(lab.act(spawn("no-such-program", json!({}))).await);
    tell(lab.act(spawn("sleep", json!({"args":["712"],"cwd":"/etc"}))).await);
    for (name, state) in [("STOP", "stopped"), ("TERM", "stopped"), ("CONT", "ended"), ("KILL", "ended")] {
        tell(lab.act(signal(&target, name)).await);
        comes_to(lab, &target, state).await;
    }
    tell(lab.act(signal("process:99999999:0", "TERM")).await);
    tell(lab.act(signal("sleep", "TERM")).await);
    for one in listing(lab).await {
        told_state(&mut tell, &one);
    }
    told
}

async fn comes_to<B: Body>(lab: &Lab<B>, target: &str, state: &str) {
    eventually(state, async || listed(lab, target).await.is_some_and(|one| one.state == state)).await;
}

fn told_state(tell: &mut impl FnMut(Result<Effect, bodyguard_protocol::Fault>), one: &ProcessEntry) {
    let mut observed = serde_json::to_value(one).unwrap();
    observed["target"] = Value::Null;
    tell(Ok(Effect { status: OutcomeStatus::Success, observed, error: None, image: None, latency_ms: 0 }));
}

#[tokio::test(flavor = "multi_thread")]
async fn r72_host_and_simulator_run_programs_alike() {
    let (simulated, hosted) = (simulated().await, lab().await);
    assert_eq!(answers(&simulated).await, answers(&hosted).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn r72_simulated_programs_are_deterministic() {
    let (one, two) = (simulated().await, simulated().await);
    assert_eq!(answers(&one).await, answers(&two).await);
    assert_eq!(listing(&one).await, listing(&two).await);
    assert!(listed(&one, "process:1:0").await.is_some());
    for _ in 0..32 {
        started(&one, "sleep", &[]).await;
    }
    assert_eq!(code(one.act(spawn("sleep", json!({}))).await), ErrorCode::BudgetExceeded);
}
