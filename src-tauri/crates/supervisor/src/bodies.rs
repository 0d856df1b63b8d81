//! Bodies: one process for each session on this machine, or a simulation.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use bodyguard_body::{
    Body, BodyConfig, BodyFuture, Effect, HostBody, Inspection, Perception, Permit, SandboxInfo, SimulatedWorld,
    SimulatorBody, SimulatorConfig, StableState,
};
use bodyguard_policy::ViewScope;
use bodyguard_protocol::ui::HealthCheck;
use bodyguard_protocol::{ErrorCode, Fault, PerceptionQuery, TypedAction};
use bodyguard_trace::{WorkspaceBody, WorkspaceRow};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{Config, Surroundings};

/// Starts bodies.
pub(crate) struct Bodies {
    program: PathBuf,
    surroundings: Surroundings,
    /// By root: like a folder of this machine, a simulated one is the same for every session.
    worlds: Mutex<BTreeMap<String, SimulatedWorld>>,
}

impl Bodies {
    pub(crate) fn new(config: &Config) -> Self {
        Self { program: config.body_program.clone(), surroundings: config.surroundings, worlds: Mutex::default() }
    }

    /// Whether the body of a workspace has a display to look at.
    pub(crate) fn has_screen(&self, workspace: &WorkspaceRow) -> bool {
        match workspace.body {
            WorkspaceBody::Simulator | WorkspaceBody::Private => true,
            WorkspaceBody::Host => self.variable("DISPLAY").is_some(),
        }
    }

    /// The body for a workspace.
    ///
    /// # Errors
    /// Where the body host can't be started.
    pub(crate) async fn start(&self, workspace: &WorkspaceRow) -> Result<Arc<dyn Body>, Fault> {
        match workspace.body {
            WorkspaceBody::Simulator => Ok(Arc::new(self.simulate(&workspace.root))),
            WorkspaceBody::Host | WorkspaceBody::Private => {
                let config = self.body_config(workspace);
                let program = self.program.clone();
                let started = tokio::task::spawn_blocking(move || HostBody::spawn(&program, config)).await;
                let body = started.map_err(|error| Fault::internal(error.to_string()))??;
                Ok(Arc::new(body))
            }
        }
    }
}

impl Bodies {
    fn simulate(&self, root: &str) -> SimulatorBody {
        let config = SimulatorConfig::for_root(root);
        let mut worlds = self.worlds.lock().unwrap_or_else(PoisonError::into_inner);
        let world = worlds.entry(config.root.clone()).or_insert_with(|| SimulatedWorld::new(&config)).clone();
        SimulatorBody::in_world(config, world)
    }

    /// A variable of the person's session; apart from it there is none.
    fn variable(&self, name: &str) -> Option<String> {
        match self.surroundings {
            Surroundings::Person => std::env::var(name).ok(),
            Surroundings::Apart => None,
        }
    }

    fn body_config(&self, workspace: &WorkspaceRow) -> BodyConfig {
        let env_allow: BTreeMap<String, String> =
            workspace.env_allow.iter().filter_map(|name| Some((name.clone(), self.variable(name)?))).collect();
        if workspace.body == WorkspaceBody::Private {
            return BodyConfig {
                private_desktop: true,
                key_processes: workspace.key_processes.clone(),
                env_allow,
                ..BodyConfig::for_root(&workspace.root)
            };
        }
        BodyConfig {
            display: self.variable("DISPLAY"),
            xauthority: self.variable("XAUTHORITY"),
            at_spi_bus: self.variable("AT_SPI_BUS_ADDRESS"),
            key_processes: workspace.key_processes.clone(),
            env_allow,
            hidden_pids: vec![std::process::id()],
            ..BodyConfig::for_root(&workspace.root)
        }
    }
}

/// What stands for the body of a session that has ended.
pub(crate) struct EndedBody(pub(crate) SandboxInfo);

impl EndedBody {
    fn refuse<T>() -> BodyFuture<'static, T>
    where
        T: Send + 'static,
    {
        let fault = Fault::new(ErrorCode::BodyLost, "the session has ended, and its body with it");
        Box::pin(std::future::ready(Err(fault)))
    }
}

impl Body for EndedBody {
    fn sandbox(&self) -> SandboxInfo {
        self.0.clone()
    }

    fn stable<'a>(&'a self, _: &'a str) -> BodyFuture<'a, StableState> {
        Self::refuse()
    }

    fn perceive(&self, _: ViewScope, _: PerceptionQuery) -> BodyFuture<'_, Perception> {
        Self::refuse()
    }

    fn inspect<'a>(&'a self, _: &'a TypedAction) -> BodyFuture<'a, Inspection> {
        Self::refuse()
    }

    fn recheck<'a>(&'a self, _: &'a TypedAction, _: &'a Value) -> BodyFuture<'a, ()> {
        Self::refuse()
    }

    fn act(&self, _: Permit, _: TypedAction, _: CancellationToken) -> BodyFuture<'_, Effect> {
        Self::refuse()
    }

    fn health(&self) -> BodyFuture<'_, Vec<HealthCheck>> {
        Self::refuse()
    }
}
