//! `bodyguard contract` and `bodyguard schema`: what is published for others.

use std::process::ExitCode;

use bodyguard_protocol::published::{SCHEMAS, contract, loop_manifest};
use clap::Args;

use super::output::{Failure, print, print_json};

#[derive(Debug, Args)]
pub(super) struct SchemaArguments {
    /// Whose schema; without it, the names are listed
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(SCHEMAS.map(|(name, _)| name)))]
    name: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct ContractArguments {
    /// The manifest of the PULSE loop that a body and its agent make, instead
    #[arg(long = "loop")]
    of_loop: bool,
}

pub(super) fn show_contract(arguments: &ContractArguments) -> Result<ExitCode, Failure> {
    print_json(&if arguments.of_loop { loop_manifest() } else { contract() })?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn show_schema(arguments: &SchemaArguments) -> Result<ExitCode, Failure> {
    let wanted = SCHEMAS.iter().find(|(name, _)| Some(*name) == arguments.name.as_deref());
    match wanted {
        Some((_, schema)) => print_json(&schema())?,
        None => print(&SCHEMAS.map(|(name, _)| format!("{name}\n")).concat())?,
    }
    Ok(ExitCode::SUCCESS)
}
