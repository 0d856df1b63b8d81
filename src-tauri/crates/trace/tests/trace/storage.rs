//! The data folder: who may look into it, who owns it, which format it has, and what happens when
//! the disk doesn't take any more.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use bodyguard_protocol::{Digest, ErrorCode, Fault};
use bodyguard_trace::{Log, LogError, Options};
use rusqlite::Connection;
use serde_json::json;

use crate::crash::{again, folder};
use crate::world::*;

fn modes(dir: &Path, found: &mut Vec<(std::path::PathBuf, u32)>) {
    found.push((dir.to_owned(), std::fs::metadata(dir).unwrap().permissions().mode() & 0o7777));
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            modes(&path, found);
        } else {
            let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
            found.push((path, mode));
        }
    }
}

/// Writes a log under other umasks, in a process of its own: the umask belongs to the process.
#[test]
fn umask_process() {
    let Some(folder) = folder() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for (name, mask) in [("open", 0o000), ("closed", 0o277)] {
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(mask));
        runtime.block_on(async {
            let dir = folder.join(name);
            let log = open(&dir);
            let session = session(&log).await;
            act(&log, &session, "make").await;
            log.put_blob(b"pixels".to_vec()).await.unwrap();
            let mut found = Vec::new();
            modes(&dir, &mut found);
            // The folder, the log, its two helpers, the lock, a blob in two folders.
            assert!(found.len() >= 8, "{found:?}");
            for (path, mode) in found {
                let expected = if path.is_dir() { 0o700 } else { 0o600 };
                assert_eq!(mode, expected, "{} has {mode:o}", path.display());
            }
        });
    }
    println!("modes hold");
}

#[test]
fn apr_30_nothing_is_readable_by_others_whatever_the_umask() {
    let dir = tempfile::tempdir().unwrap();
    let output = again("storage::umask_process", dir.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("modes hold"), "{text}");
}

#[test]
fn apr_30_a_folder_that_others_could_enter_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::set_permissions(&data, PermissionsExt::from_mode(0o755)).unwrap();
    let _log = open(&data);
    assert_eq!(std::fs::metadata(&data).unwrap().permissions().mode() & 0o777, 0o700);
}

/// Owns a folder until its standard input ends.
#[test]
fn owner_process() {
    let Some(folder) = folder() else { return };
    let _log = open(&folder);
    println!("\nowned");
    let mut text = String::new();
    std::io::stdin().read_line(&mut text).unwrap();
}

#[tokio::test]
async fn sto_02_a_folder_has_one_owner_by_whatever_path() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let log = open(&data);
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(&data, &link).unwrap();
    for path in [&data, &link, &dir.path().join("link/../data")] {
        let second = Log::open(path, TickingClock::new());
        assert_eq!(second.unwrap_err(), LogError::Owned { pid: std::process::id() }, "{}", path.display());
    }
    let copy = log.clone();
    drop(log);
    assert!(matches!(Log::open(&data, TickingClock::new()), Err(LogError::Owned { .. })));
    drop(copy);
    drop(open(&data));

    let mut child =
        again("storage::owner_process", &data).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    assert!(lines.any(|line| line.unwrap() == "owned"));
    assert_eq!(Log::open(&link, TickingClock::new()).unwrap_err(), LogError::Owned { pid: child.id() });
    // Reading needs no ownership.
    Log::open_readonly(&link).unwrap().counts().await.unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    drop(open(&link));
}

#[tokio::test]
async fn sto_07_a_newer_log_is_refused_and_left_alone() {
    let World { dir, log } = world().await;
    log.close().await.unwrap();
    drop(log);
    let path = dir.path().join("log.db");
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 2).unwrap();
    let before = Digest::of(&std::fs::read(&path).unwrap());
    let newer = LogError::Newer { found: 2, known: 1 };
    assert_eq!(Log::open(dir.path(), TickingClock::new()).unwrap_err(), newer);
    assert_eq!(Log::open_readonly(dir.path()).unwrap_err(), newer);
    let text = newer.to_string();
    assert!(text.contains("format 2") && text.contains("up to 1"), "{text}");
    assert_eq!(Digest::of(&std::fs::read(&path).unwrap()), before);
}

#[test]
fn sto_07_a_file_that_is_no_log_is_refused_and_left_alone() {
    for content in [&b"not a database, but a text that is longer than a hundred bytes. ".repeat(4)[..], b"short"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.db");
        std::fs::write(&path, content).unwrap();
        assert_eq!(Log::open(dir.path(), TickingClock::new()).unwrap_err(), LogError::Foreign(path.clone()));
        assert_eq!(std::fs::read(&path).unwrap(), content);
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.db");
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE other(x)").unwrap();
    assert_eq!(Log::open(dir.path(), TickingClock::new()).unwrap_err(), LogError::Foreign(path));
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(Log::open_readonly(empty.path()).unwrap_err(), LogError::NoLog(empty.path().to_owned()));
}

#[tokio::test]
async fn sto_05_nothing_begins_without_room_for_its_outcome() {
    let World { dir, log } = world().await;
    let session = session(&log).await;
    let (_, running) = begun(&log, &session, "make").await;
    log.close().await.unwrap();
    drop(log);
    let full = Options { reserve_bytes: u64::MAX, ..Options::default() };
    let log = Log::open_with(dir.path(), TickingClock::new(), full).unwrap();
    log.set_signer(signer());
    let before = leaves(&log).await;
    let refused = log.commit_intent(intent(&session, read("/w/a"), None)).await.unwrap_err();
    assert_eq!(Fault::from(refused).code, ErrorCode::NoRoomToRecord);
    let refused = log.open_ask(ask(&session, &shell("x"), &log)).await.unwrap_err();
    assert_eq!(Fault::from(refused).code, ErrorCode::NoRoomToRecord);
    assert!(matches!(log.put_blob(b"x".to_vec()).await, Err(LogError::NoRoom(_))));
    assert_eq!(leaves(&log).await, before);
    // What runs already is still recorded.
    log.record_outcome(running.reference(), success(json!({}))).await.unwrap();
    assert_holds(log.reader());
}

/// Writes until the file may not grow any more, with the signal for that ignored.
#[test]
fn limited_process() {
    let Some(folder) = folder() else { return };
    println!();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let log = open(&folder);
        let session = session(&log).await;
        loop {
            let committed = log.commit_intent(intent(&session, read("/w/a"), None)).await;
            let committed = match committed {
                Ok(committed) => committed,
                Err(error) => return println!("failed {:?}", Fault::from(error).code),
            };
            let seq = committed.reference().intent_seq();
            println!("acked {seq}");
            let big = success(json!({"content": "x".repeat(20_000)}));
            match log.record_outcome(committed.reference(), big).await {
                Ok(seq) => println!("acked {seq}"),
                Err(error) => return println!("failed {:?}", Fault::from(error).code),
            }
        }
    });
}

