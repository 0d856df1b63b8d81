//! Every kind of change to a log is found, and the first bad leaf is named first.

use std::path::Path;

use bodyguard_protocol::{Digest, QueryMode};
use bodyguard_trace::{
    AgentRow, ChangeNote, Checkpoint, DeviceRow, Log, LogReader, Perceived, PolicyLoaded, Record, SettingChange,
    VerifyReport, WorkspaceBody, WorkspaceRow, leaf_hash,
};
use rusqlite::{Connection, params};
use tempfile::TempDir;

use crate::world::*;

/// A log with some of everything, closed.
async fn filled() -> TempDir {
    let World { dir, log } = world().await;
    let by = || ChangeNote::by("person");
    let agent = AgentRow {
        name: "tester".parse().unwrap(),
        token_sha256: Digest::of(b"token"),
        workspaces: vec!["main".parse().unwrap()],
        added_at: bodyguard_protocol::Timestamp::from_millis(5),
    };
    let workspace = WorkspaceRow {
        name: "main".parse().unwrap(),
        root: "/w".into(),
        body: WorkspaceBody::Host,
        template: "careful".into(),
        key_processes: vec!["bash".into()],
        env_allow: vec!["LANG".into()],
    };
    let device = DeviceRow { name: "Mouse".into(), kind: "pointer".into(), enrolled: true };
    let phrase = SettingChange::Value { key: "phrase".into(), value: "blue heron".into() };
    let changes =
        vec![SettingChange::Agent(agent), SettingChange::Workspace(workspace), SettingChange::Device(device), phrase];
    log.change_all(changes, by()).await.unwrap();
    let policy =
        PolicyLoaded { workspace: "main".parse().unwrap(), digest: Digest::of(b"permit"), text: "permit".into() };
    log.append(Record::PolicyLoaded(policy)).await.unwrap();
    assert_eq!(log.reader().last_policy(&"main".parse().unwrap()).await.unwrap().as_deref(), Some("permit"));
    let session = session(&log).await;
    let picture = log.put_blob(b"pixels".to_vec()).await.unwrap();
    let look = Perceived {
        session_id: session.session_id.clone(),
        trace_id: session.trace_id.clone(),
        mode: QueryMode::Screen,
        generation: 1,
        state_hash: Digest::of(b"before"),
        policy_id: "policy:main/look".into(),
        authorization: None,
        picture: Some(picture),
        seen: None,
    };
    log.append(Record::Perceived(Box::new(look))).await.unwrap();
    act(&log, &session, "one").await;
    act(&log, &session, "two").await;
    log.open_ask(ask(&session, &shell("three"), &log)).await.unwrap();
    log.close().await.unwrap();
    dir
}

fn db(dir: &Path) -> Connection {
    let conn = Connection::open(dir.join("log.db")).unwrap();
    conn.pragma_update(None, "foreign_keys", false).unwrap();
    conn
}

fn copy(from: &Path) -> TempDir {
    let to = tempfile::tempdir().unwrap();
    copy_into(from, to.path());
    to
}

