//! What works on this machine, and what to do where it doesn't: for `bodyguard doctor` and the
//! settings page. Needs no window, starts nothing that stays, and ends within seconds.

mod screen;
mod services;
mod system;

use std::path::{Path, PathBuf};

use bodyguard_protocol::ui::{CheckStatus, HealthCheck};

/// What the checks need to know.
#[derive(Debug, Clone)]
pub struct CheckContext {
    /// The data folder; it may not be there yet.
    pub data_dir: PathBuf,
    /// The body host's program.
    pub body_program: PathBuf,
}

impl CheckContext {
    /// For this data folder, with the body host that lies beside this program.
    pub fn new(data_dir: &Path) -> Self {
        let beside = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.join("bodyguard-body")));
        Self {
            data_dir: data_dir.to_owned(),
            body_program: beside.unwrap_or_else(|| PathBuf::from("/usr/bin/bodyguard-body")),
        }
    }
}

/// Makes all checks, one after the other. Blocks: for a thread of its own.
pub fn checks(context: &CheckContext) -> Vec<HealthCheck> {
    vec![
        screen::display(),
        screen::capture(),
        screen::input(),
        screen::private_desktops(),
        services::keyring(),
        system::sandbox(),
        services::notifications(),
        services::accessibility(),
        services::tray(),
        system::body(context),
        system::data(context),
    ]
}

/// Whether commands can be contained here, or why not and what to do.
///
/// # Errors
/// What is missing, in one sentence.
pub(crate) fn containment() -> Result<(), String> {
    let check = system::sandbox();
    match check.status {
        CheckStatus::Ok | CheckStatus::Warning => Ok(()),
        CheckStatus::Failed => Err(match check.advice {
            Some(advice) => format!("{} ({advice})", check.detail),
            None => check.detail,
        }),
    }
}

fn ok(name: &str, detail: impl Into<String>) -> HealthCheck {
    HealthCheck { name: name.to_owned(), status: CheckStatus::Ok, detail: detail.into(), advice: None }
}

fn warning(name: &str, detail: impl Into<String>, advice: impl Into<String>) -> HealthCheck {
    let (detail, advice) = (detail.into(), Some(advice.into()));
    HealthCheck { name: name.to_owned(), status: CheckStatus::Warning, detail, advice }
}

fn failed(name: &str, detail: impl Into<String>, advice: impl Into<String>) -> HealthCheck {
    HealthCheck { status: CheckStatus::Failed, ..warning(name, detail, advice) }
}

/// The command that installs Debian packages.
fn install(packages: &str) -> String {
    format!("sudo apt-get install --no-install-recommends {packages}")
}
