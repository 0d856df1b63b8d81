//! `bodyguard contract` and `bodyguard schema`: what is published for others.

use std::process::ExitCode;

use bodyguard_protocol::published::{SCHEMAS, contract};
use clap::Args;

use super::output::{Failure, print, print_json};

#[derive(Debug, Args)]
pub(super) struct SchemaArguments {
    /// Whose schema; without it, the names are listed
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(SCHEMAS.map(|(name, _)| name)))]
    name: Option<String>,
}

pub(super) fn show_contract() -> Result<ExitCode, Failure> {
    print_json(&contract())?;
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
