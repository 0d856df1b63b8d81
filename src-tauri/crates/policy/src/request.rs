//! What is asked of a policy, and its translation into Cedar's words.

use std::collections::{HashMap, HashSet};

use bodyguard_protocol::{ActionType, AgentName, QueryMode, WorkspaceName};
use cedar_policy::{
    Context, Entities, Entity, EntityId, EntityTypeName, EntityUid, Request as CedarRequest,
    RestrictedExpression as Value, Schema,
};

/// One question: may this agent do this to that, here?
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request<'a> {
    /// The workspace whose policy answers.
    pub workspace: &'a WorkspaceName,
    /// The agent, as the person named it.
    pub agent: &'a AgentName,
    /// What it wants to do.
    pub operation: Operation,
    /// To what.
    pub resource: Resource,
    /// How far what runs would be contained.
    pub containment: Containment,
}

/// What an agent wants to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// To act (OS-011 §3.3).
    Act(ActionType),
    /// To look; each query mode is an action of its own in the policy.
    Perceive(QueryMode),
}

impl Operation {
    /// The name in policies, such as `file_edit` or `perceive_git`.
    pub const fn policy_action(self) -> &'static str {
        match self {
            Self::Act(kind) => kind.name(),
            Self::Perceive(mode) => mode.policy_action(),
        }
    }
}

/// What it is done to. Paths are resolved: absolute, without links, `.` or `..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resource {
    /// A file or folder.
    Path {
        /// The resolved path.
        path: String,
        /// Whether it lies in the workspace.
        inside_workspace: bool,
        /// Whether its content runs or is obeyed later, such as a git hook's.
        runs_later: bool,
    },
    /// A command.
    Command {
        /// The program, where there is exactly one to name.
        program: Option<String>,
        /// The text for the shell, or the arguments with spaces between.
        text: String,
        /// Whether it starts in the workspace.
        cwd_inside_workspace: bool,
        /// Whether it wants the network.
        network: bool,
    },
    /// A window that is typed or clicked into.
    Window {
        /// Its title.
        title: String,
        /// The application that it belongs to; empty where nothing says.
        app: String,
        /// Whether what is typed there can run commands: terminals, launchers, the desktop itself.
        runs_commands: bool,
        /// Whether it is on a desktop of the session's own.
        private: bool,
    },
    /// A process that the session started.
    Process {
        /// The words that it was started with.
        command: String,
    },
    /// A monitor.
    Screen {
        /// Its target, such as `monitor:1`.
        monitor: String,
        /// Whether it is of a desktop of the session's own.
        private: bool,
    },
    /// A folder that a perception looks into.
    Workspace {
        /// The resolved path.
        path: String,
        /// Whether it lies in the workspace.
        inside_workspace: bool,
    },
}

/// How far what runs is kept from the rest of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Containment {
    /// Not at all.
    None,
    /// With some layers missing.
    Reduced,
    /// With every layer.
    Full,
}

impl Containment {
    /// The name in policies.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Reduced => "reduced",
            Self::Full => "full",
        }
    }
}

impl Request<'_> {
    /// The request in Cedar's words. Refused where the operation doesn't go with the resource.
    pub(crate) fn to_cedar(&self, schema: &Schema) -> Result<(CedarRequest, Entities), String> {
        let agent = uid("Agent", self.agent.as_str())?;
        let resource = self.resource.entity()?;
        let context = Context::from_pairs([
            ("workspace".to_owned(), text(self.workspace.as_str())),
            ("containment".to_owned(), Value::new_entity_uid(uid("Containment", self.containment.name())?)),
            ("network".to_owned(), Value::new_bool(self.resource.wants_network())),
        ])
        .map_err(|e| e.to_string())?;
        let action = uid("Action", self.operation.policy_action())?;
        let request = CedarRequest::new(agent.clone(), action, resource.uid(), context, Some(schema))
            .map_err(|e| e.to_string())?;
        let entities = Entities::from_entities([Entity::new_no_attrs(agent, HashSet::new()), resource], Some(schema))
            .map_err(|e| e.to_string())?;
        Ok((request, entities))
    }
}

impl Resource {
    const fn wants_network(&self) -> bool {
        matches!(self, Self::Command { network: true, .. })
    }

    fn entity(&self) -> Result<Entity, String> {
        let (kind, id, attributes) = match self {
            Self::Path { path, inside_workspace, runs_later } => (
                "Path",
                path,
                vec![
                    ("path", text(path)),
                    ("inside_workspace", Value::new_bool(*inside_workspace)),
                    ("runs_later", Value::new_bool(*runs_later)),
                ],
            ),
            Self::Command { program, text: command, cwd_inside_workspace, network: _ } => {
                let mut attributes =
                    vec![("text", text(command)), ("cwd_inside_workspace", Value::new_bool(*cwd_inside_workspace))];
                attributes.extend(program.as_deref().map(|program| ("program", text(program))));
                ("Command", command, attributes)
            }
            Self::Window { title, app, runs_commands, private } => (
                "Window",
                title,
                vec![
                    ("title", text(title)),
                    ("app", text(app)),
                    ("runs_commands", Value::new_bool(*runs_commands)),
                    ("private", Value::new_bool(*private)),
                ],
            ),
            Self::Process { command } => ("Process", command, vec![("command", text(command))]),
            Self::Screen { monitor, private } => {
                ("Screen", monitor, vec![("monitor", text(monitor)), ("private", Value::new_bool(*private))])
            }
            Self::Workspace { path, inside_workspace } => (
                "Workspace",
                path,
                vec![("path", text(path)), ("inside_workspace", Value::new_bool(*inside_workspace))],
            ),
        };
        let attributes: HashMap<_, _> = attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Entity::new(uid(kind, id)?, attributes, HashSet::new()).map_err(|e| e.to_string())
    }
}

fn text(value: &str) -> Value {
    Value::new_string(value.to_owned())
}

fn uid(kind: &str, id: &str) -> Result<EntityUid, String> {
    let kind: EntityTypeName = kind.parse().map_err(|e: cedar_policy::ParseErrors| e.to_string())?;
    Ok(EntityUid::from_type_name_and_id(kind, EntityId::new(id)))
}
