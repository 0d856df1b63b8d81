//! `bodyguard mcp`.

use std::path::Path;
use std::process::ExitCode;

use bodyguard_mcp::bridge::{self, BridgeOptions};
use bodyguard_protocol::AgentName;
use bodyguard_supervisor::{agent_socket, token_file};
use clap::Args;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The agent's name, as on the Agents page
    #[arg(long, value_name = "NAME")]
    agent: AgentName,
}

pub(super) fn run(data: &Path, arguments: &Arguments) -> ExitCode {
    bridge::run(BridgeOptions {
        data_dir: data.to_owned(),
        socket: agent_socket(data),
        token_file: token_file(data, &arguments.agent),
        agent: arguments.agent.clone(),
        patience: BridgeOptions::PATIENCE,
    })
}
