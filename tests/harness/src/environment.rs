//! The environment of a virtual desktop, and nothing of the caller's.

use std::ffi::{OsStr, OsString};
use std::process::Command;

/// Variables of the caller that are let through, because they only concern the tests themselves.
const PASSED: [&str; 4] = ["PATH", "RUST_BACKTRACE", "RUST_LOG", "LLVM_PROFILE_FILE"];

/// A full set of environment variables for commands.
#[derive(Clone, Debug, Default)]
pub struct Environment(Vec<(String, OsString)>);

impl Environment {
    /// `PATH`, `LANG` and the few variables of the caller that concern the tests.
    #[must_use]
    pub fn base() -> Self {
        let mut new = Self::default();
        for name in PASSED {
            if let Some(value) = std::env::var_os(name) {
                new.set(name, value);
            }
        }
        new.set("LANG", "C.UTF-8");
        new
    }

    /// Sets a variable, replacing an earlier value.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<OsString>) {
        let name = name.into();
        self.0.retain(|(other, _)| *other != name);
        self.0.push((name, value.into()));
    }

    /// Removes a variable.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(other, _)| other != name);
    }

    /// The value of a variable.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_os_str())
    }

    /// All variables, in the order they were set.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &OsStr)> {
        self.0.iter().map(|(n, v)| (n.as_str(), v.as_os_str()))
    }

    /// A command with exactly this environment.
    #[must_use]
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear();
        command.envs(self.0.iter().map(|(n, v)| (n, v)));
        command
    }
}
