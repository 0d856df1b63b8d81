//! Windows onto lists; never a whole trace.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{DecisionKind, WorkspaceDesktop};
use crate::{
    ActionType, AgentName, AskId, Block, Digest, ErrorCode, GitState, OutcomeStatus, ReplayOf, SessionId, Timestamp,
    TraceId, TraceOutcome, WorkspaceName,
};

/// Counts for the frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Overview {
    /// Asks that wait for the person.
    pub open_asks: u32,
    /// Sessions that run.
    pub running_sessions: u32,
    /// Whether everything is stopped.
    pub stopped: bool,
    /// Checks that need the person's attention.
    pub health_problems: u32,
    /// What a crash or restart cut off and the person hasn't been told of, one sentence each.
    pub interrupted: Vec<String>,
    /// The number of the last event, to start counting from.
    #[ts(type = "number")]
    pub last_event: u64,
    /// The app's version.
    pub version: String,
}

/// How an ask stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum AskState {
    /// Waits for a person.
    Open,
    /// A person said yes; waits for the requester.
    Approved,
    /// A person said no.
    Denied,
    /// Nobody decided in time.
    Expired,
    /// Taken back by the requester or its end.
    Withdrawn,
    /// Replaced by another.
    Superseded,
    /// The requester took the yes.
    Claimed,
    /// Runs.
    Executing,
    /// Ran; see the outcome.
    Done,
    /// Cut off while claimed or running; never repeated by itself.
    Interrupted,
}

impl AskState {
    /// Whether nothing more can happen to it.
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Open | Self::Approved | Self::Claimed | Self::Executing)
    }
}

/// An ask in the queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct AskSummary {
    /// Which.
    pub ask_id: AskId,
    /// What is decided.
    pub kind: DecisionKind,
    /// A plain sentence, escaped.
    pub headline: String,
    /// `name@workspace`, or `you`.
    pub requester: String,
    /// The action's type, for acts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub action_type: Option<ActionType>,
    /// How it stands.
    pub state: AskState,
    /// Whether the requester is still there.
    pub requester_present: bool,
    /// When it was asked.
    pub asked_at: Timestamp,
    /// When it lapses.
    pub expires_at: Timestamp,
    /// When it was decided or ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub decided_at: Option<Timestamp>,
    /// The person's reason, or what ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub reason: Option<String>,
}

/// How the decision bar stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct BarView {
    /// For which ask.
    pub ask_id: AskId,
    /// Whether Approve would count.
    pub armed: bool,
    /// Why not yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub waiting_for: Option<String>,
    /// The last event that was refused, such as `Virtual core XTEST pointer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub refused: Option<String>,
}

/// How a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum SessionState {
    Running,
    Ended,
    Interrupted,
}

/// A session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct SessionSummary {
    /// Which.
    pub session_id: SessionId,
    /// Its trace.
    pub trace_id: TraceId,
    /// Who.
    pub agent: AgentName,
    /// Where.
    pub workspace: WorkspaceName,
    /// What the agent said it wants, escaped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub goal: Option<String>,
    /// How it stands.
    pub state: SessionState,
    /// When it began.
    pub started_at: Timestamp,
    /// When it last did something.
    pub last_active_at: Timestamp,
    /// Edges recorded.
    pub edges: u32,
    /// Asks that wait.
    pub open_asks: u32,
    /// What it replays, if it is a replay; `goal` is Bodyguard's own words then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub replay_of: Option<ReplayOf>,
}

/// What an agent last saw, and where it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct LiveView {
    /// The session.
    pub session: SessionSummary,
    /// The workspace's root.
    pub root: String,
    /// The working directory, escaped.
    pub cwd: String,
    /// The repository at the working directory, as last seen.
    pub git: GitState,
    /// The focused window that the agent would see.
    pub focused_window: String,
    /// The last picture the agent got, as `blob://` digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub screenshot: Option<Digest>,
    /// When it was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub screenshot_at: Option<Timestamp>,
    /// The state's hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub state_hash: Option<Digest>,
    /// The latest edges, newest first.
    pub edges: Vec<EdgeSummary>,
}

/// An edge in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct EdgeSummary {
    /// From 1.
    pub edge_id: u32,
    /// What kind of action.
    pub action_type: ActionType,
    /// One line on what it did, escaped.
    pub summary: String,
    /// How it ended; absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub outcome_status: Option<OutcomeStatus>,
    /// Whether it was refused, so that nothing was done.
    pub refused: bool,
    /// The error, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub error: Option<ErrorCode>,
    /// Milliseconds.
    #[ts(type = "number")]
    pub latency_ms: u64,
    /// When.
    pub at: Timestamp,
    /// Who said yes, if somebody had to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub approved_by: Option<String>,
}

/// A trace in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct TraceSummary {
    /// Which.
    pub trace_id: TraceId,
    /// `name@workspace`.
    pub agent_id: String,
    /// What the agent said it wants, escaped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub goal: Option<String>,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub ended_at: Option<Timestamp>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub outcome: Option<TraceOutcome>,
    /// Edges recorded.
    pub edges: u32,
    /// Destructive edges among them.
    pub destructive: u32,
    /// What it replayed, if it is a replay; `goal` is Bodyguard's own words then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub replay_of: Option<ReplayOf>,
}

/// Some traces, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct TracePage {
    /// All there are.
    pub total: u32,
    /// Where this page starts.
    pub offset: u32,
    /// The traces.
    pub items: Vec<TraceSummary>,
}

