//! Perception, governed like action.

use std::sync::Arc;

use bodyguard_body::{Perception, StableState};
use bodyguard_policy::{Decision, Operation, Request, Resource, Verdict, ViewScope, accept};
use bodyguard_protocol::ui::{AskState, DecisionKind, DecisionView, UiEventKind};
use bodyguard_protocol::{
    AskId, BODY_SUBTYPE, Block, BlockKind, Digest, ErrorCode, Fault, Observation, PerceptionQuery, Provenance,
    QueryMode, ReadmeFields, StateHash, StateProfile, canonical_digest, escape_line, escape_text,
};
use bodyguard_trace::{MoveNote, Perceived as PerceivedRecord, Record, SeenState};
use serde_json::{Value, json};

use super::admission::{absolute, containment, is_inside, refuse};
use super::{PerceiveCall, PerceiveReply, Refusal, Waiting};
use crate::ask::{self, Ask, Facts, Finished, Opening, Origin, Yes};
use crate::core::Core;
use crate::session::Session;

/// Commands that the history shows.
const HISTORY: u32 = 50;

pub(super) async fn perceive(
    core: &Arc<Core>,
    session: &Arc<Session>,
    call: PerceiveCall,
) -> Result<PerceiveReply, Refusal> {
    core.refuse_if_stopped()?;
    let mut query = call.query;
    if !(1..=8).contains(&query.depth) {
        return Err(Fault::invalid("query.depth", "between 1 and 8").into());
    }
    query.scope = Some(scope_path(session, query.scope.as_deref())?);
    let words = call.words.map(|words| super::handle::checked_words("reason", words)).transpose()?;
    let decision = decide(core, session, query.mode, query.scope.as_deref()).await?;
    match decision.verdict() {
        Verdict::Deny { reason, .. } => {
            let fault = Fault::new(ErrorCode::DeniedByPolicy, reason.clone());
            let attempted = json!({ "perceive": query });
            Err(refuse(core, session, attempted, &fault, Some(decision.policy_id())).await)
        }
        Verdict::Allow { .. } => {
            let scope = decision.view_scope(&session.workspace.root);
            let scope = scope.ok_or_else(|| Fault::internal("an allowed perception has no scope"))?;
            Ok(look(core, session, scope, query, decision.policy_id(), None).await?)
        }
        Verdict::Ask { .. } => {
            let ask = open(core, session, &query, &decision, words).await?;
            answer(core, &ask, &call.waiting).await
        }
    }
}

pub(super) async fn poll(
    core: &Arc<Core>,
    session: &Arc<Session>,
    id: &AskId,
    waiting: &Waiting,
) -> Result<PerceiveReply, Refusal> {
    let ask = super::pipeline::find(core, session, id)?;
    answer(core, &ask, waiting).await
}

async fn answer(core: &Arc<Core>, ask: &Arc<Ask>, waiting: &Waiting) -> Result<PerceiveReply, Refusal> {
    match ask::wait(core, ask, waiting).await {
        Some(Finished::View(result)) => result.map(|reply| *reply),
        Some(Finished::Act(_)) => Err(Fault::new(ErrorCode::UnknownEscalation, "that request was an act").into()),
        None => Err(Refusal { fault: super::pipeline::still_waiting(ask), escalation_id: Some(ask.id.clone()) }),
    }
}

/// The folder that a perception looks into, absolute.
fn scope_path(session: &Session, scope: Option<&str>) -> Result<String, Fault> {
    match scope {
        None => Ok(session.workspace.root.clone()),
        Some(text) if text.starts_with('@') => session.resolve_ref(text),
        Some(text) => absolute(&session.workspace.root, text).map_err(|fault| fault.at("scope")),
    }
}

pub(super) async fn decide(
    core: &Core,
    session: &Session,
    mode: QueryMode,
    scope: Option<&str>,
) -> Result<Decision, Fault> {
    let policy = core.policies.current(&core.log, &session.workspace.name).await?;
    let root = &session.workspace.root;
    let resource = match mode {
        QueryMode::Screen => Resource::Screen { monitor: "monitor:0".into(), private: session.is_private() },
        QueryMode::Filesystem | QueryMode::Process | QueryMode::Shell | QueryMode::Git | QueryMode::Full => {
            let path = scope.unwrap_or(root).to_owned();
            Resource::Workspace { inside_workspace: is_inside(root, &path), path }
        }
    };
    Ok(policy.decide(&Request {
        workspace: &session.workspace.name,
        agent: &session.agent,
        operation: Operation::Perceive(mode),
        resource,
        containment: containment(&session.body().sandbox()),
    }))
}

