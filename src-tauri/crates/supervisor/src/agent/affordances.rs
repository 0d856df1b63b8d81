//! Affordances: environment ∩ policy (OS-011 §3.5, §6.4).

use std::sync::Arc;

use bodyguard_body::runs_later;
use bodyguard_policy::{Operation, Policy, Request, Resource, Verdict};
use bodyguard_protocol::{
    ActionType, Affordance, AffordanceSet, BODY_SUBTYPE, ErrorCode, Fault, FileEntry, FileKind, PerceptionQuery,
    Provenance, QueryMode, canonical_digest,
};

use super::admission::{absolute, containment, is_inside};
use super::{perceive, resource};
use crate::core::Core;
use crate::session::Session;

/// How the policy stands to one class of targets.
enum Stand {
    Permits { asks: bool },
    Denies,
}

/// Enumerates what may be done now. Has no side effects: refs stay fresh, nothing is recorded.
pub(super) async fn enumerate(
    core: &Arc<Core>,
    session: &Arc<Session>,
    scope: Option<String>,
) -> Result<AffordanceSet, Fault> {
    core.refuse_if_stopped()?;
    let root = &session.workspace.root;
    let policy = core.policies.current(&core.log, &session.workspace.name).await?;
    let scope_dir = match &scope {
        Some(text) if text.starts_with('@') => session.resolve_ref(text)?,
        Some(text) => absolute(root, text)?,
        None => root.clone(),
    };
    let look = perceive::decide(core, session, QueryMode::Filesystem, Some(&scope_dir)).await?;
    let Some(view) = look.view_scope(root) else {
        return Err(Fault::new(ErrorCode::DeniedByPolicy, "this scope may not be looked at").at("scope"));
    };
    core.revive(session).await?;
    let query = PerceptionQuery { scope: Some(scope_dir.clone()), depth: 4, ..PerceptionQuery::default() };
    let found = session.body().perceive(view, query).await.inspect_err(|fault| session.note_fault(fault))?;
    let mut affordances = Vec::new();
    let mut filtered_out = 0;
    for class in classes(session, &scope_dir) {
        match stand(session, &policy, class.kind, &class.example) {
            Stand::Permits { asks } => affordances.push(Affordance::new(class.kind, class.target, class.label, asks)),
            Stand::Denies => filtered_out += 1,
        }
    }
    for entry in found.entries.iter().filter(|entry| entry.kind == FileKind::File && entry.path_exact) {
        for &kind in file_kinds(entry) {
            match stand(session, &policy, kind, &entry.path) {
                Stand::Permits { asks } => {
                    affordances.push(Affordance::new(kind, entry.path.clone(), label(root, &entry.path), asks));
                }
                Stand::Denies => filtered_out += 1,
            }
        }
    }
    let mut ids: Vec<&str> = affordances.iter().map(|affordance| affordance.affordance_id.as_str()).collect();
    ids.sort_unstable();
    let now = core.now().wall;
    Ok(AffordanceSet {
        affordance_set_hash: canonical_digest(&ids)?,
        observed_at: now,
        body_subtype: BODY_SUBTYPE.to_owned(),
        scope,
        policy_filtered_out: filtered_out,
        provenance: Provenance::new("affordances", now, session.agent_id()),
        affordances,
    })
}

/// A class of targets that the environment affords.
struct Class {
    kind: ActionType,
    target: String,
    label: String,
    /// A target of the class that the policy is asked about.
    example: String,
}

fn classes(session: &Session, scope: &str) -> Vec<Class> {
    let below = format!("{}/**", scope.trim_end_matches('/'));
    let mut classes = vec![
        Class {
            kind: ActionType::ShellExec,
            target: below.clone(),
            label: "commands in this folder".into(),
            example: scope.to_owned(),
        },
        Class {
            kind: ActionType::FileRead,
            target: below.clone(),
            label: "files in this folder".into(),
            example: format!("{scope}/file"),
        },
        Class {
            kind: ActionType::FileWrite,
            target: below.clone(),
            label: "files in this folder, new ones too".into(),
            example: format!("{scope}/file"),
        },
        Class {
            kind: ActionType::FileEdit,
            target: below.clone(),
            label: "files in this folder that can be written".into(),
            example: format!("{scope}/file"),
        },
        Class {
            kind: ActionType::FileDelete,
            target: below,
            label: "files and folders in this folder".into(),
            example: format!("{scope}/file"),
        },
    ];
    classes.push(Class {
        kind: ActionType::ProcessSpawn,
        target: "**".to_owned(),
        label: "programs".into(),
        example: String::new(),
    });
    for process in &session.look().processes {
        classes.push(Class {
            kind: ActionType::ProcessSignal,
            target: process.target.clone(),
            label: bodyguard_protocol::escape_line(&process.command),
            example: process.command.clone(),
        });
    }
    for window in &session.look().windows {
        let label = bodyguard_protocol::escape_line(&window.title);
        for kind in [ActionType::KeyboardInput, ActionType::MouseClick, ActionType::MouseDrag] {
            let (target, example) = (window.target.clone(), window.target.clone());
            classes.push(Class { kind, target, label: label.clone(), example });
        }
    }
    if session.has_screen {
        let monitor = "monitor:0".to_owned();
        classes.push(Class {
            kind: ActionType::ScreenCapture,
            target: monitor.clone(),
            label: "the first monitor".into(),
            example: monitor,
        });
    }
    classes
}

