//! `bodyguard doctor`.

use std::path::Path;
use std::process::ExitCode;

use bodyguard_protocol::ui::{CheckStatus, HealthCheck, HealthView};
use clap::Args;

use super::output::{Failure, print, print_json};
use crate::health::{CheckContext, checks};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(data: &Path, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let view = HealthView { checks: checks(&CheckContext::new(data)) };
    if arguments.json {
        print_json(&view)?;
    } else {
        print(&table(&view.checks))?;
    }
    let bad = view.checks.iter().any(|check| check.status == CheckStatus::Failed);
    Ok(ExitCode::from(u8::from(bad)))
}

fn table(checks: &[HealthCheck]) -> String {
    let mut text = String::new();
    for check in checks {
        let status = match check.status {
            CheckStatus::Ok => "ok",
            CheckStatus::Warning => "warning",
            CheckStatus::Failed => "FAILED",
        };
        text.push_str(&format!("{:<14} {status:<8} {}\n", check.name, check.detail));
        if let Some(advice) = &check.advice {
            text.push_str(&format!("{:<14} {:<8} → {advice}\n", "", ""));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_check_is_ok_or_says_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let context = CheckContext { data_dir: dir.path().join("new"), body_program: dir.path().join("body") };
        let checks = checks(&context);
        for name in [
            "display",
            "capture",
            "input",
            "keyring",
            "sandbox",
            "notifications",
            "accessibility",
            "tray",
            "body",
            "data",
        ] {
            assert_eq!(checks.iter().filter(|check| check.name == name).count(), 1, "{name}");
        }
        for check in &checks {
            assert_eq!(check.status != CheckStatus::Ok, check.advice.is_some(), "{check:?}");
            assert!(!check.detail.contains('\n') && !check.detail.is_empty(), "{check:?}");
        }
    }
}
