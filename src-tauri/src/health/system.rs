//! Containment, the body host, the data folder.

use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use bodyguard_protocol::escape_line;
use bodyguard_protocol::ui::HealthCheck;

use super::{CheckContext, failed, install, ok, warning};

/// How long the sandbox may take to start and end.
const PATIENCE: Duration = Duration::from_secs(5);

/// The namespaces that a command of an agent is put into.
const SANDBOX: &[&str] =
    &["--unshare-all", "--die-with-parent", "--new-session", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"];

pub(super) fn sandbox() -> HealthCheck {
    const NAME: &str = "sandbox";
    let child = Command::new("bwrap")
        .args(SANDBOX)
        .args(["--", "/bin/true"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let child = match child {
        Ok(child) => child,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return failed(NAME, "bubblewrap isn't installed: commands of agents are refused", install("bubblewrap"));
        }
        Err(error) => return failed(NAME, format!("bubblewrap can't be started: {error}"), install("bubblewrap")),
    };
    match end_of(child) {
        Ok((status, _)) if status.success() && rustix::process::geteuid().is_root() => warning(
            NAME,
            "bubblewrap works, but as root it holds less: commands run as the workspace's owner, or as nobody, and \
                 are refused where that user can't enter the workspace's folder",
            "run Bodyguard as an ordinary user",
        ),
        Ok((status, _)) if status.success() => ok(NAME, "bubblewrap, all namespaces, no network"),
        Ok((_, said)) => failed(NAME, format!("bubblewrap fails: {}", escape_line(said.trim())), namespaces_advice()),
        Err(error) => failed(NAME, format!("bubblewrap: {error}"), namespaces_advice()),
    }
}

/// What keeps an ordinary user from making namespaces, where that can be seen.
fn namespaces_advice() -> String {
    let value = |name: &str| std::fs::read_to_string(format!("/proc/sys/{name}")).unwrap_or_default().trim().to_owned();
    if value("kernel/unprivileged_userns_clone") == "0" {
        return "sudo sysctl -w kernel.unprivileged_userns_clone=1".to_owned();
    }
    if value("kernel/apparmor_restrict_unprivileged_userns") == "1" {
        return "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0".to_owned();
    }
    "let ordinary users make namespaces: sudo sysctl -w user.max_user_namespaces=10000".to_owned()
}

/// Waits for a child, with what it said to its standard error; ends it if it takes too long.
fn end_of(mut child: Child) -> io::Result<(ExitStatus, String)> {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        if let Some(status) = child.try_wait()? {
            let said = child.stderr.take().map(io::read_to_string).transpose()?.unwrap_or_default();
            return Ok((status, said));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill()?;
    child.wait()?;
    Err(io::Error::new(io::ErrorKind::TimedOut, "it doesn't end"))
}

pub(super) fn body(context: &CheckContext) -> HealthCheck {
    const NAME: &str = "body";
    let program = escape_line(&context.body_program.display().to_string());
    match std::fs::metadata(&context.body_program) {
        Ok(found) if found.is_file() && found.permissions().mode() & 0o111 != 0 => ok(NAME, program),
        Ok(_) => failed(NAME, format!("{program} isn't a program"), "install Bodyguard again"),
        Err(error) => {
            failed(NAME, format!("{program}: {error}"), "install Bodyguard again: bodyguard-body belongs beside it")
        }
    }
}

pub(super) fn data(context: &CheckContext) -> HealthCheck {
    const NAME: &str = "data";
    let shown = escape_line(&context.data_dir.display().to_string());
    if !context.data_dir.exists() {
        return ok(NAME, format!("{shown} (made at the first start)"));
    }
    match loose(&context.data_dir) {
        Ok(None) => ok(NAME, shown),
        Ok(Some(what)) => {
            let advice = format!("chmod -R go= '{shown}'");
            failed(NAME, format!("{} can be used by others", escape_line(&what)), advice)
        }
        Err(error) => {
            failed(NAME, format!("{shown}: {error}"), format!("make {shown} yours: sudo chown -R \"$USER\" '{shown}'"))
        }
    }
}

/// The first of the data folder and what lies in it that others may use.
fn loose(dir: &Path) -> io::Result<Option<String>> {
    let me = rustix::process::geteuid().as_raw();
    let mut paths = vec![dir.to_owned()];
    for entry in std::fs::read_dir(dir)? {
        paths.push(entry?.path());
    }
    for path in paths {
        let found = std::fs::symlink_metadata(&path)?;
        if !found.is_symlink() && (found.mode() & 0o077 != 0 || found.uid() != me) {
            return Ok(Some(path.display().to_string()));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bodyguard_protocol::ui::CheckStatus;

    fn context(dir: &Path) -> CheckContext {
        CheckContext { data_dir: dir.to_owned(), body_program: dir.join("bodyguard-body") }
    }

    #[test]
    fn a_data_folder_that_others_can_read_is_named() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o700)).unwrap();
        let file = dir.path().join("log.db");
        std::fs::write(&file, "").unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
        assert_eq!(data(&context(dir.path())).status, CheckStatus::Ok);
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
        let check = data(&context(dir.path()));
        assert_eq!(check.status, CheckStatus::Failed);
        assert!(check.detail.contains("log.db"), "{}", check.detail);
    }

    #[test]
    fn a_missing_body_host_is_a_failure_and_a_missing_folder_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let nowhere = context(&dir.path().join("new"));
        assert_eq!(body(&nowhere).status, CheckStatus::Failed);
        assert_eq!(data(&nowhere).status, CheckStatus::Ok);
    }

    #[test]
    fn a_child_that_does_not_end_is_ended() {
        let child = Command::new("sleep").arg("60").stderr(Stdio::piped()).spawn().unwrap();
        let pid = child.id();
        assert_eq!(end_of(child).unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }
}
