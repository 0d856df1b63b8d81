//! `bodyguard-body`: the process that touches the world on behalf of one session.

use std::process::ExitCode;

fn main() -> ExitCode {
    bodyguard_body::host::run()
}
