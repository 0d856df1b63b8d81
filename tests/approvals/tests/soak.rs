//! Long use (`./dev test --long soak`): sessions come and go for half an hour, or `SOAK_SECONDS`, and
//! nothing piles up: descriptors, threads, processes, memory.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use approvals::{SOON, Scene, begin, code, verify};
use harness::{Agent as _, poll};
use serde_json::{Value, json};

/// So many that an agent's sessions, which make room after a minute, don't run out.
const ROUNDS_OF_A_SESSION: u32 = 12;
/// Rounds until everything that is kept once has been made.
const WARM: u32 = 240;

/// What could pile up in the app.
#[derive(Debug, Clone, Copy)]
struct Size {
    descriptors: usize,
    threads: usize,
    children: usize,
    kib: u64,
}

fn size(scene: &Scene) -> Result<Size> {
    let pid = scene.app.pid()?;
    let count = |what: &str| -> Result<usize> { Ok(std::fs::read_dir(format!("/proc/{pid}/{what}"))?.count()) };
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let anonymous = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).context("no RssAnon")?;
    let kib = anonymous.trim().trim_end_matches("kB").trim().parse()?;
    let children = scene.app.descendants().len();
    Ok(Size { descriptors: count("fd")?, threads: count("task")?, children, kib })
}

/// One connection: it looks, reads, edits in vain and asks for a command, in a session that every
/// twelfth begins anew.
fn round(scene: &mut Scene, session: &mut Value, number: u32) -> Result<()> {
    let mut agent = scene.app.agent("tester")?;
    agent.initialize()?;
    if number.is_multiple_of(ROUNDS_OF_A_SESSION) {
        *session = begin(&mut agent)?;
    }
    let session = &*session;
    let note = scene.workspace.path().join("note.md");
    let look = |mode: &str| json!({ "session_id": session, "mode": mode });
    for mode in ["filesystem", "git", "process", "shell"] {
        let seen = agent.call("body_os_perceive", look(mode))?;
        ensure!(!seen.is_error, "{}", seen.text);
    }
    let act = |action: Value, wait_ms: u64| json!({ "session_id": session, "action": action, "wait_ms": wait_ms });
    let read = agent.call("body_os_act", act(json!({ "type": "file_read", "target": note }), 1000))?;
    ensure!(read.text_at("/outcome_status") == "success", "{}", read.text);
    let edit = json!({ "type": "file_edit", "target": note, "params": { "edits": [{ "old": "absent", "new": "x" }] } });
    let refused = agent.call("body_os_act", act(edit, 1000))?;
    ensure!(code(&refused) == "match_count_mismatch", "{}", refused.text);
    agent.call("body_os_perceive", look("filesystem"))?;
    let outside = agent.call("body_os_act", act(json!({ "type": "file_read", "target": "/etc/shadow" }), 1000))?;
    ensure!(code(&outside) == "denied_by_policy", "{}", outside.text);
    // Every tenth command is approved by the person, and one more is left alone and withdrawn.
    if number.is_multiple_of(10) {
        let run =
            json!({ "type": "shell_exec", "target": scene.root(), "params": { "command": format!("echo {number}") } });
        let id = agent.begin_call("body_os_act", act(run, 300_000))?;
        if number > 0 {
            scene.next_request()?;
        }
        scene.person.approve(SOON)?;
        let done = agent.wait_call(id, SOON)?;
        ensure!(done.text_at("/outcome_status") == "success", "{}", done.text);
    }
    Ok(())
}

#[test]
#[ignore = "long: ./dev test --long soak"]
fn long_use_leaves_nothing_behind() -> Result<()> {
    let seconds = std::env::var("SOAK_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1800);
    let mut scene = Scene::start()?;
    scene.workspace.write("note.md", "one\n")?;
    let end = Instant::now() + Duration::from_secs(seconds);
    let (mut number, mut session) = (0, Value::Null);
    let mut early = None;
    while Instant::now() < end || number < 2 * WARM {
        round(&mut scene, &mut session, number).with_context(|| format!("round {number}"))?;
        number += 1;
        if number == WARM {
            early = Some(size(&scene)?);
        }
    }
    let early = early.context("too few rounds")?;
    // Sessions that were left alone make room within a minute; what is looked at is what stays.
    let late = poll(Duration::from_secs(180), || {
        let late = size(&scene).ok()?;
        let fits = late.descriptors <= early.descriptors + 16 && late.threads <= early.threads + 8;
        (fits && late.children <= early.children + 2).then_some(late)
    });
    let now = size(&scene)?;
    println!("{number} rounds; after {WARM}: {early:?}; at the end: {now:?}");
    let late = late.with_context(|| format!("after {WARM} rounds {early:?}, after {number} {now:?}"))?;
    ensure!(late.kib < early.kib * 2 + 64 * 1024, "memory grew: {early:?} {late:?}");
    let (holds, report) = verify(&scene.app)?;
    ensure!(holds, "{report}");
    Ok(())
}