/// One trace without its edges.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct TraceView {
    /// The summary.
    pub summary: TraceSummary,
    /// Its workspace's root when it was recorded.
    pub workspace_root: String,
    /// `linux`, `macos` or `windows`.
    pub os_family: String,
    /// The state before the first edge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub first_state: Option<Digest>,
    /// The state after the last edge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub last_state: Option<Digest>,
}

/// Some edges in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct EdgePage {
    /// All there are.
    pub total: u32,
    /// Where this page starts.
    pub offset: u32,
    /// The edges.
    pub items: Vec<EdgeSummary>,
}

/// One edge, whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct EdgeView {
    /// The summary.
    pub summary: EdgeSummary,
    /// The state at admission.
    pub state_before: Digest,
    /// The state afterwards; absent while it runs or when it was cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub state_after: Option<Digest>,
    /// The block that authorised it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub authorization: Option<Block>,
    /// Why it was refused, where nothing was done; escaped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub refused: Option<String>,
    /// What the person was shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub decision: Option<super::DecisionView>,
    /// A picture that belongs to it, as `blob://` digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub picture: Option<Digest>,
    /// The recorded intent or refusal, indented JSON, escaped.
    pub intent_json: String,
    /// The recorded outcome, indented JSON, escaped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub outcome_json: Option<String>,
    /// The leaf of the intent in the log's tree.
    #[ts(type = "number")]
    pub intent_seq: u64,
    /// The leaf of the outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "number")]
    pub outcome_seq: Option<u64>,
}

/// What verifying the log found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct VerifyView {
    /// Whether everything holds.
    pub ok: bool,
    /// Leaves checked.
    #[ts(type = "number")]
    pub leaves: u64,
    /// The tree's root.
    pub root: Digest,
    /// Checkpoints whose signature and root hold.
    pub checkpoints: u32,
    /// Blocks whose signature holds.
    pub blocks: u32,
    /// What doesn't hold, the first bad entry first.
    pub problems: Vec<String>,
    /// What a signature proves here, in a sentence.
    pub proves: String,
}

/// Agents and workspaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct AgentsView {
    /// Agents by name.
    pub agents: Vec<AgentView>,
    /// Workspaces by name.
    pub workspaces: Vec<WorkspaceView>,
}

/// An agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct AgentView {
    /// Its name.
    pub name: AgentName,
    /// What it may choose among.
    pub workspaces: Vec<WorkspaceName>,
    /// Connections open now.
    pub connections: u32,
    /// The program at the other end, as it calls itself; untrusted, escaped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub client: Option<String>,
    /// When it last said something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub last_seen: Option<Timestamp>,
    /// When it was added.
    pub added_at: Timestamp,
}

/// A workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct WorkspaceView {
    /// Its name.
    pub name: WorkspaceName,
    /// Its root folder, escaped.
    pub root: String,
    /// Whose desktop its agents see and use.
    pub desktop: WorkspaceDesktop,
    /// The policy in force.
    pub policy: PolicyView,
}

/// A policy in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct PolicyView {
    /// The file it comes from.
    pub file: String,
    /// Its digest.
    pub digest: Digest,
    /// Why the file's present text isn't in force, with file and line; the one before stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub error: Option<String>,
    /// The digest of the file's present text, where that would permit more and waits for the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub waiting: Option<Digest>,
}

/// How to connect an agent; holds no secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ConnectView {
    /// The agent.
    pub agent: AgentName,
    /// A command for Claude Code.
    pub claude_code: String,
    /// A part of Codex's configuration.
    pub codex: String,
    /// The usual `mcpServers` JSON.
    pub json: String,
    /// The HTTP address; the token goes into the header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub http_url: Option<String>,
}

/// What works on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct HealthView {
    /// Checks by name.
    pub checks: Vec<HealthCheck>,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct HealthCheck {
    /// `display`, `capture`, `input`, `keyring`, `sandbox`, `notifications`, `accessibility`, `log`.
    pub name: String,
    /// How it stands.
    pub status: CheckStatus,
    /// What was found.
    pub detail: String,
    /// What to do, unless it's fine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub advice: Option<String>,
}

/// How a check stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum CheckStatus {
    /// Works.
    Ok,
    /// Works in part; `advice` says what is missing.
    Warning,
    /// Doesn't work; what needs it is refused.
    Failed,
}

/// Keys, devices, policies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct SettingsView {
    /// Keys on the supervisor's list.
    pub keys: Vec<KeyView>,
    /// Input devices.
    pub devices: Vec<DeviceView>,
    /// The phrase on the decision bar.
    pub phrase: String,
    /// Where everything is kept.
    pub data_dir: String,
    /// Seconds until an ask lapses.
    pub ask_seconds: u32,
}

/// A signing key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct KeyView {
    /// `ed25519:…`.
    pub key_id: String,
    /// The public key in hexadecimal.
    pub public_key: String,
    /// Where the private half is.
    pub kept_in: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// Whether new blocks are signed with it.
    pub current: bool,
}

/// An input device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct DeviceView {
    /// Its name.
    pub name: String,
    /// `pointer` or `keyboard`.
    pub kind: String,
    /// Whether its events count as the person's.
    pub enrolled: bool,
    /// Whether it is attached now.
    pub present: bool,
}
