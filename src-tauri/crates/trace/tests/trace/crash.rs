//! A writer that is killed at any moment: what it acknowledged is there, what it hadn't ended shows
//! as interrupted, and nothing is half there.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bodyguard_protocol::ui::AskState;
use bodyguard_trace::{Log, MoveNote, Record};
use serde_json::json;

use crate::world::*;

const FOLDER: &str = "BODYGUARD_TRACE_TEST_FOLDER";

/// This test binary again, running one test as another process on a folder.
pub(crate) fn again(test: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(FOLDER, folder);
    command
}

/// The folder, in a process that [`again`] started.
pub(crate) fn folder() -> Option<std::path::PathBuf> {
    std::env::var_os(FOLDER).map(Into::into)
}

/// Says that something is acknowledged.
fn acknowledged(what: &str, seq: u64) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "ack {what} {seq}").unwrap();
    out.flush().unwrap();
}

/// What the killed process does; in the test run itself it does nothing.
#[test]
fn writer_process() {
    let Some(folder) = folder() else { return };
    // The test runner's own words stand on this line.
    println!();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let log = open(&folder);
        log.recover().await.unwrap();
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..3 {
            tasks.spawn(write_forever(log.clone()));
        }
        tasks.join_all().await;
    });
}

async fn write_forever(log: Log) {
    let session = session(&log).await;
    loop {
        let waiting = ask(&session, &shell("wait"), &log);
        let seq = log.open_ask(waiting.clone()).await.unwrap();
        acknowledged("ask_opened", seq);
        log.put_blob(waiting.ask_id.as_str().as_bytes().to_vec()).await.unwrap();
        let (_, committed) = begun(&log, &session, "make").await;
        acknowledged("intent", committed.reference().intent_seq());
        // The act takes its time.
        tokio::time::sleep(Duration::from_millis(15)).await;
        let seq =
            log.record_outcome(committed.reference(), success(json!({"stdout": "x".repeat(3000)}))).await.unwrap();
        acknowledged("outcome", seq);
        let seq =
            log.move_ask(&waiting.ask_id, AskState::Open, AskState::Withdrawn, MoveNote::default()).await.unwrap();
        acknowledged("ask_moved", seq);
    }
}

/// Starts the writer, kills it when it has acknowledged some records and a little more time has
/// passed, and gives what it acknowledged.
fn run_and_kill(folder: &Path, records: usize, delay: Duration) -> Vec<(String, u64)> {
    let mut child: Child = again("crash::writer_process", folder).stdout(Stdio::piped()).spawn().unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let (sender, lines) = std::sync::mpsc::sync_channel(100_000);
    let reader = std::thread::spawn(move || {
        for line in stdout.lines().map_while(Result::ok) {
            if let Some(("ack", rest)) = line.split_once(' ')
                && let Some((what, seq)) = rest.split_once(' ')
                && let Ok(seq) = seq.parse()
            {
                sender.send((what.to_owned(), seq)).unwrap();
            }
        }
    });
    let started = Instant::now();
    let mut acknowledged = Vec::new();
    while acknowledged.len() < records {
        let left = Duration::from_secs(120).saturating_sub(started.elapsed());
        acknowledged.push(lines.recv_timeout(left).expect("the writer acknowledges"));
    }
    std::thread::sleep(delay);
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap();
    acknowledged.extend(lines.try_iter());
    acknowledged
}

