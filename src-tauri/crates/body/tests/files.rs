//! `file_read` and `file_edit` on a real host.

mod common;

use std::os::unix::fs::{MetadataExt as _, PermissionsExt, chown, symlink};
use std::process::Command;
use std::time::{Duration, Instant};

use bodyguard_body::{Body as _, HostBody, Review};
use bodyguard_protocol::{Digest, ErrorCode};
use common::{Lab, code, lab, lab_with};
use serde_json::{Value, json};

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({"type":"file_edit","target":path,"params":{"edits":[{"old":old,"new":new}]}})
}

fn read(path: &str) -> Value {
    json!({"type":"file_read","target":path})
}

fn left_over(root: &std::path::Path) -> Vec<String> {
    let names = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(".bodyguard")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn fil_01_crlf_stays_crlf_and_a_read_says_which() {
    let lab = lab().await;
    lab.put("f", "a\r\nb\r\nc\r\n");
    let seen = lab.act(read(&lab.path("f"))).await.unwrap().observed;
    assert_eq!((&seen["line_ending"], &seen["content"]), (&json!("crlf"), &json!("a\r\nb\r\nc\r\n")));
    assert_eq!(code(lab.inspect(edit(&lab.path("f"), "a\nb", "a\nB")).await), ErrorCode::LineEndingMismatch);
    assert_eq!(lab.get("f"), b"a\r\nb\r\nc\r\n");
    lab.act(edit(&lab.path("f"), "a\r\nb", "a\r\nB")).await.unwrap();
    assert_eq!(lab.get("f"), b"a\r\nB\r\nc\r\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn fil_02_bytes_outside_the_edit_stay_and_the_review_is_the_byte_difference() {
    let lab = lab().await;
    let mut bytes = b"k=1\n".to_vec();
    bytes.extend(b"0123456789\n".repeat(5000));
    bytes.extend(b"caf\xe9 \x99\n");
    lab.put("f", &bytes);
    let Review::Edit { before, after, first_foreign_byte, .. } =
        lab.inspect(edit(&lab.path("f"), "k=1", "k=2")).await.unwrap().review
    else {
        panic!("another review")
    };
    assert_eq!(first_foreign_byte, Some(bytes.len() as u64 - 4));
    assert_eq!(before.replacen("k=1", "k=2", 1), after);
    let fault = lab.act(read(&lab.path("f"))).await.unwrap_err();
    assert_eq!(fault.code, ErrorCode::NotUtf8);
    assert!(fault.message.contains(&format!("{}", bytes.len() - 4)), "{fault}");
    lab.act(edit(&lab.path("f"), "k=1", "k=2")).await.unwrap();
    bytes[2] = b'2';
    assert_eq!(lab.get("f"), bytes);
}

#[tokio::test(flavor = "multi_thread")]
async fn fil_05_and_06_ends_stay_and_ambiguity_is_refused() {
    let lab = lab().await;
    lab.put("f", "x\ny");
    lab.act(edit(&lab.path("f"), "x", "X")).await.unwrap();
    assert_eq!(lab.get("f"), b"X\ny");
    lab.put("g", "line\n".repeat(300));
    assert_eq!(code(lab.inspect(edit(&lab.path("g"), "", "# t\n")).await), ErrorCode::EmptyMatch);
    let fault = lab.inspect(edit(&lab.path("g"), "\n", "")).await.unwrap_err();
    assert_eq!(fault.code, ErrorCode::MatchCountMismatch);
    assert!(fault.message.contains("300 times"), "{fault}");
    assert_eq!(lab.get("g"), "line\n".repeat(300).into_bytes());
}

#[tokio::test(flavor = "multi_thread")]
async fn fil_09_links_stay_links_and_the_real_file_is_named() {
    let lab = lab().await;
    lab.put("real.md", "old\n");
    symlink("real.md", lab.root().join("link.md")).unwrap();
    symlink(lab.path("link.md"), lab.root().join("l2")).unwrap();
    for (name, old, new) in [("link.md", "old", "one"), ("l2", "one", "two")] {
        let inspection = lab.inspect(edit(&lab.path(name), old, new)).await.unwrap();
        assert_eq!(inspection.resolved.target, lab.path("real.md"));
        assert!(matches!(&inspection.review, Review::Edit { path, .. } if *path == lab.path("real.md")));
        lab.act(edit(&lab.path(name), old, new)).await.unwrap();
        assert!(lab.root().join(name).is_symlink());
    }
    assert_eq!(lab.get("real.md"), b"two\n");
    symlink("b", lab.root().join("a")).unwrap();
    symlink("a", lab.root().join("b")).unwrap();
    let started = Instant::now();
    assert_eq!(code(lab.inspect(edit(&lab.path("a"), "x", "y")).await), ErrorCode::InvalidArgument);
    assert!(started.elapsed() < Duration::from_secs(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_outside_of_the_workspace_is_reached() {
    let lab = lab().await;
    std::fs::write(lab.outside().join("secret"), "secret").unwrap();
    symlink("../secret", lab.root().join("up")).unwrap();
    symlink(lab.outside(), lab.root().join("dir")).unwrap();
    symlink("/proc/self/root", lab.root().join("magic")).unwrap();
    std::fs::hard_link(lab.outside().join("secret"), lab.root().join("hard")).unwrap();
    let outside = lab.outside().to_str().unwrap();
    let targets = [
        "/etc/passwd".to_owned(),
        format!("{outside}/secret"),
        format!("{outside}/absent"),
        lab.path("../secret"),
        lab.path("up"),
        lab.path("dir/secret"),
        lab.path("magic/etc/passwd"),
        format!("{}x/secret", lab.path("").trim_end_matches('/')),
    ];
    for target in &targets {
        // The same answer whether or not something is there.
        assert_eq!(code(lab.inspect(read(target)).await), ErrorCode::OutsideWorkspace, "{target}");
        assert_eq!(code(lab.inspect(edit(target, "secret", "x")).await), ErrorCode::OutsideWorkspace, "{target}");
    }
    assert_eq!(code(lab.inspect(read(&lab.path("hard"))).await), ErrorCode::NotRegularFile);
    assert_eq!(std::fs::read(lab.outside().join("secret")).unwrap(), b"secret");
}

#[tokio::test(flavor = "multi_thread")]
async fn fil_14_mode_owner_attributes_and_acl_stay_and_no_draft_is_left() {
    let lab = lab().await;
    let private = lab.put("private", "one\n");
    let script = lab.put("script.sh", "#!/bin/sh\necho one\n");
    std::fs::set_permissions(&private, PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
    rustix::fs::setxattr(&private, "user.note", b"kept", rustix::fs::XattrFlags::empty()).unwrap();
    // user::rw-, user:1234:r--, group::---, mask::r--, other::---
    let acl: Vec<u8> = [
        &2_u32.to_le_bytes()[..],
        &[1, 0, 6, 0, 255, 255, 255, 255],
        &[2, 0, 4, 0, 210, 4, 0, 0],
        &[4, 0, 0, 0, 255, 255, 255, 255],
        &[16, 0, 4, 0, 255, 255, 255, 255],
        &[32, 0, 0, 0, 255, 255, 255, 255],
    ]
    .concat();
    rustix::fs::setxattr(&private, "system.posix_acl_access", &acl, rustix::fs::XattrFlags::empty()).unwrap();
    let state = |path: &std::path::Path| {
        let meta = path.metadata().unwrap();
        let mut buffer = [0; 256];
        let attribute = |name: &str, buffer: &mut [u8]| rustix::fs::getxattr(path, name, buffer).ok();
        let note = attribute("user.note", &mut buffer[..]);
        let rights = attribute("system.posix_acl_access", &mut buffer[..]).map(|length| buffer[..length].to_vec());
        (meta.mode(), meta.uid(), meta.gid(), note, rights)
    };
    let before = (state(&private), state(&script));
    assert!(before.0.3.is_some() && before.0.4.is_some(), "the file system keeps neither attributes nor ACLs");
    // Watch for any name that appears: it must not be open to others.
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut seen = Vec::new();
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                for entry in std::fs::read_dir(lab.root()).unwrap().flatten() {
                    let name = entry.file_name().into_string().unwrap();
                    if !["private", "script.sh"].contains(&name.as_str())
                        && let Ok(meta) = std::fs::symlink_metadata(entry.path())
                    {
                        seen.push((name, meta.mode() & 0o7777));
                    }
                }
            }
            seen
        });
        let runtime = tokio::runtime::Handle::current();
        let (lab, stop) = (&lab, &stop);
        scope.spawn(move || {
            runtime.block_on(async {
                lab.act(edit(&lab.path("private"), "one", "two")).await.unwrap();
                lab.act(edit(&lab.path("script.sh"), "one", "two")).await.unwrap();
            });
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        let seen = watcher.join().unwrap();
        assert!(seen.iter().all(|(_, mode)| mode & 0o077 == 0), "{seen:?}");
    });
    assert_eq!((state(&private), state(&script)), before);
    assert_eq!((lab.get("private"), lab.get("script.sh")), (b"two\n".to_vec(), b"#!/bin/sh\necho two\n".to_vec()));
    assert_eq!(left_over(lab.root()), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn fil_16_pipes_sockets_and_folders_are_refused_at_once() {
    let lab = lab().await;
    rustix::fs::mknodat(
        rustix::fs::CWD,
        lab.root().join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(lab.root().join("socket")).unwrap();
    std::fs::create_dir(lab.root().join("folder")).unwrap();
    for name in ["pipe", "socket", "folder", ""] {
        let started = Instant::now();
        assert_eq!(code(lab.inspect(read(&lab.path(name))).await), ErrorCode::NotRegularFile, "{name}");
        assert!(started.elapsed() < Duration::from_secs(1));
    }
    for target in ["/dev/zero", "/proc/self/mem", "/proc/kmsg"] {
        assert_eq!(code(lab.inspect(read(target)).await), ErrorCode::OutsideWorkspace);
    }
    lab.put("after", "fine");
    assert_eq!(lab.act(read(&lab.path("after"))).await.unwrap().observed["content"], "fine");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_changed_after_the_yes_is_left_alone() {
    let lab = lab().await;
    lab.put("f", "one\n");
    let inspection = lab.inspect(edit(&lab.path("f"), "one", "two")).await.unwrap();
    assert!(lab.body.recheck(&inspection.resolved, &inspection.binding).await.is_ok());
    let permit = lab.permit(&inspection).await;
    lab.put("f", "one, and more\n");
    assert_eq!(code(lab.body.recheck(&inspection.resolved, &inspection.binding).await), ErrorCode::StateChanged);
    let acted = lab.body.act(permit, inspection.resolved, Default::default()).await;
    assert_eq!(code(acted), ErrorCode::StateChanged);
    assert_eq!(lab.get("f"), b"one, and more\n");
    // A file that became a link to another one is another file, whatever that one holds.
    lab.put("g", "one\n");
    lab.put("h", "one\n");
    let inspection = lab.inspect(edit(&lab.path("g"), "one", "two")).await.unwrap();
    let permit = lab.permit(&inspection).await;
    std::fs::remove_file(lab.root().join("g")).unwrap();
    symlink("h", lab.root().join("g")).unwrap();
    assert_eq!(code(lab.body.act(permit, inspection.resolved, Default::default()).await), ErrorCode::StateChanged);
    assert_eq!(lab.get("h"), b"one\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_permit_is_for_one_action_only() {
    let lab = lab().await;
    lab.put("f", "one\n");
    lab.put("g", "one\n");
    let mine = lab.inspect(edit(&lab.path("f"), "one", "two")).await.unwrap();
    let other = lab.inspect(edit(&lab.path("g"), "one", "two")).await.unwrap();
    let permit = lab.permit(&mine).await;
    assert_eq!(code(lab.body.act(permit, other.resolved, Default::default()).await), ErrorCode::AuthorizationFailure);
    assert_eq!((lab.get("f"), lab.get("g")), (b"one\n".to_vec(), b"one\n".to_vec()));
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_raced_by_another_writer_lose_nothing() {
    let lab = lab().await;
    lab.put("f", "0\n");
    let (mut ours, mut theirs) = (0_u32, 0_u32);
    for round in 0..20_u32 {
        let before = String::from_utf8(lab.get("f")).unwrap();
        let inspection = lab.inspect(edit(&lab.path("f"), &before, &format!("{before}agent {round}\n"))).await.unwrap();
        let permit = lab.permit(&inspection).await;
        let act = lab.body.act(permit, inspection.resolved, Default::default());
        // The other hand replaces the file as editors do, at about the same time.
        let path = lab.root().join("f");
        let replace = tokio::task::spawn_blocking(move || {
            std::thread::sleep(Duration::from_micros(u64::from(round) * 700));
            let draft = path.with_extension("draft");
            let text = format!("{}person {round}\n", std::fs::read_to_string(&path).unwrap());
            std::fs::write(&draft, &text).unwrap();
            std::fs::rename(&draft, &path).unwrap();
        });
        let (acted, replaced) = tokio::join!(act, replace);
        replaced.unwrap();
        let after = String::from_utf8(lab.get("f")).unwrap();
        assert!(after.contains(&format!("person {round}\n")), "the person's change was lost: {after}");
        theirs += 1;
        if acted.is_ok() {
            ours += 1;
        } else {
            assert_eq!(code(acted), ErrorCode::StateChanged);
        }
    }
    assert_eq!(theirs, 20);
    assert_eq!(left_over(lab.root()), Vec::<String>::new());
    println!("{ours} of 20 raced edits went through, the others were refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_are_parts_and_listings_show_what_is_there() {
    let lab = lab().await;
    lab.put("sub/a.txt", "grüße");
    let part = json!({"type":"file_read","target":lab.path("sub/a.txt"),"params":{"limit":3}});
    let seen = lab.act(part).await.unwrap().observed;
    // The limit fell into the middle of a character.
    assert_eq!((&seen["content"], &seen["bytes"], &seen["truncated"]), (&json!("gr"), &json!(2), &json!(true)));
    let whole = lab.act(read(&lab.path("sub/a.txt"))).await.unwrap().observed;
    assert_eq!(whole["sha256"], json!(Digest::of("grüße".as_bytes())));
    symlink("sub", lab.root().join("link")).unwrap();
    std::fs::set_permissions(lab.put("locked", "x"), PermissionsExt::from_mode(0o444)).unwrap();
    let seen = lab.perceive(json!({"mode":"filesystem"})).await.unwrap();
    let shown: Vec<_> = seen.entries.iter().map(|entry| (entry.path.as_str(), entry.kind, entry.writable)).collect();
    use bodyguard_protocol::FileKind::{File, Folder, Link};
    let expected = [
        (lab.path("link"), Link, false),
        (lab.path("locked"), File, false),
        (lab.path("sub"), Folder, true),
        (lab.path("sub/a.txt"), File, true),
    ];
    assert_eq!(shown, expected.each_ref().map(|(path, kind, writable)| (path.as_str(), *kind, *writable)));
    assert_eq!(code(lab.inspect(edit(&lab.path("locked"), "x", "y")).await), ErrorCode::PermissionDenied);
    assert_eq!(code(lab.perceive(json!({"mode":"full"})).await), ErrorCode::InvalidArgument);
}

#[tokio::test(flavor = "multi_thread")]
async fn git_03_heads_are_told_apart_and_looking_runs_and_writes_nothing() {
    let lab = lab().await;
    let git = |words: &[&str]| {
        let done = Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"])
            .args(["-c", "safe.directory=*"])
            .args(words)
            .current_dir(lab.root())
            .env("HOME", lab.outside())
            .output()
            .unwrap();
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    };
    // Owned by whoever looks: where it isn't, gix trusts it less by itself.
    chown(lab.root(), Some(rustix::process::geteuid().as_raw()), None).unwrap();
    let head = || async { lab.body.stable("").await.unwrap().git };
    let mut heads = vec![head().await.head];
    git(&["init"]);
    heads.push(head().await.head);
    lab.put("f", "one\n");
    git(&["add", "f"]);
    git(&["commit", "-m", "one"]);
    let clean = head().await;
    assert_eq!(clean.head, format!("sha1:{}", git(&["rev-parse", "HEAD"])));
    assert_eq!((clean.branch.as_deref(), clean.dirty), (Some("main"), Some(false)));
    heads.push(clean.head.clone());
    git(&["pack-refs", "--all"]);
    assert_eq!(head().await, clean);
    let index = lab.get(".git/index");
    lab.put("f", "two\n");
    assert_eq!(head().await.dirty, Some(true));
    assert_eq!(lab.get(".git/index"), index);
    git(&["checkout", "--orphan", "x"]);
    heads.push(head().await.head);
    assert_eq!(heads[0], "none");
    assert_eq!(heads[1], "unborn:main");
    assert_eq!(heads[3], "unborn:x");
    // What the repository's configuration names is not run; `git` itself would (the control). The file
    // has its old size, so that only its content, which a filter could change, tells that it differs.
    let ran = lab.outside().join("ran");
    let hook = lab.put("hook.sh", format!("#!/bin/sh\ntouch {}\ncat\n", ran.display()));
    std::fs::set_permissions(&hook, PermissionsExt::from_mode(0o755)).unwrap();
    lab.put(".gitattributes", "* filter=x\n");
    git(&["checkout", "-f", "main"]);
    assert_eq!(head().await, clean);
    for setting in ["filter.x.clean", "core.fsmonitor"] {
        lab.put("f", "six\n");
        git(&["config", setting, hook.to_str().unwrap()]);
        assert_eq!(lab.body.stable("").await.unwrap().git.dirty, Some(true));
        assert!(!ran.exists(), "looking at the repository ran what {setting} names");
        git(&["status"]);
        assert!(std::fs::remove_file(&ran).is_ok(), "the control did not run it either");
        git(&["config", "--unset", setting]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn git_02_a_reference_store_that_is_not_read_is_refused_not_guessed() {
    let lab = lab().await;
    lab.put(".git/HEAD", "ref: refs/heads/.invalid\n");
    lab.put(".git/config", "[core]\n\trepositoryformatversion = 1\n[extensions]\n\trefStorage = reftable\n");
    std::fs::create_dir_all(lab.root().join(".git/objects")).unwrap();
    std::fs::create_dir_all(lab.root().join(".git/refs")).unwrap();
    let fault = lab.body.stable("").await.unwrap_err();
    assert_eq!(fault.code, ErrorCode::NotYetSupported);
    assert!(fault.message.contains("unsupported_ref_storage"), "{fault}");
}

#[tokio::test(flavor = "multi_thread")]
async fn r5_a_git_file_does_not_open_repositories_elsewhere() {
    let lab = lab().await;
    let other = lab.outside().join("other");
    std::fs::create_dir(&other).unwrap();
    let git = |words: &[&str]| {
        let done = Command::new("git").args(words).current_dir(&other).env("HOME", lab.outside()).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    git(&["init"]);
    std::fs::write(lab.root().join(".git"), format!("gitdir: {}\n", other.join(".git").display())).unwrap();
    assert_eq!(lab.body.stable("").await.unwrap().git.head, "none");
    std::fs::remove_file(lab.root().join(".git")).unwrap();
    // A work tree that its owner made is the workspace's own.
    git(&["-c", "user.name=t", "-c", "user.email=t@t", "commit", "--allow-empty", "-m", "one"]);
    git(&["worktree", "add", "-b", "side", lab.root().join("tree").to_str().unwrap()]);
    let state = lab.body.stable(&lab.path("tree")).await.unwrap();
    assert_eq!(state.git.branch.as_deref(), Some("side"));
    assert_eq!(state.fields.cwd, "workspace:/tree");
}

#[tokio::test(flavor = "multi_thread")]
async fn r28_r29_a_snapshot_covers_what_is_in_the_files_and_nothing_that_differs_between_equal_workspaces() {
    async fn snapshot(lab: &Lab<HostBody>) -> Digest {
        let query = json!({"mode":"filesystem","profile":"bodyos.readme.v0"});
        lab.perceive(query).await.unwrap().fs_snapshot.unwrap()
    }
    let (one, two) = (lab().await, lab().await);
    for lab in [&one, &two] {
        lab.put("src/main.rs", "fn main() {}\n");
        lab.put(".git/HEAD", "ref: refs/heads/main\n");
    }
    let before = snapshot(&one).await;
    assert_eq!(before, snapshot(&two).await, "whoever made them, whenever, and wherever they lie");
    one.put(".git/HEAD", "other\n");
    assert_eq!(before, snapshot(&one).await, "git_head stands for a repository's own folder");
    let path = one.put("src/main.rs", "fn main() { }\n");
    assert_ne!(before, snapshot(&one).await);
    one.put("src/main.rs", "fn main() {}\n");
    assert_eq!(before, snapshot(&one).await);
    let mode = std::fs::metadata(&path).unwrap().permissions();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    assert_ne!(before, snapshot(&one).await);
    std::fs::set_permissions(&path, mode).unwrap();
    one.put("empty", "");
    assert_ne!(before, snapshot(&one).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn r28_a_part_of_a_workspace_is_never_taken_for_the_whole() {
    let lab = lab_with(|config| config.limits.snapshot_entries = 3).await;
    for name in ["a", "b", "c"] {
        lab.put(name, name);
    }
    let query = json!({"mode":"filesystem","profile":"bodyos.readme.v0"});
    assert!(lab.perceive(query.clone()).await.is_ok());
    lab.put("d", "d");
    assert_eq!(code(lab.perceive(query).await), ErrorCode::TooLarge);
}
