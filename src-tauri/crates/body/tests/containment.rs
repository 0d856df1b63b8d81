//! What a command can't reach. Each attack has its control: the same thing outside works.

mod common;

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use bodyguard_body::{Body as _, BodyConfig, HostBody};
use bodyguard_protocol::{ErrorCode, OutcomeStatus};
use common::{Lab, lab, lab_with, program, workspace};

/// Runs an attack in the sandbox and says whether it succeeded (exit code 0).
async fn succeeds(lab: &Lab<HostBody>, command: &str) -> bool {
    lab.shell(command).await.status == OutcomeStatus::Success
}

fn outside(command: &str) -> bool {
    Command::new("sh").args(["-c", command]).output().unwrap().status.success()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_or_read_outside_of_the_workspace() {
    let lab = lab().await;
    let open = lab.outside().join("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, PermissionsExt::from_mode(0o777)).unwrap();
    std::fs::write(open.join("secret"), "secret").unwrap();
    std::fs::set_permissions(open.join("secret"), PermissionsExt::from_mode(0o666)).unwrap();
    let open = open.display();
    for attack in [format!("cat {open}/secret"), format!("echo x >> {open}/secret"), format!("touch {open}/new")] {
        assert!(!succeeds(&lab, &attack).await, "{attack}");
        assert!(outside(&attack), "the control failed: {attack}");
    }
    // The supervisor's data, by name and by walking up from an open folder.
    let data = lab.outside().join("data/log.db");
    assert!(data.exists());
    assert!(!succeeds(&lab, &format!("test -e {}", data.display())).await);
    assert!(!succeeds(&lab, "ls ../data").await);
    for attack in [
        "touch /usr/bin/x",
        "touch /etc/x",
        "touch /x",
        "ls /root",
        "ls /home/* | grep -v '^$' | grep .",
        "ls /run/dbus",
        "mount -t tmpfs none /mnt",
    ] {
        assert!(!succeeds(&lab, attack).await, "{attack}");
    }
    // Its own temporary folders are its own, and gone afterwards.
    assert!(succeeds(&lab, "echo x > /tmp/mine && echo x > ~/mine && cat /tmp/mine ~/mine").await);
    assert!(!succeeds(&lab, "test -e /tmp/mine || test -e ~/mine").await);
    assert!(!std::path::Path::new("/tmp/mine").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_out_of_the_workspace_leads_nowhere() {
    let lab = lab().await;
    std::fs::write(lab.outside().join("secret"), "secret").unwrap();
    std::os::unix::fs::symlink(lab.outside().join("secret"), lab.root().join("link")).unwrap();
    assert!(!succeeds(&lab, "cat link").await);
    assert!(outside(&format!("cat {}/link", lab.root().display())));
    // A root that is swapped for a link after the start is still the old folder.
    let moved = lab.outside().join("moved");
    std::fs::rename(lab.root(), &moved).unwrap();
    std::os::unix::fs::symlink("/etc", lab.root()).unwrap();
    let done = lab.shell("ls").await;
    assert!(!done.observed["stdout"].as_str().unwrap().contains("passwd"), "{done:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn there_is_no_network() {
    let lab = lab().await;
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    std::thread::spawn(move || while server.accept().is_ok() {});
    let connect = format!("python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 2)'");
    assert!(outside(&connect), "the control failed");
    assert!(!succeeds(&lab, &connect).await);
    let name = format!("bodyguard-test-{}", std::process::id());
    let address =
        <std::os::unix::net::SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(&name).unwrap();
    let _abstract = std::os::unix::net::UnixListener::bind_addr(&address).unwrap();
    let connect = format!("python3 -c 'import socket; s=socket.socket(socket.AF_UNIX); s.connect(\"\\0{name}\")'");
    assert!(outside(&connect), "the control failed");
    assert!(!succeeds(&lab, &connect).await);
    assert_eq!(
        lab.shell("ls /sys/class/net 2>/dev/null; tail -n +3 /proc/net/dev | grep -v lo:").await.observed["stdout"],
        ""
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_host_and_other_processes_are_out_of_reach() {
    let lab = lab().await;
    let pid = lab.body.pid();
    assert!(outside(&format!("kill -0 {pid}")), "the control failed");
    for attack in [
        format!("kill -0 {pid}"),
        format!("kill -9 {pid}"),
        format!("cat /proc/{pid}/environ"),
        "kill -9 1; sleep 0.3; kill -0 1 && exit 1".to_owned(),
    ] {
        assert!(!succeeds(&lab, &attack).await, "{attack}");
    }
    assert!(lab.body.stable("").await.is_ok());
    // The inner program runs as the same user; its report must stay its own.
    let steal = "python3 -c 'import os; [os.open(f\"/proc/{p}/fd/{f}\", 1) for p in os.listdir(\"/proc\") if p.isdigit() and int(p) != os.getpid() for f in os.listdir(f\"/proc/{p}/fd\")]'";
    assert!(!succeeds(&lab, steal).await);
    assert_ne!(lab.shell("id -u").await.observed["stdout"], "0\n");
    assert!(!succeeds(&lab, "unshare -U true").await, "a namespace in the sandbox opens the kernel's attack surface");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_descriptor_is_left_open() {
    // One that this process leaks on purpose, as a careless library would.
    let secret = tempfile::tempfile().unwrap();
    rustix::io::fcntl_setfd(&secret, rustix::io::FdFlags::empty()).unwrap();
    let lab = lab().await;
    let done = lab.shell("ls /proc/self/fd").await;
    assert_eq!(done.observed["stdout"], "0\n1\n2\n3\n", "{done:?}");
    let host = std::fs::read_dir(format!("/proc/{}/fd", lab.body.pid())).unwrap();
    for entry in host.flatten() {
        let target = std::fs::read_link(entry.path()).unwrap_or_default();
        assert!(!target.to_string_lossy().contains("(deleted)"), "the host inherited {target:?}");
    }
    drop(secret);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_environment_is_what_the_workspace_lists() {
    let lab = lab_with(|config| {
        config.env_allow.insert("PROJECT".to_owned(), "demo".to_owned());
    })
    .await;
    let done = lab.shell("env | cut -d= -f1 | sort | tr '\\n' ' '").await;
    assert_eq!(done.observed["stdout"], "HOME LANG PATH PROJECT PWD TERM USER ");
    let environ = std::fs::read(format!("/proc/{}/environ", lab.body.pid()));
    if let Ok(environ) = environ {
        let names: Vec<_> = environ
            .split(|b| *b == 0)
            .filter(|v| !v.is_empty())
            .map(|v| String::from_utf8_lossy(v).split('=').next().unwrap().to_owned())
            .collect();
        assert_eq!(names, ["LANG", "PATH"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn places_that_run_later_can_be_read_and_not_changed() {
    let lab = lab().await;
    lab.put(".git/hooks/pre-commit", "echo hook\n");
    lab.put(".git/config", "[core]\n\tbare = false\n\thooksPath = tools/hooks\n");
    lab.put(".git/HEAD", "ref: refs/heads/main\n");
    lab.put(".vscode/tasks.json", "{}\n");
    lab.put("tools/hooks/pre-push", "echo hook\n");
    lab.put("sub/.git/config", "[core]\n\tbare = false\n");
    lab.put("free", "one\n");
    let attacks = [
        "echo x >> .git/hooks/pre-commit",
        "echo x > .git/hooks/post-commit",
        "echo x >> .git/config",
        "rm -f .git/config",
        "mv .git .git-old",
        "rm -rf .git",
        "echo x >> .vscode/tasks.json",
        "mv .vscode other",
        "echo x >> tools/hooks/pre-push",
        "echo x >> sub/.git/config",
        "ln -f free .git/config",
    ];
    for attack in attacks {
        assert!(!succeeds(&lab, attack).await, "{attack}");
    }
    assert_eq!(lab.get(".git/hooks/pre-commit"), b"echo hook\n");
    assert_eq!(lab.get("sub/.git/config"), b"[core]\n\tbare = false\n");
    // The control: beside them everything is as usual, and the repository itself can be written.
    assert!(succeeds(&lab, "cat .git/config .vscode/tasks.json && echo x >> free && echo x > .git/index.lock && mv .git/index.lock .git/index").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_runs_later_and_is_new_is_told() {
    let lab = lab().await;
    let none = lab.shell("mkdir plain && echo x > plain/file").await;
    assert_eq!(none.observed["runs_later_created"], serde_json::json!([]));
    let made = lab.shell("mkdir -p .claude sub/.git/hooks && echo '{}' > .mcp.json").await;
    let expected = [".claude", ".mcp.json", "sub/.git/hooks"].map(|name| lab.path(name));
    assert_eq!(made.observed["runs_later_created"], serde_json::json!(expected));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_bomb_stays_in_its_sandbox() {
    let lab = lab_with(|config| config.limits.processes = 64).await;
    let done = lab.shell("i=0; while [ $i -lt 200 ]; do sleep 604 & i=$((i+1)); done; wait -n; echo survived").await;
    assert_ne!(done.status, OutcomeStatus::Success, "{:?}", done.observed["stdout"]);
    assert!(outside("true"));
    tokio::time::sleep(Duration::from_millis(100)).await;
    let alive = Command::new("pgrep").args(["-fc", "^sleep 604$"]).output().unwrap().stdout;
    assert_eq!(String::from_utf8_lossy(&alive).trim(), "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_whose_program_was_replaced_says_that_it_has_to_be_started_again() {
    let (folder, root) = workspace();
    let copy = folder.path().join("bodyguard-body");
    std::fs::copy(program(), &copy).unwrap();
    let config = BodyConfig::for_root(root.to_str().unwrap());
    let lab = Lab::around(HostBody::spawn(&copy, config).unwrap(), folder, root.to_str().unwrap()).await;
    assert!(succeeds(&lab, "true").await, "the control");
    std::fs::remove_file(&copy).unwrap();
    let refused = lab.act(serde_json::json!({"type":"shell_exec","command":"true","cwd":lab.root()})).await;
    let fault = refused.unwrap_err();
    assert_eq!(fault.code, ErrorCode::SandboxUnavailable);
    assert!(fault.message.contains("replaced"), "{fault}");
}