#[tokio::test]
async fn apr_09_nothing_acknowledged_is_lost_and_what_was_cut_off_is_interrupted() {
    let World { dir, log } = world().await;
    log.close().await.unwrap();
    drop(log);
    let (mut interrupted, mut withdrawn) = (0, 0);
    for round in 0..8_u64 {
        let delay = Duration::from_micros(round * 1_700);
        let acknowledged = run_and_kill(dir.path(), 8 + usize::try_from(round).unwrap(), delay);
        // Before anybody repairs anything, the file holds as it is.
        assert_holds(&Log::open_readonly(dir.path()).unwrap());
        let log = open(dir.path());
        for (what, seq) in &acknowledged {
            let leaf = log.reader().leaf(*seq).await.unwrap().expect("an acknowledged leaf");
            assert_eq!(leaf.leaf.record.kind(), what);
        }
        let open = unended(&log).await;
        let recovery = log.recover().await.unwrap();
        let found: Vec<u64> = recovery.interrupted.iter().map(|edge| edge.edge_id).collect();
        assert_eq!(found, open);
        assert!((1..=3).contains(&recovery.sessions.len()));
        for edge in &recovery.interrupted {
            assert_eq!(state(&log, edge.ask_id.as_ref().unwrap()).await, AskState::Interrupted);
        }
        for ask_id in &recovery.withdrawn {
            let ask = log.reader().ask(ask_id).await.unwrap().unwrap();
            assert_eq!((ask.state, ask.reason.as_deref()), (AskState::Withdrawn, Some("supervisor_restarted")));
        }
        interrupted += recovery.interrupted.len();
        withdrawn += recovery.withdrawn.len();
        assert_eq!(log.recover().await.unwrap(), bodyguard_trace::Recovery::default());
        assert_eq!(log.reader().counts().await.unwrap().open_asks, 0);
        assert_holds(log.reader());
        log.close().await.unwrap();
    }
    // The kills did hit something.
    assert!(interrupted + withdrawn > 0, "{interrupted} acts and {withdrawn} asks were cut off");
    let torn = std::fs::read_dir(dir.path().join("blobs")).unwrap();
    assert!(torn.filter_map(Result::ok).all(|entry| !entry.file_name().to_string_lossy().starts_with("tmp-")));
}

/// The edges that have an intent and nothing that ends it, from the leaves alone.
async fn unended(log: &Log) -> Vec<u64> {
    let mut open = BTreeMap::new();
    let mut from = 1;
    loop {
        let page = log.reader().leaves(from, 500).await.unwrap();
        let Some(last) = page.last() else { break };
        from = last.seq + 1;
        for leaf in &page {
            match &leaf.leaf.record {
                Record::Intent(intent) => {
                    open.insert((intent.trace_id.clone(), intent.edge_id), leaf.seq);
                }
                Record::Outcome(outcome) => {
                    open.remove(&(outcome.trace_id.clone(), outcome.edge_id));
                }
                Record::Interrupted(cut) => {
                    cut.edge_id.map(|edge_id| open.remove(&(cut.trace_id.clone(), edge_id)));
                }
                _ => {}
            }
        }
    }
    let mut open: Vec<(u64, u64)> = open.into_iter().map(|((_, edge_id), seq)| (seq, edge_id)).collect();
    open.sort_unstable();
    open.into_iter().map(|(_, edge_id)| edge_id).collect()
}

#[tokio::test]
async fn a_start_ends_what_the_last_run_left() {
    let world = world().await;
    let session = session(&world.log).await;
    let (running, _intent) = begun(&world.log, &session, "make").await;
    let (claimed_ask, _) = claimed(&world.log, &session, &shell("two")).await;
    let open_ask = ask(&session, &shell("three"), &world.log);
    world.log.open_ask(open_ask.clone()).await.unwrap();
    act(&world.log, &session, "done").await;
    let World { dir, log } = world;
    drop(log);
    let log = open(dir.path());
    let recovery = log.recover().await.unwrap();
    assert_eq!(recovery.interrupted.iter().map(|edge| edge.edge_id).collect::<Vec<_>>(), [1]);
    assert_eq!(recovery.interrupted_asks, [running.ask_id.clone(), claimed_ask.ask_id]);
    assert_eq!(recovery.withdrawn, [open_ask.ask_id]);
    assert_eq!(recovery.sessions, std::slice::from_ref(&session.session_id));
    let edge = log.reader().edge(&session.trace_id, 1).await.unwrap().unwrap();
    assert_eq!(edge.summary.error, Some(bodyguard_protocol::ErrorCode::Interrupted));
    let late = log.move_ask(&running.ask_id, AskState::Executing, AskState::Done, MoveNote::default()).await;
    assert!(late.is_err());
    assert_holds(log.reader());
}