async fn look(
    core: &Arc<Core>,
    session: &Arc<Session>,
    scope: ViewScope,
    query: PerceptionQuery,
    policy_id: String,
    authorization: Option<Block>,
) -> Result<PerceiveReply, Fault> {
    core.revive(session).await?;
    let mode = query.mode;
    let found = gather(core, session, scope, &query).await?;
    let state_hash = found.state.fields.hash()?;
    let shown_hash = self::state_hash(core, session, query.profile, &found.state).await?;
    let seen = SeenState::from(&found.state.fields);
    let picture = match &found.image {
        Some(image) => Some(core.log.put_blob(image.bytes.clone()).await?),
        None => None,
    };
    // The title of a window is part of the screen: it comes back only where the screen may be seen.
    let sees_screen = found.image.is_some() || {
        let screen = decide(core, session, QueryMode::Screen, None).await?;
        matches!(screen.verdict(), Verdict::Allow { .. })
    };
    let now = core.now().wall;
    let image = found.image.clone().map(Arc::new);
    let (observation, generation) = {
        let mut look = session.look();
        let mut found = found;
        let Perception { state, entries, processes, monitors, windows, .. } = &mut found;
        let refs = look.perceive(state.clone(), entries, processes, monitors, windows);
        look.last_active_at = now;
        look.state_hash = Some(state_hash.clone());
        if let Some(digest) = &picture {
            look.screenshot = Some((digest.clone(), now));
        }
        let payload = payload(&found, sees_screen);
        let observation = Observation {
            body_subtype: BODY_SUBTYPE.to_owned(),
            state_hash: shown_hash,
            state_profile: query.profile,
            observed_at: now,
            generation: look.generation,
            payload,
            refs,
            provenance: Provenance::new("perceive", now, session.agent_id()),
        };
        (observation, look.generation)
    };
    let record = PerceivedRecord {
        session_id: session.id.clone(),
        trace_id: session.trace_id.clone(),
        mode,
        generation,
        state_hash,
        policy_id,
        authorization,
        picture,
        seen: Some(seen),
    };
    core.log.append(Record::Perceived(Box::new(record))).await?;
    core.events.send(UiEventKind::SessionChanged { session_id: session.id.clone() });
    Ok(PerceiveReply { observation, image })
}

/// The state's hash in a profile. One that covers files, processes and variables needs what seeing each
/// of them needs.
///
/// # Errors
/// `denied_by_policy`, `too_large`; whatever keeps the body from looking.
pub(super) async fn state_hash(
    core: &Core,
    session: &Session,
    profile: StateProfile,
    state: &StableState,
) -> Result<StateHash, Fault> {
    if profile == StateProfile::RegistryV0 {
        return state.fields.hash();
    }
    let part = async |mode: QueryMode| {
        let decision = decide(core, session, mode, None).await?;
        let denied = || {
            let message =
                format!("this profile covers what mode `{}` shows, which may not be seen unasked", mode.name());
            Fault::new(ErrorCode::DeniedByPolicy, message).at("profile")
        };
        let scope = decision.view_scope(&session.workspace.root).ok_or_else(denied)?;
        let query = PerceptionQuery { mode, profile, depth: 1, ..PerceptionQuery::default() };
        session.body().perceive(scope, query).await.inspect_err(|fault| session.note_fault(fault))
    };
    let files = part(QueryMode::Filesystem).await?;
    let missing = || Fault::internal("the body took no snapshot");
    let shell = part(QueryMode::Shell).await?;
    let processes = part(QueryMode::Process).await?.processes;
    let mut running: Vec<String> =
        processes.into_iter().filter(|process| process.state != "ended").map(|process| process.command).collect();
    running.sort_unstable();
    let env = shell.payload.get("env").cloned().unwrap_or_default();
    let fields = ReadmeFields {
        cwd: state.fields.cwd.clone(),
        env_summary: serde_json::from_value(env).map_err(|error| Fault::internal(error.to_string()))?,
        fs_snapshot_hash: files.fs_snapshot.ok_or_else(missing)?,
        process_list_hash: canonical_digest(&running)?,
    };
    fields.hash()
}

