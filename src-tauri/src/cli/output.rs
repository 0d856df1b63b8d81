//! What commands print, and with which code they end.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use bodyguard_protocol::{Fault, escape_line};
use bodyguard_trace::LogError;
use serde::Serialize;

/// Why a command didn't do what it was asked.
#[derive(Debug)]
pub struct Failure {
    /// One sentence, escaped.
    pub message: String,
    code: u8,
}

impl Failure {
    /// It was called wrongly.
    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: 2 }
    }

    /// What was asked for isn't there, or is held by somebody else.
    pub(super) fn unavailable(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: 3 }
    }

    /// It was there, and something about it is wrong.
    pub(super) fn problem(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: 1 }
    }

    /// The process's exit code.
    pub fn code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

impl From<LogError> for Failure {
    fn from(error: LogError) -> Self {
        let message = escape_line(&error.to_string());
        match error {
            LogError::NoLog(_)
            | LogError::Owned { .. }
            | LogError::Newer { .. }
            | LogError::UnknownTrace
            | LogError::NoCheckpoint => Self::unavailable(message),
            _ => Self::problem(message),
        }
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        let place = fault.field.map(|field| format!("{field}: ")).unwrap_or_default();
        Self::usage(format!("{place}{}", fault.message))
    }
}

/// A path, escaped.
pub(super) fn path(path: &Path) -> String {
    escape_line(&path.display().to_string())
}

/// Prints text. A reader that has enough, such as `head`, is no failure.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    written(io::stdout().lock().write_all(text.as_bytes()))
}

/// Prints a value as indented JSON.
pub(super) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|e| Failure::problem(e.to_string()))?;
    print(&format!("{text}\n"))
}

fn written(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::problem(format!("can't write the output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Runs something that waits, on this thread.
pub(super) fn wait<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|e| Failure::problem(format!("can't start: {e}")))?.block_on(work)
}

/// A timestamp, or a dash.
pub(super) fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// The name of a unit variant as it stands in JSON.
pub(super) fn word(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
}
