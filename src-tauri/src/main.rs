//! Bodyguard: the app without arguments, the command line with them.

use std::process::ExitCode;

fn main() -> ExitCode {
    bodyguard_app::cli::main()
}
