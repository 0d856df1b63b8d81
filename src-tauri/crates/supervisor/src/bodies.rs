//! Bodies: one process for each session on this machine, or a simulation.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use bodyguard_body::{Body, BodyConfig, HostBody, SimulatorBody, SimulatorConfig};
use bodyguard_protocol::Fault;
use bodyguard_trace::{WorkspaceBody, WorkspaceRow};

use crate::Config;

/// Starts bodies.
pub(crate) struct Bodies {
    program: PathBuf,
}

impl Bodies {
    pub(crate) fn new(config: &Config) -> Self {
        Self { program: config.body_program.clone() }
    }

    /// Whether the body of a workspace has a display to look at.
    pub(crate) fn has_screen(&self, workspace: &WorkspaceRow) -> bool {
        match workspace.body {
            WorkspaceBody::Simulator | WorkspaceBody::Private => true,
            WorkspaceBody::Host => std::env::var_os("DISPLAY").is_some(),
        }
    }

    /// The body for a workspace.
    ///
    /// # Errors
    /// Where the body host can't be started.
    pub(crate) async fn start(&self, workspace: &WorkspaceRow) -> Result<Arc<dyn Body>, Fault> {
        let config = body_config(workspace);
        match workspace.body {
            WorkspaceBody::Simulator => Ok(Arc::new(SimulatorBody::new(SimulatorConfig::for_root(&workspace.root)))),
            WorkspaceBody::Host | WorkspaceBody::Private => {
                let program = self.program.clone();
                let started = tokio::task::spawn_blocking(move || HostBody::spawn(&program, config)).await;
                let body = started.map_err(|error| Fault::internal(error.to_string()))??;
                Ok(Arc::new(body))
            }
        }
    }
}

fn body_config(workspace: &WorkspaceRow) -> BodyConfig {
    let variable = |name: &str| std::env::var(name).ok();
    let env_allow: BTreeMap<String, String> =
        workspace.env_allow.iter().filter_map(|name| Some((name.clone(), variable(name)?))).collect();
    if workspace.body == WorkspaceBody::Private {
        return BodyConfig {
            private_desktop: true,
            key_processes: workspace.key_processes.clone(),
            env_allow,
            ..BodyConfig::for_root(&workspace.root)
        };
    }
    BodyConfig {
        display: variable("DISPLAY"),
        xauthority: variable("XAUTHORITY"),
        at_spi_bus: variable("AT_SPI_BUS_ADDRESS"),
        key_processes: workspace.key_processes.clone(),
        env_allow,
        hidden_pids: vec![std::process::id()],
        ..BodyConfig::for_root(&workspace.root)
    }
}