/// What one mode shows; for `full`, what every mode shows that the policy allows without asking, each
/// within its own scope, so that what is denied doesn't come back by another way.
async fn gather(
    core: &Core,
    session: &Session,
    scope: ViewScope,
    query: &PerceptionQuery,
) -> Result<Perception, Fault> {
    if query.mode != QueryMode::Full {
        return see(core, session, scope, query.clone()).await;
    }
    let mut whole: Option<Perception> = None;
    let mut left_out = Vec::new();
    for mode in QueryMode::PARTS {
        let decision = decide(core, session, mode, query.scope.as_deref()).await?;
        let Some(scope) = decision.view_scope(&session.workspace.root) else {
            left_out.push(mode.name());
            continue;
        };
        match see(core, session, scope, PerceptionQuery { mode, ..query.clone() }).await {
            Ok(part) => whole = Some(merged(whole, part)),
            Err(fault) if fault.code == ErrorCode::NoDisplay => left_out.push(mode.name()),
            Err(fault) => return Err(fault),
        }
    }
    let nothing = || Fault::new(ErrorCode::DeniedByPolicy, "the policy allows none of what `full` is made of");
    let mut whole = whole.ok_or_else(nothing)?;
    if let Some(payload) = whole.payload.as_object_mut() {
        payload.insert("left_out".to_owned(), json!(left_out));
    }
    Ok(whole)
}

/// A fault of the place that is looked at is one of the scope.
fn of_scope(fault: Fault) -> Fault {
    if fault.field.as_deref() == Some("action.target") { fault.at("scope") } else { fault }
}

async fn see(core: &Core, session: &Session, scope: ViewScope, query: PerceptionQuery) -> Result<Perception, Fault> {
    let mode = query.mode;
    let seen = session.body().perceive(scope, query).await.inspect_err(|fault| session.note_fault(fault));
    let mut seen = seen.map_err(of_scope)?;
    if mode == QueryMode::Shell {
        // The session's own commands, never a user's history file.
        let history = core.log.reader().commands(&session.trace_id, HISTORY).await?;
        if let Some(payload) = seen.payload.as_object_mut() {
            let told = history.iter().map(|edge| {
                json!({
                    "edge_id": edge.edge_id,
                    "command": edge.summary,
                    "outcome_status": edge.outcome_status,
                    "at": edge.at,
                })
            });
            payload.insert("history".to_owned(), told.collect());
        }
    }
    Ok(seen)
}

fn merged(whole: Option<Perception>, part: Perception) -> Perception {
    let Some(mut whole) = whole else { return part };
    if let (Some(fields), Value::Object(more)) = (whole.payload.as_object_mut(), part.payload) {
        fields.extend(more);
    }
    whole.entries.extend(part.entries);
    whole.processes.extend(part.processes);
    whole.monitors.extend(part.monitors);
    whole.windows.extend(part.windows);
    whole.image = whole.image.or(part.image);
    whole.fs_snapshot = whole.fs_snapshot.or(part.fs_snapshot);
    whole
}

