use bodyguard_policy::{
    Containment, Decision, Draft, EnrolledDevices, EventKind, Expectation, KeyList, NativeEvent, Operation, Policy,
    Presence, Request, Resource, Signer, Verdict, issue_by_person,
};
use bodyguard_protocol::{AgentName, AskId, Block, BlockKind, Digest, Moment, Timestamp, WorkspaceName};

pub(crate) const PERSON_DEVICE: &str = "TigerVNC pointer";
pub(crate) const TTL_MS: i64 = 30_000;
pub(crate) const WALL_MS: i64 = 1_700_000_000_000;
pub(crate) const BOOT_MS: u64 = 5_000_000;

pub(crate) fn digest(of: &str) -> Digest {
    Digest::of(of.as_bytes())
}

pub(crate) fn ask(last: char) -> AskId {
    format!("a_01ARZ3NDEKTSV4RRFFQ69G5FA{last}").parse().unwrap()
}

pub(crate) fn agent() -> AgentName {
    "claude".parse().unwrap()
}

pub(crate) fn workspace() -> WorkspaceName {
    "web".parse().unwrap()
}

/// Both clocks some milliseconds after the yes.
pub(crate) fn after(millis: i64) -> Moment {
    Moment { wall: Timestamp::from_millis(WALL_MS + millis), boot_ms: BOOT_MS.checked_add_signed(millis).unwrap() }
}

pub(crate) fn path(inside_workspace: bool, runs_later: bool) -> Resource {
    Resource::Path { path: "/ws/a".into(), inside_workspace, runs_later }
}

pub(crate) fn command(cwd_inside_workspace: bool, network: bool) -> Resource {
    Resource::Command { program: Some("/bin/ls".into()), text: "ls -l".into(), cwd_inside_workspace, network }
}

pub(crate) fn screen() -> Resource {
    Resource::Screen { monitor: "monitor:1".into(), private: false }
}

pub(crate) fn window(runs_commands: bool) -> Resource {
    Resource::Window { title: "Letter".into(), app: "Editor".into(), runs_commands, private: false }
}

/// The same on a desktop of the session's own.
pub(crate) fn on_its_own_desktop(resource: Resource) -> Resource {
    match resource {
        Resource::Screen { monitor, .. } => Resource::Screen { monitor, private: true },
        Resource::Window { title, app, runs_commands, .. } => {
            Resource::Window { title, app, runs_commands, private: true }
        }
        other => other,
    }
}

pub(crate) fn process() -> Resource {
    Resource::Process { command: "sleep 60".into() }
}

pub(crate) fn folder(inside_workspace: bool) -> Resource {
    Resource::Workspace { path: "/ws".into(), inside_workspace }
}

pub(crate) fn decide(policy: &Policy, operation: Operation, resource: Resource) -> Decision {
    decide_in(policy, operation, resource, Containment::Full)
}

pub(crate) fn decide_in(
    policy: &Policy,
    operation: Operation,
    resource: Resource,
    containment: Containment,
) -> Decision {
    policy.decide(&Request { workspace: &workspace(), agent: &agent(), operation, resource, containment })
}

/// `deny`, `ask` or `allow`, and the rule.
pub(crate) fn short(decision: &Decision) -> (&'static str, &str) {
    match decision.verdict() {
        Verdict::Deny { rule, .. } => ("deny", rule.as_deref().unwrap_or("")),
        Verdict::Ask { rule, .. } => ("ask", rule),
        Verdict::Allow { rule } => ("allow", rule),
    }
}

pub(crate) fn click(device: Option<&str>) -> NativeEvent {
    NativeEvent { device: device.map(str::to_owned), kind: EventKind::Pointer, sent: false }
}

pub(crate) fn enrolled() -> EnrolledDevices {
    EnrolledDevices::new([PERSON_DEVICE.to_owned()])
}

pub(crate) fn presence(ask_id: &AskId, shown: &Digest) -> Presence {
    Presence::witness(&enrolled(), &click(Some(PERSON_DEVICE)), ask_id, shown).unwrap()
}

pub(crate) fn draft() -> Draft {
    Draft {
        kind: BlockKind::Act,
        action_digest: digest("action"),
        state_before: digest("state"),
        binding_digest: digest("binding"),
        shown_digest: digest("shown"),
        sandbox_digest: digest("sandbox"),
        policy_digest: digest("policy"),
        agent_id: "claude@web".into(),
        session_id: "s_00112233445566778899aabbccddeeff".parse().unwrap(),
        trace_id: "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap(),
        ask_id: Some(ask('0')),
        policy_id: "policy:web/change-files".into(),
    }
}

/// What `draft` is for.
pub(crate) fn expectation(draft: &Draft) -> Expectation {
    let draft = draft.clone();
    Expectation {
        kind: draft.kind,
        action_digest: draft.action_digest,
        state_before: draft.state_before,
        binding_digest: draft.binding_digest,
        shown_digest: draft.ask_id.is_some().then_some(draft.shown_digest),
        sandbox_digest: draft.sandbox_digest,
        policy_digest: draft.policy_digest,
        agent_id: draft.agent_id,
        session_id: draft.session_id,
        trace_id: draft.trace_id,
        ask_id: draft.ask_id,
        approved_boot_ms: Some(BOOT_MS),
    }
}

pub(crate) fn signer() -> Signer {
    Signer::from_seed([7; 32])
}

pub(crate) fn keys() -> KeyList {
    let mut keys = KeyList::new();
    keys.add_signer(&signer());
    keys
}

pub(crate) fn block() -> Block {
    let draft = draft();
    let yes = presence(&ask('0'), &draft.shown_digest);
    issue_by_person(&signer(), draft, yes, "Ada", after(0).wall, TTL_MS, [1; 16]).unwrap()
}
