//! `file_write` and `file_delete` on a real host.

mod common;

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use bodyguard_body::{Body as _, Review};
use bodyguard_protocol::{Digest, ErrorCode, FileKind, OutcomeStatus};
use common::{code, lab};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

fn write(path: &str, params: Value) -> Value {
    json!({"type":"file_write","target":path,"params":params})
}

fn delete(path: &str, recursive: bool) -> Value {
    json!({"type":"file_delete","target":path,"params":{"recursive":recursive}})
}

fn left_over(root: &std::path::Path) -> usize {
    let names = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(".bodyguard")).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn r9_a_new_file_is_exactly_its_bytes_and_never_replaces_one() {
    let lab = lab().await;
    let bytes: Vec<u8> = (0..=255).collect();
    let content =
        json!({"content_base64": base64(&bytes), "permissions": "0755", "content_sha256": Digest::of(&bytes)});
    let inspection = lab.inspect(write(&lab.path("bin"), content.clone())).await.unwrap();
    assert!(matches!(inspection.review, Review::New { bytes: 256, first_foreign_byte: Some(128), .. }));
    assert!(!lab.root().join("bin").exists(), "looking makes nothing");
    let effect = lab.act(write(&lab.path("bin"), content.clone())).await.unwrap();
    assert_eq!(effect.observed["after_sha256"], json!(Digest::of(&bytes)));
    assert_eq!(inspection.prediction["after_sha256"], effect.observed["after_sha256"], "predicted exactly");
    assert_eq!(lab.get("bin"), bytes);
    let made = std::fs::metadata(lab.root().join("bin")).unwrap();
    assert_eq!(made.permissions().mode() & 0o7777, 0o755);
    assert_eq!(made.uid(), std::fs::metadata(lab.root()).unwrap().uid(), "it belongs to whom the folder belongs to");

    assert_eq!(code(lab.act(write(&lab.path("bin"), content)).await), ErrorCode::AlreadyExists);
    assert_eq!(lab.get("bin"), bytes);
    assert_eq!(left_over(lab.root()), 0);
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[tokio::test(flavor = "multi_thread")]
async fn r9_overwriting_and_appending_keep_the_file_s_mode_and_are_bound_to_what_was_there() {
    let lab = lab().await;
    lab.put("notes", "one\n");
    std::fs::set_permissions(lab.root().join("notes"), std::fs::Permissions::from_mode(0o640)).unwrap();
    lab.act(write(&lab.path("notes"), json!({"mode":"append","content":"two\n"}))).await.unwrap();
    assert_eq!(lab.get("notes"), b"one\ntwo\n");
    lab.act(write(&lab.path("notes"), json!({"mode":"overwrite","content":"three\n"}))).await.unwrap();
    assert_eq!(lab.get("notes"), b"three\n");
    assert_eq!(std::fs::metadata(lab.root().join("notes")).unwrap().permissions().mode() & 0o7777, 0o640);

    let stale = json!({"mode":"overwrite","content":"x","before_sha256":Digest::of(b"one\n")});
    assert_eq!(code(lab.act(write(&lab.path("notes"), stale)).await), ErrorCode::BeforeHashMismatch);
    for mode in ["overwrite", "append"] {
        let gone = write(&lab.path("absent"), json!({"mode":mode,"content":"x"}));
        assert_eq!(code(lab.act(gone).await), ErrorCode::NotFound);
    }
    let inspection = lab.inspect(write(&lab.path("notes"), json!({"mode":"overwrite","content":"y"}))).await.unwrap();
    let permit = lab.permit(&inspection).await;
    lab.put("notes", "changed by hand\n");
    let raced = lab.body.act(permit, inspection.resolved, CancellationToken::new()).await;
    assert_eq!(code(raced), ErrorCode::StateChanged);
    assert_eq!(lab.get("notes"), b"changed by hand\n");
    assert_eq!(left_over(lab.root()), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn r5_a_file_is_made_in_the_workspace_only() {
    let lab = lab().await;
    let outside = lab.outside().join("outside");
    std::fs::create_dir(&outside).unwrap();
    symlink(&outside, lab.root().join("out")).unwrap();
    symlink(outside.join("absent"), lab.root().join("dangling")).unwrap();
    let hello = || json!({"content":"x"});
    let (up, far) = (lab.path("../outside/a"), lab.path("out/a"));
    assert_eq!(code(lab.act(write(&up, hello())).await), ErrorCode::OutsideWorkspace);
    assert_eq!(code(lab.act(write(&far, hello())).await), ErrorCode::OutsideWorkspace);
    assert_eq!(code(lab.act(write(&lab.path("dangling"), hello())).await), ErrorCode::AlreadyExists);
    assert_eq!(code(lab.act(write(&lab.path("no/such/folder"), hello())).await), ErrorCode::NotFound);
    assert_eq!(code(lab.act(write(&format!("{}/", lab.path("a")), hello())).await), ErrorCode::InvalidArgument);
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn inv_5_what_appears_before_a_new_file_is_made_stays() {
    let lab = lab().await;
    let inspection = lab.inspect(write(&lab.path("a"), json!({"content":"ours"}))).await.unwrap();
    let permit = lab.permit(&inspection).await;
    lab.put("a", "theirs");
    let raced = lab.body.act(permit, inspection.resolved, CancellationToken::new()).await;
    assert_eq!(code(raced), ErrorCode::StateChanged);
    assert_eq!(lab.get("a"), b"theirs");
    assert_eq!(left_over(lab.root()), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn r9_a_deletion_shows_all_that_goes_and_takes_nothing_else() {
    let lab = lab().await;
    for name in ["old/a.txt", "old/deep/b.txt", "kept.txt"] {
        lab.put(name, name);
    }
    symlink("../kept.txt", lab.root().join("old/link")).unwrap();
    assert_eq!(code(lab.act(delete(&lab.path("old"), false)).await), ErrorCode::NotRegularFile);
    let inspection = lab.inspect(delete(&lab.path("old"), true)).await.unwrap();
    let Review::Delete { entries, .. } = inspection.review else { panic!("another review") };
    let seen: Vec<_> = entries.iter().map(|entry| (entry.path.as_str(), entry.kind)).collect();
    let expected = [
        ("", FileKind::Folder),
        ("a.txt", FileKind::File),
        ("deep", FileKind::Folder),
        ("deep/b.txt", FileKind::File),
        ("link", FileKind::Link),
    ];
    assert_eq!(seen, expected);
    let effect = lab.act(delete(&lab.path("old"), true)).await.unwrap();
    assert_eq!((effect.status, &effect.observed["deleted"]), (OutcomeStatus::Success, &json!(5)));
    assert!(!lab.root().join("old").exists());
    assert_eq!(lab.get("kept.txt"), b"kept.txt", "a link's end stays");
    lab.act(delete(&lab.path("kept.txt"), false)).await.unwrap();
    assert_eq!(std::fs::read_dir(lab.root()).unwrap().count(), 0, "nothing is left behind");
}

#[tokio::test(flavor = "multi_thread")]
async fn inv_5_a_tree_that_grew_since_it_was_shown_stays() {
    let lab = lab().await;
    lab.put("old/a.txt", "a");
    let inspection = lab.inspect(delete(&lab.path("old"), true)).await.unwrap();
    let permit = lab.permit(&inspection).await;
    lab.put("old/new.txt", "precious");
    let raced = lab.body.act(permit, inspection.resolved, CancellationToken::new()).await;
    assert_eq!(code(raced), ErrorCode::StateChanged);
    assert_eq!(lab.get("old/new.txt"), b"precious");
    // The same file with other content of the same length.
    let inspection = lab.inspect(delete(&lab.path("old/a.txt"), false)).await.unwrap();
    let permit = lab.permit(&inspection).await;
    lab.put("old/a.txt", "b");
    let raced = lab.body.act(permit, inspection.resolved, CancellationToken::new()).await;
    assert_eq!(code(raced), ErrorCode::StateChanged);
    assert_eq!(lab.get("old/a.txt"), b"b");
}

#[tokio::test(flavor = "multi_thread")]
async fn r5_only_what_is_named_in_the_workspace_is_deleted() {
    let lab = lab().await;
    let outside = lab.outside().join("outside.txt");
    std::fs::write(&outside, "x").unwrap();
    symlink(&outside, lab.root().join("link")).unwrap();
    std::fs::hard_link(&outside, lab.root().join("hard")).unwrap();
    assert_eq!(code(lab.act(delete(&lab.path("../outside.txt"), false)).await), ErrorCode::OutsideWorkspace);
    assert_eq!(code(lab.act(delete(&lab.path("link"), false)).await), ErrorCode::NotRegularFile);
    assert_eq!(code(lab.act(delete(&lab.path("hard"), false)).await), ErrorCode::NotRegularFile);
    assert_eq!(code(lab.act(delete(&lab.path("absent"), false)).await), ErrorCode::NotFound);
    let root = lab.root().to_str().unwrap().to_owned();
    assert_eq!(code(lab.act(delete(&root, true)).await), ErrorCode::OutsideWorkspace, "not the workspace itself");
    assert_eq!(code(lab.act(delete(&format!("{root}/."), true)).await), ErrorCode::InvalidArgument);
    assert_eq!(std::fs::read(&outside).unwrap(), b"x");
}