#[tokio::test]
async fn sto_05_a_write_that_fails_is_not_acknowledged_and_the_rest_holds() {
    let World { dir, log } = world().await;
    log.close().await.unwrap();
    drop(log);
    let child = again("storage::limited_process", dir.path());
    let mut shell = std::process::Command::new("sh");
    // 1,000 blocks of 512 bytes, far less than the test would write.
    shell
        .args(["-c", "trap '' XFSZ; ulimit -f 1000; exec \"$0\" \"$@\""])
        .arg(child.get_program())
        .args(child.get_args());
    shell.envs(child.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = shell.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let code = text.lines().find_map(|line| line.strip_prefix("failed "));
    assert!(matches!(code, Some("StorageFailure" | "NoRoomToRecord")), "{text}");
    let acked: Vec<u64> = text.lines().filter_map(|line| line.strip_prefix("acked ")?.parse().ok()).collect();
    assert!(acked.len() > 4, "{text}");
    let log = open(dir.path());
    for seq in &acked {
        assert!(log.reader().leaf(*seq).await.unwrap().is_some());
    }
    log.recover().await.unwrap();
    assert_holds(log.reader());
    let session = session(&log).await;
    act(&log, &session, "goes on").await;
    assert_holds(log.reader());
}

/// Fills a small disk, is refused, makes room, and goes on.
#[test]
fn full_disk_process() {
    let Some(folder) = folder() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let options = Options { reserve_bytes: 0, ..Options::default() };
        let log = Log::open_with(&folder.join("data"), TickingClock::new(), options).unwrap();
        log.set_signer(signer());
        let session = session(&log).await;
        let filler = folder.join("filler");
        std::fs::write(&filler, vec![1; 1 << 20]).unwrap();
        let refused = loop {
            let committed = log.commit_intent(intent(&session, read("/w/a"), None)).await;
            let Ok(committed) = committed else { break committed.map(drop) };
            let big = success(json!({"content": "x".repeat(50_000)}));
            if let Err(error) = log.record_outcome(committed.reference(), big).await {
                break Err(error);
            }
        };
        assert_eq!(Fault::from(refused.unwrap_err()).code, ErrorCode::NoRoomToRecord);
        let blob = log.put_blob(vec![2; 1 << 22]).await.unwrap_err();
        assert_eq!(Fault::from(blob).code, ErrorCode::NoRoomToRecord);
        std::fs::remove_file(&filler).unwrap();
        act(&log, &session, "goes on").await;
        assert_holds(log.reader());
    });
    println!("goes on by itself");
}

#[test]
fn sto_05_a_full_disk_is_no_room_to_record_and_heals_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let child = again("storage::full_disk_process", dir.path());
    let mut namespace = std::process::Command::new("unshare");
    let script = "mount -t tmpfs -o size=4m none \"$1\" && shift && exec \"$@\"";
    namespace.args(["--map-root-user", "--mount", "sh", "-c", script, "sh"]).arg(dir.path());
    namespace.arg(child.get_program()).args(child.get_args());
    namespace.envs(child.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = namespace.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("goes on by itself"), "{text}{errors}");
}

#[tokio::test]
async fn a_closed_log_takes_nothing_and_gives_the_folder_free() {
    let World { dir, log } = world().await;
    let other = log.clone();
    log.close().await.unwrap();
    assert_eq!(other.checkpoint().await, Err(LogError::Closed));
    assert_eq!(other.close().await, Err(LogError::Closed));
    drop(open(dir.path()));
    // Reading goes on.
    assert!(other.reader().counts().await.unwrap().leaves > 0);
}

#[tokio::test]
async fn a_checkpoint_comes_at_the_latest_after_256_leaves() {
    let world = world().await;
    let session = session(&world.log).await;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..300 {
        let (log, session) = (world.log.clone(), session.clone());
        tasks.spawn(async move {
            log.commit_intent(intent(&session, read(&format!("/w/{number}")), None)).await.unwrap().edge_id()
        });
    }
    tasks.join_all().await;
    let report = verified(world.log.reader());
    assert!(report.ok, "{:#?}", report.problems);
    let conn = Connection::open(world.dir.path().join("log.db")).unwrap();
    let last: u64 = conn.query_row("SELECT max(size) FROM checkpoints", [], |row| row.get(0)).unwrap();
    assert!(report.leaves - last < 256, "{last} of {}", report.leaves);
}
