//! `bodyguard init`: only where there is nothing yet, so that it widens nothing.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use bodyguard_protocol::{AgentName, Fault, WorkspaceName};
use bodyguard_supervisor::{InitError, InitOptions, init};
use bodyguard_trace::WorkspaceBody;
use clap::{Args, ValueEnum};

use super::output::{Failure, path, print, print_json, wait};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// A workspace and its folder; may be repeated
    #[arg(long, value_name = "NAME=ROOT", required = true)]
    workspace: Vec<Workspace>,
    /// An agent, with its workspaces unless it has all; may be repeated
    #[arg(long, value_name = "NAME[:WS,WS]", required = true)]
    agent: Vec<Agent>,
    /// What acts in the workspaces: this machine with your own desktop (host), or with a desktop of
    /// each session's own (private), or a simulation in memory
    #[arg(long, value_enum, default_value = "host")]
    body: Body,
    /// Seconds until a request lapses, by default ten minutes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    ask_seconds: Option<u32>,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone)]
struct Workspace(WorkspaceName, PathBuf);

impl FromStr for Workspace {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let (name, root) =
            text.split_once('=').ok_or_else(|| Fault::invalid("workspace", "a workspace is NAME=ROOT"))?;
        if root.is_empty() {
            return Err(Fault::invalid("workspace", "a workspace has a folder: NAME=ROOT"));
        }
        Ok(Self(name.parse()?, PathBuf::from(root)))
    }
}

#[derive(Debug, Clone)]
struct Agent(AgentName, Vec<WorkspaceName>);

impl FromStr for Agent {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        match text.split_once(':') {
            None => Ok(Self(text.parse()?, Vec::new())),
            Some((name, list)) => Ok(Self(name.parse()?, list.split(',').map(str::parse).collect::<Result<_, _>>()?)),
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Body {
    Host,
    Private,
    Simulator,
}

pub(super) fn run(data: &Path, arguments: Arguments) -> Result<ExitCode, Failure> {
    let body = match arguments.body {
        Body::Host => WorkspaceBody::Host,
        Body::Private => WorkspaceBody::Private,
        Body::Simulator => WorkspaceBody::Simulator,
    };
    let options = InitOptions {
        data_dir: data.to_owned(),
        workspaces: arguments.workspace.into_iter().map(|Workspace(name, root)| (name, root, Some(body))).collect(),
        agents: arguments.agent.into_iter().map(|Agent(name, workspaces)| (name, workspaces)).collect(),
        ask_seconds: arguments.ask_seconds,
        ..InitOptions::default()
    };
    let report = wait(async { init(options).await.map_err(failure) })?;
    if arguments.json {
        print_json(&report)?;
    } else {
        print(&format!("made {}\n", path(&report.data_dir)))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn failure(error: InitError) -> Failure {
    let message = bodyguard_protocol::escape_line(&error.to_string());
    match error {
        InitError::Invalid(fault) => fault.into(),
        InitError::NotEmpty(_) => Failure::unavailable(message),
        InitError::Io(..) => Failure::problem(message),
        InitError::Log(error) => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workspaces_and_agents_are_read_strictly() {
        let Workspace(name, root) = "demo=/tmp/a=b".parse().unwrap();
        assert_eq!((name.as_str(), root), ("demo", PathBuf::from("/tmp/a=b")));
        for bad in ["demo", "demo=", "=x", "../x=/tmp", ""] {
            assert!(bad.parse::<Workspace>().is_err(), "{bad}");
        }
        let Agent(name, workspaces) = "claude:a,b".parse().unwrap();
        assert_eq!((name.as_str(), workspaces.len()), ("claude", 2));
        for bad in ["", ":a", "x:", "x:a,,b", "x/y"] {
            assert!(bad.parse::<Agent>().is_err(), "{bad}");
        }
    }
}
