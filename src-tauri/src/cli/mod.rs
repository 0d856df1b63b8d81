//! The command line.

mod output;

use std::path::PathBuf;
use std::process::ExitCode;

/// placeholder while the house is built
pub fn main() -> ExitCode {
    let data = std::env::args().nth(2).map(PathBuf::from).or_else(crate::default_data_dir).unwrap();
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let presence: bodyguard_supervisor::PresenceFactory = std::sync::Arc::new(|n| std::sync::Arc::new(bodyguard_policy::EnrolledDevices::new(n)));
    match crate::run(crate::AppOptions { data_dir: data, presence }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{e}");
            ExitCode::from(3)
        }
    }
}