/// The payload of OS-011 §6.2, and what the mode adds.
fn payload(found: &Perception, sees_screen: bool) -> Value {
    let StableState { fields, focused_app, git } = &found.state;
    let mut payload = json!({
        "cwd": fields.cwd,
        "git": git,
        "key_processes": fields.key_process_names,
        "env_fingerprint": fields.env_fingerprint,
        "focused_window": null,
    });
    if sees_screen {
        payload["focused_window"] = json!({ "title": fields.focused_window_title, "app": focused_app });
    }
    if !found.entries.is_empty() {
        payload["entries"] = json!(found.entries);
    }
    if !found.processes.is_empty() {
        payload["processes"] = json!(found.processes);
    }
    if !found.monitors.is_empty() {
        payload["monitors"] = json!(found.monitors);
        payload["windows"] = json!(found.windows);
    }
    if let (Some(fields), Value::Object(more)) = (payload.as_object_mut(), &found.payload) {
        for (key, value) in more {
            fields.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    payload
}

/// Opens an ask for a perception, or joins the one that waits for the very same.
async fn open(
    core: &Arc<Core>,
    session: &Arc<Session>,
    query: &PerceptionQuery,
    decision: &Decision,
    words: Option<String>,
) -> Result<Arc<Ask>, Fault> {
    core.keys.require_signer()?;
    let action_digest = canonical_digest(query)?;
    let _opening = core.pendings.opening.lock().await;
    if let Some(ask) = core.pendings.same(session, &action_digest) {
        return Ok(ask);
    }
    core.admit_ask(session)?;
    let state = core.stable(session).await?;
    let sandbox = session.body().sandbox();
    let facts = Facts {
        kind: BlockKind::View,
        action_digest: action_digest.clone(),
        state_before: state.fields.hash()?,
        binding_digest: Digest::of(b"view"),
        sandbox_digest: sandbox.digest,
        policy_digest: decision.policy_digest().clone(),
        policy_id: decision.policy_id(),
    };
    let (id, now, ttl_ms) = (core.new_ask_id(), core.now(), core.ask_ttl_ms().await?);
    let view = view(session, query, decision, words.as_deref(), &id, &action_digest, now, ttl_ms);
    let shown = view.digest()?;
    let origin = Origin::Agent { session: Arc::clone(session), facts };
    let ask = Arc::new(Ask::new(id.clone(), true, origin, shown, now, ttl_ms));
    let subject = serde_json::to_value(query).map_err(|e| Fault::internal(e.to_string()))?;
    ask::record_ask(core, &ask, action_digest, Opening { subject, context: Value::Null, view }).await?;
    core.pendings.add(Arc::clone(&ask));
    core.ask_changed(&id);
    let (core, session, query, driven) = (Arc::clone(core), Arc::clone(session), query.clone(), Arc::clone(&ask));
    tokio::spawn(async move {
        let result = permitted_look(&core, &session, query, &driven).await;
        driven.finish(Finished::View(result.map(Box::new).map_err(Refusal::from)));
        core.ask_changed(&driven.id);
    });
    Ok(ask)
}

/// Waits for the yes, and looks once.
async fn permitted_look(
    core: &Arc<Core>,
    session: &Arc<Session>,
    query: PerceptionQuery,
    ask: &Arc<Ask>,
) -> Result<PerceiveReply, Fault> {
    let yes = ask::wait_for_yes(core, ask).await?;
    let _turn = session.turn.lock().await;
    let checked = check_view(core, session, &query, ask, &yes).await;
    let scope = match checked {
        Ok(scope) => scope,
        Err(fault) => {
            ask::withdraw(core, ask, &fault.message).await;
            return Err(fault);
        }
    };
    ask::move_ask(core, ask, AskState::Approved, AskState::Claimed, MoveNote::default()).await?;
    ask::move_ask(core, ask, AskState::Claimed, AskState::Executing, MoveNote::default()).await?;
    let policy_id = yes.block.payload.policy_id.clone();
    let looked = look(core, session, scope, query, policy_id, Some(yes.block)).await;
    let (to, reason) = match &looked {
        Ok(_) => (AskState::Done, None),
        Err(fault) => (AskState::Interrupted, Some(fault.message.clone())),
    };
    ask::move_ask(core, ask, AskState::Executing, to, MoveNote { reason, ..MoveNote::default() }).await?;
    looked
}

async fn check_view(
    core: &Arc<Core>,
    session: &Arc<Session>,
    query: &PerceptionQuery,
    ask: &Ask,
    yes: &Yes,
) -> Result<ViewScope, Fault> {
    core.refuse_if_stopped()?;
    let decision = decide(core, session, query.mode, query.scope.as_deref()).await?;
    if let Verdict::Deny { reason, .. } = decision.verdict() {
        return Err(Fault::new(ErrorCode::DeniedByPolicy, reason.clone()));
    }
    let Origin::Agent { facts, .. } = &ask.origin else { return Err(Fault::internal("not an agent's ask")) };
    let expect = facts.expectation(session, decision.policy_digest(), Some((ask, yes)));
    let authorized = accept(&yes.block, core.keys.list(), &expect, core.now()).map_err(Fault::from)?;
    authorized.into_view_scope(query, &session.workspace.root)
}

#[allow(clippy::too_many_arguments, reason = "everything that a decision shows")]
fn view(
    session: &Session,
    query: &PerceptionQuery,
    decision: &Decision,
    words: Option<&str>,
    id: &AskId,
    action_digest: &Digest,
    now: bodyguard_protocol::Moment,
    ttl_ms: u64,
) -> DecisionView {
    let what = match query.mode {
        QueryMode::Screen => "see your screen and the titles of its windows",
        QueryMode::Filesystem => "look through files",
        QueryMode::Git => "look at the repository",
        QueryMode::Process => "see what its own commands have started",
        QueryMode::Shell => "see the workspace's variables and its own commands",
        QueryMode::Full => "see all that the policy allows it to see",
    };
    let why = match decision.verdict() {
        Verdict::Ask { why, .. } => why.clone(),
        Verdict::Deny { .. } | Verdict::Allow { .. } => String::new(),
    };
    DecisionView {
        ask_id: id.clone(),
        kind: DecisionKind::View,
        headline: format!("{} wants to {what}", session.agent),
        requester: session.agent_id(),
        session_id: Some(session.id.clone()),
        replays: None,
        contents: Vec::new(),
        facts: super::review::workspace_facts(session),
        warnings: Vec::new(),
        agent_words: words.map(escape_text),
        why: escape_line(&why),
        policy_id: decision.policy_id(),
        action_digest: action_digest.clone(),
        asked_at: now.wall,
        expires_at: now.wall.plus_millis(i64::try_from(ttl_ms).unwrap_or(i64::MAX)),
    }
}
