//! The virtual desktop is whole, private, and leaves nothing behind.

use anyhow::Result;
use harness::{Desktop, DesktopOptions, Person, injector, list_windows, processes, wait_until};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(10);

fn mode(path: &Path) -> u32 {
    path.metadata().map_or(0, |m| m.permissions().mode() & 0o777)
}

#[test]
fn a_desktop_ends_without_a_trace() -> Result<()> {
    let desktop = Desktop::start()?;
    let (folder, marker) = (desktop.folder().to_owned(), desktop.marker().to_owned());
    let display = desktop.display();
    // A program that is left running, and a daemon that has left its parent.
    let mut left = desktop.command("sleep").arg("1000").spawn()?;
    let daemon = "setsid sh -c 'sleep 1000 & sleep 1000' >/dev/null 2>&1 &";
    assert!(desktop.command("sh").args(["-c", daemon]).status()?.success());
    let count = || processes::marked(&marker).len();
    wait_until("everything runs", SOON, || count() >= 10)?;

    drop(desktop);

    assert_eq!(processes::marked(&marker), []);
    assert_eq!(left.wait()?.signal(), Some(9));
    assert!(!folder.exists());
    assert!(!Path::new(&format!("/tmp/.X11-unix/X{display}")).exists());
    Ok(())
}

#[test]
fn a_desktop_ends_even_if_its_owner_is_killed() -> Result<()> {
    let program = env!("CARGO_BIN_EXE_virtual-desktop");
    let mut owner = Command::new(program)
        .args(["--", "sh", "-c", "echo $VIRTUAL_DESKTOP; sleep 1000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut folder = String::new();
    let mut letter = [0];
    let mut stdout = owner.stdout.take().expect("piped");
    while stdout.read(&mut letter)? == 1 && letter != *b"\n" {
        folder.push(letter[0].into());
    }
    let marker = format!("VIRTUAL_DESKTOP={folder}");
    assert!(processes::marked(&marker).len() >= 8);

    owner.kill()?;
    owner.wait()?;

    wait_until("all processes are gone", SOON, || processes::marked(&marker).is_empty())?;
    wait_until("the folder is gone", SOON, || !Path::new(&folder).exists())
}

#[test]
fn its_files_and_sockets_are_private_and_no_port_is_open() -> Result<()> {
    let desktop = Desktop::start()?;
    assert_eq!(mode(desktop.folder()), 0o700);
    assert_eq!(mode(desktop.home()), 0o700);
    assert_eq!(mode(&desktop.runtime_dir()), 0o700);
    assert_eq!(mode(desktop.vnc_socket()), 0o600);
    assert_eq!(mode(&desktop.folder().join("Xauthority")), 0o600);
    let pids: Vec<i32> = desktop.processes().iter().map(|p| p.pid).collect();
    for pid in pids {
        for file in std::fs::read_dir(format!("/proc/{pid}/fd"))?.flatten() {
            let Ok(target) = file.path().read_link() else {
                continue;
            };
            let inode = target.to_string_lossy().replace("socket:[", "");
            let inode = inode.trim_end_matches(']');
            for table in ["tcp", "tcp6"] {
                let table = std::fs::read_to_string(format!("/proc/net/{table}"))?;
                let open = table.lines().any(|l| l.split_whitespace().nth(9) == Some(inode));
                assert!(!open, "process {pid} has a TCP socket");
            }
        }
    }
    // Without the cookie nobody gets in.
    let refused = desktop.command("xdotool").arg("getmouselocation").env("XAUTHORITY", "/dev/null").output()?;
    assert!(!refused.status.success());
    Ok(())
}

#[test]
fn several_desktops_start_at_once_and_know_nothing_of_each_other() -> Result<()> {
    let desktops: Vec<Desktop> = std::thread::scope(|scope| {
        let starts: Vec<_> = (0..6).map(|_| scope.spawn(|| Desktop::with(DesktopOptions::bare()))).collect();
        starts.into_iter().map(|start| start.join().expect("no panic")).collect::<Result<_>>()
    })?;
    let mut numbers: Vec<u32> = desktops.iter().map(Desktop::display).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 6);
    for desktop in &desktops {
        injector::xdotool_key(desktop, "a")?;
        assert_eq!(list_windows(desktop)?, []);
    }
    Ok(())
}

#[test]
fn secrets_are_kept_until_the_keyring_ends_or_is_locked() -> Result<()> {
    let mut desktop = Desktop::start()?;
    let store = |desktop: &Desktop| -> Result<bool> {
        let mut child = desktop
            .command("secret-tool")
            .args(["store", "--label=test", "for", "harness"])
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut stdin = child.stdin.take().expect("piped");
        stdin.write_all(b"a secret")?;
        drop(stdin);
        Ok(child.wait()?.success())
    };
    let lookup = |desktop: &Desktop| -> Result<Vec<u8>> {
        Ok(desktop.command("timeout").args(["2", "secret-tool", "lookup", "for", "harness"]).output()?.stdout)
    };
    assert!(store(&desktop)?);
    assert_eq!(lookup(&desktop)?, b"a secret");
    desktop.lock_keyring()?;
    assert_eq!(lookup(&desktop)?, b"");
    desktop.end_service("keyring")?;
    assert_eq!(lookup(&desktop)?, b"");
    desktop.restart_keyring()?;
    assert_eq!(lookup(&desktop)?, b"a secret");
    let other = Desktop::start()?;
    assert_eq!(lookup(&other)?, b"");
    Ok(())
}

#[test]
fn notifications_are_shown_and_fail_without_a_daemon() -> Result<()> {
    let mut desktop = Desktop::start()?;
    let mut person = Person::at(&desktop)?;
    let notify = |desktop: &Desktop| {
        desktop
            .command("notify-send")
            .args(["--urgency=critical", "Somebody asks", "Please look"])
            .stderr(Stdio::null())
            .status()
    };
    assert!(notify(&desktop)?.success());
    person.wait_for_text("Somebody asks", SOON)?;
    let windows = list_windows(&desktop)?;
    assert!(windows.iter().any(|w| w.class == "Dunst" && w.unmanaged));
    desktop.end_service("dunst")?;
    assert!(!notify(&desktop)?.success());
    Ok(())
}

#[test]
fn virtual_desktop_runs_a_command_and_ends_as_it_does() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let socket = folder.path().join("view");
    let password = folder.path().join("password");
    std::fs::write(&password, "pa55word\n")?;
    let mut child = Command::new(env!("CARGO_BIN_EXE_virtual-desktop"))
        .args(["--size", "640x480", "--vnc-socket"])
        .arg(&socket)
        .arg("--vnc-password-file")
        .arg(&password)
        .args(["--", "sh", "-c", "xdotool getdisplaygeometry; read x; exit 7"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    wait_until("the socket is there", SOON, || socket.exists())?;
    // It is made with mode 0 and then opened up.
    assert_eq!(mode(&socket) & 0o177, 0);
    wait_until("its owner may connect", SOON, || mode(&socket) == 0o600)?;
    assert!(Person::connect(&socket, None).is_err());
    assert!(Person::connect(&socket, Some("wrong")).is_err());
    let image = Person::connect(&socket, Some("pa55word"))?.screenshot()?;
    assert_eq!((image.width, image.height), (640, 480));
    child.stdin.take().expect("piped").write_all(b"\n")?;
    let output = child.wait_with_output()?;
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(output.stdout, b"640 480\n");
    let told = String::from_utf8(output.stderr)?;
    assert!(told.contains(&format!("ssh -L 5900:{}", socket.display())));
    assert!(!told.contains("pa55word"));
    assert!(!socket.exists());
    Ok(())
}
