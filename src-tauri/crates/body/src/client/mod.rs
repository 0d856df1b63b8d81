//! The supervisor's side of a body host.

mod desktop;
mod link;

use std::path::Path;
use std::time::Duration;

use bodyguard_policy::ViewScope;
use bodyguard_protocol::ui::HealthCheck;
use bodyguard_protocol::{ErrorCode, Fault, Params, PerceptionQuery, TypedAction};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::body::{Body, BodyFuture};
use crate::frame::{Answer, Request};
use crate::{BodyConfig, Effect, Inspection, Perception, Permit, SandboxInfo, StableState};
use desktop::PrivateDesktop;
use link::Link;

/// A look that takes longer is given up; a hung X server is the usual cause.
const LOOK_LIMIT: Duration = Duration::from_secs(30);
const INPUT_LIMIT: Duration = Duration::from_secs(15 * 60);
/// What an act may take beyond its own limit before the host counts as hung.
const ACT_MARGIN: Duration = Duration::from_secs(20);

/// A body host in a process of its own. Dropping it ends the process and everything that it started.
#[derive(Debug)]
pub struct HostBody {
    link: Link,
    sandbox: SandboxInfo,
    root: String,
    /// Ended after the host, which is connected to it.
    _desktop: Option<PrivateDesktop>,
}

impl HostBody {
    /// Starts `program` (`bodyguard-body`) and waits until it has tested its containment. Blocks for
    /// some tens of milliseconds; call it where blocking is allowed.
    ///
    /// # Errors
    /// `body_lost` where it can't be started or ends at once; what it says about the configuration,
    /// such as `not_found` for a root that isn't there; `no_display` where a private desktop can't start.
    pub fn spawn(program: &Path, mut config: BodyConfig) -> Result<Self, Fault> {
        let root = config.root.clone();
        let desktop = if config.private_desktop { Some(PrivateDesktop::start()?) } else { None };
        if let Some(desktop) = &desktop {
            config.display = Some(desktop.display());
            config.xauthority = Some(desktop.cookie().display().to_string());
            config.at_spi_bus = None;
        }
        let (link, answer) = Link::start(program, config)?;
        match answer {
            Answer::Started(sandbox) => Ok(Self { link, sandbox, root, _desktop: desktop }),
            other => Err(unexpected(other)),
        }
    }

    /// The host's process id, for messages and for listing.
    pub fn pid(&self) -> u32 {
        self.link.pid()
    }

    /// Whether the host has ended, so that every call answers `body_lost`.
    pub fn is_lost(&self) -> bool {
        self.link.is_lost()
    }
}

impl Body for HostBody {
    fn sandbox(&self) -> SandboxInfo {
        self.sandbox.clone()
    }

    fn stable<'a>(&'a self, cwd: &'a str) -> BodyFuture<'a, StableState> {
        Box::pin(async move {
            match self.link.look(Request::Stable { cwd: cwd.to_owned() }, LOOK_LIMIT).await?.0 {
                Answer::Stable(state) => Ok(state),
                other => Err(unexpected(other)),
            }
        })
    }

    fn perceive(&self, scope: ViewScope, query: PerceptionQuery) -> BodyFuture<'_, Perception> {
        Box::pin(async move {
            check_scope(&scope, &query, &self.root)?;
            match self.link.look(Request::Perceive { query }, LOOK_LIMIT).await? {
                (Answer::Perception(mut seen, head), bytes) => {
                    seen.image = head.zip(bytes).map(|(head, bytes)| head.join(bytes));
                    Ok(*seen)
                }
                (other, _) => Err(unexpected(other)),
            }
        })
    }

    fn inspect<'a>(&'a self, action: &'a TypedAction) -> BodyFuture<'a, Inspection> {
        Box::pin(async move {
            match self.link.look(Request::Inspect { action: action.clone() }, LOOK_LIMIT).await?.0 {
                Answer::Inspection(inspection) => Ok(*inspection),
                other => Err(unexpected(other)),
            }
        })
    }

    fn recheck<'a>(&'a self, resolved: &'a TypedAction, binding: &'a Value) -> BodyFuture<'a, ()> {
        Box::pin(async move {
            let request = Request::Recheck { action: resolved.clone(), binding: binding.clone() };
            match self.link.look(request, LOOK_LIMIT).await?.0 {
                Answer::Unchanged => Ok(()),
                other => Err(unexpected(other)),
            }
        })
    }

    fn act(&self, permit: Permit, resolved: TypedAction, cancel: CancellationToken) -> BodyFuture<'_, Effect> {
        Box::pin(async move {
            permit.admits(&resolved)?;
            let limit = match &resolved.params {
                Params::ShellExec(shell) => Duration::from_millis(shell.timeout_ms).saturating_add(ACT_MARGIN),
                // Typing as slowly as it can be asked for, and held keys.
                Params::KeyboardInput(_) | Params::MouseClick(_) | Params::MouseDrag(_) => INPUT_LIMIT,
                Params::FileRead(_)
                | Params::FileWrite(_)
                | Params::FileEdit(_)
                | Params::FileDelete(_)
                | Params::ScreenCapture(_)
                | Params::ProcessSpawn(_)
                | Params::ProcessSignal(_) => LOOK_LIMIT,
            };
            let request = Request::Act {
                action: resolved,
                action_digest: permit.action_digest().clone(),
                binding_digest: permit.binding_digest().clone(),
            };
            match self.link.act(request, limit, cancel).await? {
                (Answer::Effect(mut effect, head), bytes) => {
                    effect.image = head.zip(bytes).map(|(head, bytes)| head.join(bytes));
                    Ok(*effect)
                }
                (other, _) => Err(unexpected(other)),
            }
        })
    }

    fn health(&self) -> BodyFuture<'_, Vec<HealthCheck>> {
        Box::pin(async move {
            match self.link.look(Request::Health, LOOK_LIMIT).await?.0 {
                Answer::Health(checks) => Ok(checks),
                other => Err(unexpected(other)),
            }
        })
    }
}

/// Whether a scope is for this look and this workspace.
pub(crate) fn check_scope(scope: &ViewScope, query: &PerceptionQuery, root: &str) -> Result<(), Fault> {
    if scope.mode() == query.mode && scope.root() == root {
        return Ok(());
    }
    Err(Fault::new(ErrorCode::DeniedByPolicy, "the scope is for another look or another workspace"))
}

fn unexpected(answer: Answer) -> Fault {
    match answer {
        Answer::Fault(fault) => fault,
        _ => Fault::internal("the body host answered something else than was asked"),
    }
}