/// What the environment affords for a file: one that can't be written affords no change (R20).
fn file_kinds(entry: &FileEntry) -> &'static [ActionType] {
    const ALL: [ActionType; 4] =
        [ActionType::FileRead, ActionType::FileWrite, ActionType::FileEdit, ActionType::FileDelete];
    if entry.writable { &ALL } else { &[ActionType::FileRead] }
}

fn label(root: &str, path: &str) -> String {
    let relative = path.strip_prefix(root).and_then(|rest| rest.strip_prefix('/')).unwrap_or(path);
    bodyguard_protocol::escape_line(relative)
}

fn stand(session: &Session, policy: &Policy, kind: ActionType, target: &str) -> Stand {
    let inside = is_inside(&session.workspace.root, target);
    let resource = match kind {
        ActionType::ShellExec => {
            Resource::Command { program: None, text: String::new(), cwd_inside_workspace: inside, network: false }
        }
        ActionType::ProcessSpawn => {
            Resource::Command { program: None, text: String::new(), cwd_inside_workspace: true, network: false }
        }
        ActionType::ProcessSignal => Resource::Process { command: target.to_owned() },
        ActionType::ScreenCapture => Resource::Screen { monitor: target.to_owned(), private: session.is_private() },
        ActionType::KeyboardInput | ActionType::MouseClick | ActionType::MouseDrag => {
            let look = session.look();
            resource::window(look.windows.iter().find(|window| window.target == target), false, session.is_private())
        }
        ActionType::FileRead | ActionType::FileWrite | ActionType::FileEdit | ActionType::FileDelete => {
            Resource::Path { path: target.to_owned(), inside_workspace: inside, runs_later: runs_later(target) }
        }
    };
    let decision = policy.decide(&Request {
        workspace: &session.workspace.name,
        agent: &session.agent,
        operation: Operation::Act(kind),
        resource,
        containment: containment(&session.body().sandbox()),
    });
    match decision.verdict() {
        Verdict::Allow { .. } => Stand::Permits { asks: false },
        Verdict::Ask { .. } => Stand::Permits { asks: true },
        Verdict::Deny { .. } => Stand::Denies,
    }
}

/// Whether an action on a resolved target is in the current set (OS-011 §7.2). The body has looked
/// at the very target already, so that what remains is whether a class covers it.
pub(super) fn afforded(session: &Session, policy: &Policy, kind: ActionType, target: &str) -> bool {
    // The body has found a window at the point, or none, and the policy has judged what it found.
    if kind.is_input() {
        return session.look().sees_screen;
    }
    let monitor = kind == ActionType::ScreenCapture && session.has_screen;
    let covered = classes(session, &session.workspace.root)
        .into_iter()
        .any(|class| Affordance::new(class.kind, class.target, class.label, true).covers(kind, target));
    (covered || monitor) && matches!(stand(session, policy, kind, target), Stand::Permits { .. })
}

/// Checks that every stated precondition is an affordance that holds now (OS-011 §3.3).
pub(super) async fn check_preconditions(
    core: &Core,
    session: &Session,
    policy: &Policy,
    preconditions: &[String],
) -> Result<(), Fault> {
    for (index, text) in preconditions.iter().enumerate() {
        let unmet = |why: &str| {
            let shown = bodyguard_protocol::escape_line(text);
            Fault::new(ErrorCode::PreconditionFailed, format!("`{shown}` doesn't hold: {why}"))
                .at(format!("action.preconditions[{index}]"))
        };
        let (kind, target) = text.split_once('@').map_or((text.as_str(), None), |(kind, target)| (kind, Some(target)));
        let kind = ActionType::ALL.into_iter().find(|known| known.name() == kind);
        let kind = kind.ok_or_else(|| unmet("it names no action of this body"))?;
        let target = match target {
            None => session.workspace.root.clone(),
            Some(reference) if reference.starts_with('@') => session.resolve_ref(reference)?,
            Some(pattern) => pattern.strip_suffix("/**").unwrap_or(pattern).to_owned(),
        };
        if matches!(stand(session, policy, kind, &target), Stand::Denies) {
            return Err(unmet("it isn't in the current affordance set"));
        }
        // A write may make its file.
        let names_file = matches!(kind, ActionType::FileRead | ActionType::FileEdit | ActionType::FileDelete);
        if names_file && !text.ends_with("/**") && !exists_for(core, session, kind, &target).await? {
            return Err(unmet("it isn't in the current affordance set"));
        }
    }
    Ok(())
}

/// Whether the environment affords an action on one file.
async fn exists_for(core: &Core, session: &Session, kind: ActionType, path: &str) -> Result<bool, Fault> {
    let parent = path.rsplit_once('/').map_or("/", |(parent, _)| if parent.is_empty() { "/" } else { parent });
    let look = perceive::decide(core, session, QueryMode::Filesystem, Some(parent)).await?;
    let Some(view) = look.view_scope(&session.workspace.root) else { return Ok(false) };
    let query = PerceptionQuery { scope: Some(parent.to_owned()), depth: 1, ..PerceptionQuery::default() };
    match session.body().perceive(view, query).await {
        Ok(found) => Ok(found
            .entries
            .iter()
            .any(|entry| entry.path == path && entry.kind == FileKind::File && file_kinds(entry).contains(&kind))),
        Err(fault) if fault.code == ErrorCode::NotFound => Ok(false),
        Err(fault) => Err(fault),
    }
}