fn copy_into(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir(&target).unwrap();
            copy_into(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn report(dir: &Path) -> VerifyReport {
    let reader: LogReader = Log::open_readonly(dir).unwrap();
    verified(&reader)
}

fn seq_of(conn: &Connection, kind: &str) -> u64 {
    conn.query_row("SELECT min(seq) FROM leaves WHERE kind = ?1", [kind], |row| row.get(0)).unwrap()
}

/// Replaces text in a leaf; with `rehash` also the stored hash, as somebody would who knows how.
fn rewrite(conn: &Connection, seq: u64, from: &str, to: &str, rehash: bool) {
    let bytes: Vec<u8> = conn.query_row("SELECT bytes FROM leaves WHERE seq = ?1", [seq], |row| row.get(0)).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.contains(from), "{text}");
    let text = text.replacen(from, to, 1);
    conn.execute("UPDATE leaves SET bytes = ?2 WHERE seq = ?1", params![seq, text.as_bytes()]).unwrap();
    if rehash {
        let hash = leaf_hash(text.as_bytes());
        conn.execute("UPDATE leaves SET hash = ?2 WHERE seq = ?1", params![seq, hash.as_slice()]).unwrap();
    }
}

#[track_caller]
fn assert_found(dir: &Path, what: &str, first: Option<u64>, words: &str) {
    let report = report(dir);
    assert!(!report.ok, "{what} wasn't found");
    let problem = &report.problems[0];
    assert_eq!(problem.seq, first, "{what}: {:#?}", report.problems);
    assert!(report.problems.iter().any(|p| p.text.contains(words)), "{what}: {:#?}", report.problems);
    let order: Vec<u64> = report.problems.iter().map(|p| p.seq.unwrap_or(u64::MAX)).collect();
    assert!(order.is_sorted(), "{what}: {order:?}");
}

#[tokio::test]
async fn an_untouched_log_verifies() {
    let dir = filled().await;
    let report = report(dir.path());
    assert!(report.ok, "{:#?}", report.problems);
    assert_eq!(report.blocks, 2);
    assert!(report.checkpoints >= 3);
    assert!(report.leaves > 15);
    // A copy is as good, and so is a log that was opened again.
    let copied = copy(dir.path());
    open(copied.path()).close().await.unwrap();
    assert!(self::report(copied.path()).ok);
}

#[tokio::test]
async fn changed_leaves_are_found_and_named() {
    let original = filled().await;
    let size: u64 = db(original.path()).query_row("SELECT max(seq) FROM leaves", [], |row| row.get(0)).unwrap();
    for seq in 1..=size {
        let dir = copy(original.path());
        rewrite(&db(dir.path()), seq, "\"v\":1", "\"v\":2", false);
        assert_found(dir.path(), "a changed leaf", Some(seq), &format!("leaf {seq} was changed"));
    }
    for (kind, from, to) in [
        ("perceived", "\"generation\":1", "\"generation\":2"),
        ("session_began", "test the log", "test the lag"),
        ("ask_opened", "\"please\"", "\"plaese\""),
        ("outcome", "\"latency_ms\":5", "\"latency_ms\":6"),
        ("intent", "\"program\":\"/bin/sh\"", "\"program\":\"/bin/zh\""),
        ("setting_changed", "\"kept_in\":\"test\"", "\"kept_in\":\"best\""),
    ] {
        let dir = copy(original.path());
        let conn = db(dir.path());
        let seq = seq_of(&conn, kind);
        rewrite(&conn, seq, from, to, true);
        drop(conn);
        let report = report(dir.path());
        let first = report.problems.first().unwrap_or_else(|| panic!("a rewritten {kind} wasn't found"));
        assert!(first.seq.is_some_and(|first| first <= seq), "{kind}: {:#?}", report.problems);
        assert!(report.problems.iter().any(|p| p.text.contains("aren't those that were signed")), "{kind}");
    }
}

#[tokio::test]
async fn missing_moved_and_added_leaves_are_found_and_named() {
    let original = filled().await;
    let size: u64 = db(original.path()).query_row("SELECT max(seq) FROM leaves", [], |row| row.get(0)).unwrap();
    for seq in 1..size {
        let dir = copy(original.path());
        db(dir.path()).execute("DELETE FROM leaves WHERE seq = ?1", [seq]).unwrap();
        assert_found(dir.path(), "a missing leaf", Some(seq), &format!("leaf {seq} is missing"));
    }
    let dir = copy(original.path());
    db(dir.path()).execute("DELETE FROM leaves WHERE seq > ?1", [size - 2]).unwrap();
    assert_found(dir.path(), "a missing end", Some(size - 1), "the log's end is missing");
    let dir = copy(original.path());
    db(dir.path()).execute("DELETE FROM leaves", []).unwrap();
    assert_found(dir.path(), "an empty log", Some(1), "missing");

    let dir = copy(original.path());
    let conn = db(dir.path());
    let seq = seq_of(&conn, "perceived");
    let swap = "UPDATE leaves SET seq = CASE seq WHEN ?1 THEN -?2 ELSE -?1 END WHERE seq IN (?1, ?2)";
    conn.execute(swap, [seq, seq + 1]).unwrap();
    conn.execute("UPDATE leaves SET seq = -seq WHERE seq < 0", []).unwrap();
    drop(conn);
    let found = report(dir.path());
    assert!(found.problems[0].seq.is_some_and(|first| first <= seq), "{:#?}", found.problems);

    let dir = copy(original.path());
    let conn = db(dir.path());
    let copy_last = "INSERT INTO leaves SELECT seq + 1, kind, trace_id, at, bytes, hash FROM leaves WHERE seq = ?1";
    conn.execute(copy_last, [size]).unwrap();
    drop(conn);
    assert_found(dir.path(), "an added leaf", Some(size + 1), "can't stand here");
    let dir = copy(original.path());
    let conn = db(dir.path());
    conn.execute("UPDATE leaves SET trace_id = NULL WHERE seq = ?1", [seq]).unwrap();
    drop(conn);
    assert_found(dir.path(), "a changed column", Some(seq), "the columns beside it");
}

#[tokio::test]
async fn changed_tables_are_found_and_named() {
    let original = filled().await;
    for (table, sql) in [
        ("asks", "UPDATE asks SET state = 'approved' WHERE state = 'open'"),
        ("asks", "DELETE FROM asks WHERE state = 'open'"),
        ("sessions", "UPDATE sessions SET agent_id = 'other@main'"),
        ("edges", "UPDATE edges SET status = 'failure' WHERE edge_id = 2"),
        ("edges", "DELETE FROM edges WHERE edge_id = 2"),
        ("blocks", "DELETE FROM blocks"),
        ("used_blocks", "DELETE FROM used_blocks WHERE seq = (SELECT max(seq) FROM used_blocks)"),
        ("agents", "UPDATE agents SET token_sha256 = 'sha256:00'"),
        ("agents", "INSERT INTO agents VALUES('zed', 'sha256:00', '[]', 1)"),
        ("workspaces", "UPDATE workspaces SET root = '/'"),
        ("devices", "INSERT INTO devices VALUES('XTEST', 'pointer', 1)"),
        ("keys", "UPDATE keys SET public_key = '00'"),
        ("policies", "DELETE FROM policies"),
        ("settings", "UPDATE settings SET value = 'red heron'"),
    ] {
        let dir = copy(original.path());
        assert!(db(dir.path()).execute(sql, []).unwrap() > 0, "{sql}");
        assert_found(dir.path(), sql, None, &format!("the table `{table}`"));
    }
    let dir = copy(original.path());
    db(dir.path()).execute("UPDATE meta SET value = 'ff'", []).unwrap();
    assert!(!report(dir.path()).ok);
}

#[tokio::test]
async fn changed_checkpoints_are_found_and_named() {
    let original = filled().await;
    let conn = db(original.path());
    let (size, note): (u64, String) = conn
        .query_row("SELECT size, note FROM checkpoints ORDER BY size LIMIT 1 OFFSET 1", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    drop(conn);
    let set = |dir: &Path, note: &str| {
        db(dir).execute("UPDATE checkpoints SET note = ?2 WHERE size = ?1", params![size, note]).unwrap();
    };
    let other = bodyguard_trace::Signer::from_seed([1; 32]);
    let read = Checkpoint::parse(&note).unwrap();
    let root = hex::encode(read.root);
    for (what, bent) in [
        ("another root", note.replace(&root, &"0".repeat(64))),
        ("another key", Checkpoint::sign(&read.origin, size, &read.root, &other).note()),
        ("another size", Checkpoint::sign(&read.origin, size + 1, &read.root, &signer()).note()),
        ("another log", Checkpoint::sign("bodyguard/00", size, &read.root, &signer()).note()),
        ("no note", "hello".to_owned()),
    ] {
        let dir = copy(original.path());
        set(dir.path(), &bent);
        assert_found(dir.path(), what, Some(size), &format!("the checkpoint at {size}"));
    }
    let dir = copy(original.path());
    let forged = Checkpoint::sign(&read.origin, size, &[0; 32], &signer()).note();
    set(dir.path(), &forged);
    assert!(!report(dir.path()).ok);
    let dir = copy(original.path());
    db(dir.path()).execute("DELETE FROM checkpoints", []).unwrap();
    let conn = db(dir.path());
    let last: u64 = conn.query_row("SELECT max(seq) FROM leaves WHERE kind = 'outcome'", [], |row| row.get(0)).unwrap();
    drop(conn);
    assert_found(dir.path(), "no checkpoints", Some(last), "without a checkpoint");
}

#[tokio::test]
async fn changed_blocks_and_pictures_are_found_and_named() {
    let original = filled().await;
    let dir = copy(original.path());
    let conn = db(dir.path());
    let seq = seq_of(&conn, "intent");
    let text: Vec<u8> = conn.query_row("SELECT bytes FROM leaves WHERE seq = ?1", [seq], |row| row.get(0)).unwrap();
    let leaf: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let value = leaf["authorization"]["signatures"][0]["value"].as_str().unwrap().to_owned();
    let flipped = format!("{}{}", if value.starts_with('0') { '1' } else { '0' }, &value[1..]);
    rewrite(&conn, seq, &value, &flipped, true);
    drop(conn);
    let found = report(dir.path());
    let words = format!("leaf {seq}: the block's signature by {}", signer().key_id());
    assert!(found.problems.iter().any(|p| p.seq == Some(seq) && p.text.starts_with(&words)), "{:#?}", found.problems);

    let reader = Log::open_readonly(original.path()).unwrap();
    let unknown = bodyguard_trace::verify_blocking(&reader, &bodyguard_trace::KeyList::new()).unwrap();
    assert!(unknown.problems.iter().any(|p| p.text.contains("isn't on the list")));
    assert_eq!((unknown.blocks, unknown.checkpoints), (0, 0));

    let hex = Digest::of(b"pixels");
    let blob = |dir: &Path| dir.join("blobs").join(&hex.hex()[..2]).join(&hex.hex()[2..]);
    let dir = copy(original.path());
    let seq = seq_of(&db(dir.path()), "perceived");
    std::fs::write(blob(dir.path()), b"pixelz").unwrap();
    assert_found(dir.path(), "a changed picture", Some(seq), "was changed");
    std::fs::remove_file(blob(dir.path())).unwrap();
    assert_found(dir.path(), "a missing picture", Some(seq), "there is no blob");
}
