// Generated from the crate bodyguard-protocol by `export-types`; don't edit.

/**
 * What kind of action.
 */
export type ActionType = "shell_exec" | "file_read" | "file_write" | "file_edit" | "file_delete" | "keyboard_input" | "mouse_click" | "mouse_drag" | "screen_capture" | "process_spawn" | "process_signal";

/**
 * An agent as the person named it: 1–64 of `A–Z a–z 0–9 . _ -`, first a letter or digit.
 */
export type AgentName = string;

/**
 * An agent.
 */
export type AgentView = { 
/**
 * Its name.
 */
name: AgentName, 
/**
 * What it may choose among.
 */
workspaces: Array<WorkspaceName>, 
/**
 * Connections open now.
 */
connections: number, 
/**
 * The program at the other end, as it calls itself; untrusted, escaped.
 */
client?: string, 
/**
 * When it last said something.
 */
last_seen?: Timestamp, 
/**
 * When it was added.
 */
added_at: Timestamp, };

/**
 * Agents and workspaces.
 */
export type AgentsView = { 
/**
 * Agents by name.
 */
agents: Array<AgentView>, 
/**
 * Workspaces by name.
 */
workspaces: Array<WorkspaceView>, };

/**
 * One ask with what is shown of it.
 */
export type AskDetail = { 
/**
 * What is shown.
 */
view: DecisionView, 
/**
 * The digest of `view`, which a yes signs.
 */
shown_digest: Digest, 
/**
 * How the ask stands.
 */
state: AskState, 
/**
 * Whether the requester is still there.
 */
requester_present: boolean, 
/**
 * The person's reason, or what ended it.
 */
reason?: string, 
/**
 * The edge that came of it, once it was carried out or refused.
 */
edge?: EdgeAddress, };

/**
 * An ask, the `escalation_id` of the agent's side: `a_` and a ULID.
 */
export type AskId = string;

/**
 * How an ask stands.
 */
export type AskState = "open" | "approved" | "denied" | "expired" | "withdrawn" | "superseded" | "claimed" | "executing" | "done" | "interrupted";

/**
 * An ask in the queue.
 */
export type AskSummary = { 
/**
 * Which.
 */
ask_id: AskId, 
/**
 * What is decided.
 */
kind: DecisionKind, 
/**
 * A plain sentence, escaped.
 */
headline: string, 
/**
 * `name@workspace`, or `you`.
 */
requester: string, 
/**
 * The action's type, for acts.
 */
action_type?: ActionType, 
/**
 * How it stands.
 */
state: AskState, 
/**
 * Whether the requester is still there.
 */
requester_present: boolean, 
/**
 * When it was asked.
 */
asked_at: Timestamp, 
/**
 * When it lapses.
 */
expires_at: Timestamp, 
/**
 * When it was decided or ended.
 */
decided_at?: Timestamp, 
/**
 * The person's reason, or what ended it.
 */
reason?: string, };

/**
 * How the decision bar stands.
 */
export type BarView = { 
/**
 * For which ask.
 */
ask_id: AskId, 
/**
 * Whether Approve would count.
 */
armed: boolean, 
/**
 * Why not yet.
 */
waiting_for?: string, 
/**
 * The last event that was refused, such as `Virtual core XTEST pointer`.
 */
refused?: string, };

/**
 * A payload with its token and signatures.
 */
export type Block = { 
/**
 * `sha256:` over the payload's RFC 8785 bytes.
 */
authorization_token: Digest, 
/**
 * By keys on the supervisor's own list.
 */
signatures: Array<BlockSignature>, 
/**
 * [`SCHEMA_BLOCK_V1`].
 */
version: number, 
/**
 * What it is for.
 */
kind: BlockKind, 
/**
 * The digest of the action with its resolved target.
 */
action_digest: Digest, 
/**
 * The state at admission.
 */
state_before: Digest, 
/**
 * The digest of what the action is bound to: file, window, program.
 */
binding_digest: Digest, 
/**
 * The digest of what the person saw; for a policy's yes, of the action itself.
 */
shown_digest: Digest, 
/**
 * The digest of the containment it runs in.
 */
sandbox_digest: Digest, 
/**
 * The digest of the policy text in force.
 */
policy_digest: Digest, 
/**
 * `name@workspace`.
 */
agent_id: string, 
/**
 * The session it is for.
 */
session_id: SessionId, 
/**
 * The trace that records it.
 */
trace_id: TraceId, 
/**
 * The ask it answers; absent where the policy permits without asking.
 */
ask_id?: AskId, 
/**
 * The rule that asked or permitted, `policy:<workspace>/<rule>`.
 */
policy_id: string, 
/**
 * The person's name at this computer, or `policy:<workspace>/<rule>`.
 */
approved_by: string, 
/**
 * When.
 */
approved_at: Timestamp, 
/**
 * Until when it can be used.
 */
expires_at: Timestamp, 
/**
 * How the yes was shown.
 */
proof: Proof, 
/**
 * 128 random bits in hexadecimal.
 */
nonce: string, 
/**
 * Always 1.
 */
uses: number, };

/**
 * What a block is for.
 */
export type BlockKind = "act" | "view" | "replay";

/**
 * One signature over the payload's RFC 8785 bytes.
 */
export type BlockSignature = { 
/**
 * `ed25519:` and the first 16 hexadecimal digits of the key's SHA-256.
 */
key_id: string, 
/**
 * 64 bytes in hexadecimal.
 */
value: string, };

/**
 * A change to what agents may do or to who counts as present.
 */
export type Change = { "change": "add_agent", name: AgentName, workspaces: Array<WorkspaceName>, } | { "change": "assign_workspaces", agent: AgentName, workspaces: Array<WorkspaceName>, } | { "change": "remove_agent", agent: AgentName, } | { "change": "add_workspace", name: WorkspaceName, root: string, desktop?: WorkspaceDesktop, } | { "change": "enrol_device", device: string, } | { "change": "remove_device", device: string, } | { "change": "use_policy", workspace: WorkspaceName, digest: Digest, } | { "change": "resume" } | { "change": "set_phrase", phrase: string, };

/**
 * How a check stands.
 */
export type CheckStatus = "ok" | "warning" | "failed";

/**
 * How to connect an agent; holds no secret.
 */
export type ConnectView = { 
/**
 * The agent.
 */
agent: AgentName, 
/**
 * A command for Claude Code.
 */
claude_code: string, 
/**
 * A part of Codex's configuration.
 */
codex: string, 
/**
 * The usual `mcpServers` JSON.
 */
json: string, 
/**
 * The HTTP address; the token goes into the header.
 */
http_url?: string, };

/**
 * Exact content under review.
 */
export type Content = { "type": "text", 
/**
 * What it is, such as `Command`.
 */
label: string, 
/**
 * The text, escaped.
 */
text: string, 
/**
 * Bytes of the exact text.
 */
bytes: number, 
/**
 * Lines of the exact text.
 */
lines: number, } | { "type": "arguments", 
/**
 * What they are.
 */
label: string, 
/**
 * The arguments in order.
 */
items: Array<string>, } | { "type": "diff", 
/**
 * The file's path, escaped.
 */
path: string, 
/**
 * The lines, with some context.
 */
lines: Array<DiffLine>, 
/**
 * Lines added.
 */
added: number, 
/**
 * Lines removed.
 */
removed: number, 
/**
 * Bytes before.
 */
bytes_before: number, 
/**
 * Bytes after.
 */
bytes_after: number, };

/**
 * What is decided.
 */
export type DecisionKind = "act" | "view" | "change";

/**
 * Everything a person sees of one ask, escaped, top-down. Nothing is shown that isn't here.
 */
export type DecisionView = { 
/**
 * Which ask.
 */
ask_id: AskId, 
/**
 * What is decided.
 */
kind: DecisionKind, 
/**
 * A plain sentence: who wants what, where.
 */
headline: string, 
/**
 * Who asks, `name@workspace`; for a change of settings, `you`.
 */
requester: string, 
/**
 * The session; absent for a change of settings.
 */
session_id?: SessionId, 
/**
 * The recorded edge that this repeats, where it is part of a replay.
 */
replays?: EdgeAddress, 
/**
 * What will change, exactly.
 */
contents: Array<Content>, 
/**
 * Where and under what: program, folder, environment, network, containment.
 */
facts: Array<Fact>, 
/**
 * What is unusual.
 */
warnings: Array<Warning>, 
/**
 * What the agent says about it; untrusted, stands in a box that says so.
 */
agent_words?: string, 
/**
 * Why a person is asked: the rule's sentence.
 */
why: string, 
/**
 * The rule that asks, `policy:<workspace>/<rule>`.
 */
policy_id: string, 
/**
 * What a yes is bound to.
 */
action_digest: Digest, 
/**
 * When it was asked.
 */
asked_at: Timestamp, 
/**
 * When it lapses; nobody's silence is a yes.
 */
expires_at: Timestamp, };

/**
 * An input device.
 */
export type DeviceView = { 
/**
 * Its name.
 */
name: string, 
/**
 * `pointer` or `keyboard`.
 */
kind: string, 
/**
 * Whether its events count as the person's.
 */
enrolled: boolean, 
/**
 * Whether it is attached now.
 */
present: boolean, };

/**
 * One line of a diff.
 */
export type DiffLine = { 
/**
 * Which side it is on.
 */
kind: DiffLineKind, 
/**
 * Its number before.
 */
old?: number, 
/**
 * Its number after.
 */
new?: number, 
/**
 * The line, escaped, without its newline; a missing final newline is said in the text.
 */
text: string, };

/**
 * Which side a line is on.
 */
export type DiffLineKind = "same" | "added" | "removed" | "gap";

/**
 * A SHA-256 digest with its algorithm prefix (OS-011 §5.3).
 */
export type Digest = string;

/**
 * Where an edge is.
 */
export type EdgeAddress = { 
/**
 * The trace.
 */
trace_id: TraceId, 
/**
 * The edge in it, from 1.
 */
edge_id: number, };

/**
 * Some edges in order.
 */
export type EdgePage = { 
/**
 * All there are.
 */
total: number, 
/**
 * Where this page starts.
 */
offset: number, 
/**
 * The edges.
 */
items: Array<EdgeSummary>, };

/**
 * An edge in a list.
 */
export type EdgeSummary = { 
/**
 * From 1.
 */
edge_id: number, 
/**
 * What kind of action.
 */
action_type: ActionType, 
/**
 * One line on what it did, escaped.
 */
summary: string, 
/**
 * How it ended; absent while it runs.
 */
outcome_status?: OutcomeStatus, 
/**
 * Whether it was refused, so that nothing was done.
 */
refused: boolean, 
/**
 * The error, if there is one.
 */
error?: ErrorCode, 
/**
 * Milliseconds.
 */
latency_ms: number, 
/**
 * When.
 */
at: Timestamp, 
/**
 * Who said yes, if somebody had to.
 */
approved_by?: string, };

/**
 * One edge, whole.
 */
export type EdgeView = { 
/**
 * The summary.
 */
summary: EdgeSummary, 
/**
 * The state at admission.
 */
state_before: Digest, 
/**
 * The state afterwards; absent while it runs or when it was cut off.
 */
state_after?: Digest, 
/**
 * The block that authorised it.
 */
authorization?: Block, 
/**
 * Why it was refused, where nothing was done; escaped.
 */
refused?: string, 
/**
 * What the person was shown.
 */
decision?: DecisionView, 
/**
 * A picture that belongs to it, as `blob://` digest.
 */
picture?: Digest, 
/**
 * The recorded intent or refusal, indented JSON, escaped.
 */
intent_json: string, 
/**
 * The recorded outcome, indented JSON, escaped.
 */
outcome_json?: string, 
/**
 * The leaf of the intent in the log's tree.
 */
intent_seq: number, 
/**
 * The leaf of the outcome.
 */
outcome_seq?: number, };

/**
 * A stable error code. Codes are never renamed or reused; new ones may be added.
 */
export type ErrorCode = "authorization_required" | "in_progress" | "authorization_failure" | "denied_by_policy" | "denied_by_person" | "expired" | "withdrawn" | "superseded" | "interrupted" | "stale_ref" | "perceive_required" | "state_changed" | "state_hash_mismatch" | "outcome_mismatch" | "os_family_mismatch" | "not_replayable" | "not_afforded" | "precondition_failed" | "invalid_argument" | "unknown_field" | "duplicate_field" | "nul_byte" | "parse_error" | "outside_workspace" | "not_found" | "already_exists" | "not_regular_file" | "too_large" | "not_utf8" | "empty_match" | "match_count_mismatch" | "line_ending_mismatch" | "before_hash_mismatch" | "too_long_to_review" | "unknown_session" | "unknown_agent" | "workspace_not_assigned" | "unknown_escalation" | "budget_exceeded" | "not_yet_supported" | "signer_unavailable" | "no_display" | "sandbox_unavailable" | "program_not_found" | "timeout" | "cancelled" | "body_lost" | "no_room_to_record" | "storage_failure" | "person_active" | "stopped" | "not_running" | "permission_denied" | "internal";

/**
 * One row of a decision.
 */
export type Fact = { 
/**
 * What it is, such as `Folder`.
 */
label: string, 
/**
 * The value, escaped.
 */
value: string, };

/**
 * A typed error: what happened, where, and what to do about it.
 */
export type Fault = { 
/**
 * What to switch on.
 */
code: ErrorCode, 
/**
 * One plain sentence.
 */
message: string, 
/**
 * The offending field as a path, such as `params.edits[0].old`.
 */
field?: string, 
/**
 * What the caller can do.
 */
hint?: string, };

/**
 * A repository's state, read without running any program of the repository.
 */
export type GitState = { 
/**
 * `sha1:…`, `sha256:…`, `unborn:<branch>`, or `none` without a repository.
 */
head: string, 
/**
 * The branch; absent when detached or without a repository.
 */
branch?: string, 
/**
 * Whether tracked files differ from HEAD or the index; absent without a repository.
 */
dirty?: boolean, };

/**
 * One check.
 */
export type HealthCheck = { 
/**
 * `display`, `capture`, `input`, `keyring`, `sandbox`, `notifications`, `accessibility`, `log`.
 */
name: string, 
/**
 * How it stands.
 */
status: CheckStatus, 
/**
 * What was found.
 */
detail: string, 
/**
 * What to do, unless it's fine.
 */
advice?: string, };

/**
 * What works on this machine.
 */
export type HealthView = { 
/**
 * Checks by name.
 */
checks: Array<HealthCheck>, };

/**
 * A signing key.
 */
export type KeyView = { 
/**
 * `ed25519:…`.
 */
key_id: string, 
/**
 * The public key in hexadecimal.
 */
public_key: string, 
/**
 * Where the private half is.
 */
kept_in: string, 
/**
 * When it was made.
 */
created_at: Timestamp, 
/**
 * Whether new blocks are signed with it.
 */
current: boolean, };

/**
 * What an agent last saw, and where it is.
 */
export type LiveView = { 
/**
 * The session.
 */
session: SessionSummary, 
/**
 * The workspace's root.
 */
root: string, 
/**
 * The working directory, escaped.
 */
cwd: string, 
/**
 * The repository at the working directory, as last seen.
 */
git: GitState, 
/**
 * The focused window that the agent would see.
 */
focused_window: string, 
/**
 * The last picture the agent got, as `blob://` digest.
 */
screenshot?: Digest, 
/**
 * When it was taken.
 */
screenshot_at?: Timestamp, 
/**
 * The state's hash.
 */
state_hash?: Digest, 
/**
 * The latest edges, newest first.
 */
edges: Array<EdgeSummary>, };

/**
 * How an act ended.
 */
export type OutcomeStatus = "success" | "partial" | "failure" | "blocked" | "timeout";

/**
 * Counts for the frame.
 */
export type Overview = { 
/**
 * Asks that wait for the person.
 */
open_asks: number, 
/**
 * Sessions that run.
 */
running_sessions: number, 
/**
 * Whether everything is stopped.
 */
stopped: boolean, 
/**
 * Checks that need the person's attention.
 */
health_problems: number, 
/**
 * What a crash or restart cut off and the person hasn't been told of, one sentence each.
 */
interrupted: Array<string>, 
/**
 * The number of the last event, to start counting from.
 */
last_event: number, 
/**
 * The app's version.
 */
version: string, };

/**
 * A policy in force.
 */
export type PolicyView = { 
/**
 * The file it comes from.
 */
file: string, 
/**
 * Its digest.
 */
digest: Digest, 
/**
 * Why the file's present text isn't in force, with file and line; the one before stays.
 */
error?: string, 
/**
 * The digest of the file's present text, where that would permit more and waits for the person.
 */
waiting?: Digest, };

/**
 * How it was shown that a person, or a policy a person chose, said yes.
 */
export type Proof = { "by": "click", 
/**
 * The device's name.
 */
device: string, } | { "by": "policy", 
/**
 * The rule's id.
 */
rule: string, };

/**
 * What a trace is a replay of; stands in its metadata.
 */
export type ReplayOf = { 
/**
 * The recorded trace.
 */
trace_id: TraceId, 
/**
 * The first of its edges that was asked for.
 */
from_edge: number, 
/**
 * The last of its edges that was asked for.
 */
to_edge: number, };

/**
 * A session: `s_` and 32 hexadecimal digits from the system's random source; can't be guessed.
 */
export type SessionId = string;

/**
 * How a session stands.
 */
export type SessionState = "running" | "ended" | "interrupted";

/**
 * A session.
 */
export type SessionSummary = { 
/**
 * Which.
 */
session_id: SessionId, 
/**
 * Its trace.
 */
trace_id: TraceId, 
/**
 * Who.
 */
agent: AgentName, 
/**
 * Where.
 */
workspace: WorkspaceName, 
/**
 * What the agent said it wants, escaped.
 */
goal?: string, 
/**
 * How it stands.
 */
state: SessionState, 
/**
 * When it began.
 */
started_at: Timestamp, 
/**
 * When it last did something.
 */
last_active_at: Timestamp, 
/**
 * Edges recorded.
 */
edges: number, 
/**
 * Asks that wait.
 */
open_asks: number, 
/**
 * What it replays, if it is a replay; `goal` is Bodyguard's own words then.
 */
replay_of?: ReplayOf, };

/**
 * Keys, devices, policies.
 */
export type SettingsView = { 
/**
 * Keys on the supervisor's list.
 */
keys: Array<KeyView>, 
/**
 * Input devices.
 */
devices: Array<DeviceView>, 
/**
 * The phrase on the decision bar.
 */
phrase: string, 
/**
 * Where everything is kept.
 */
data_dir: string, 
/**
 * Seconds until an ask lapses.
 */
ask_seconds: number, };

/**
 * A wall-clock instant in UTC with milliseconds, written as RFC 3339.
 */
export type Timestamp = string;

/**
 * A trace: a ULID (OS-011 §4.1).
 */
export type TraceId = string;

/**
 * How a trace ended.
 */
export type TraceOutcome = "success" | "partial" | "failure" | "aborted";

/**
 * Some traces, newest first.
 */
export type TracePage = { 
/**
 * All there are.
 */
total: number, 
/**
 * Where this page starts.
 */
offset: number, 
/**
 * The traces.
 */
items: Array<TraceSummary>, };

/**
 * A trace in a list.
 */
export type TraceSummary = { 
/**
 * Which.
 */
trace_id: TraceId, 
/**
 * `name@workspace`.
 */
agent_id: string, 
/**
 * What the agent said it wants, escaped.
 */
goal?: string, 
/**
 * When it began.
 */
started_at: Timestamp, 
/**
 * When it ended.
 */
ended_at?: Timestamp, 
/**
 * How it ended.
 */
outcome?: TraceOutcome, 
/**
 * Edges recorded.
 */
edges: number, 
/**
 * Destructive edges among them.
 */
destructive: number, 
/**
 * What it replayed, if it is a replay; `goal` is Bodyguard's own words then.
 */
replay_of?: ReplayOf, };

/**
 * One trace without its edges.
 */
export type TraceView = { 
/**
 * The summary.
 */
summary: TraceSummary, 
/**
 * Its workspace's root when it was recorded.
 */
workspace_root: string, 
/**
 * `linux`, `macos` or `windows`.
 */
os_family: string, 
/**
 * The state before the first edge.
 */
first_state?: Digest, 
/**
 * The state after the last edge.
 */
last_state?: Digest, };

/**
 * One event. Sequence numbers have no gaps; the window refetches when it sees one.
 */
export type UiEvent = { 
/**
 * From 1 in each run of the app.
 */
seq: number, } & ({ "event": "ask_changed", 
/**
 * Which.
 */
ask_id: AskId, } | { "event": "session_changed", 
/**
 * Which.
 */
session_id: SessionId, } | { "event": "edge_added", 
/**
 * In which trace.
 */
trace_id: TraceId, 
/**
 * The edge.
 */
edge: EdgeSummary, } | { "event": "agents_changed" } | { "event": "health_changed" } | { "event": "show_ask", 
/**
 * Which.
 */
ask_id: AskId, } | { "event": "bar_changed", 
/**
 * How it stands; absent when lowered.
 */
bar: BarView | null, } | { "event": "stopped_changed", 
/**
 * Whether everything is stopped.
 */
stopped: boolean, });

/**
 * A response or a typed error.
 */
export type UiReply = { "ok": UiResponse } | { "err": Fault };

/**
 * A request of the window. Answered by the [`super::UiResponse`] variant of the same name.
 */
export type UiRequest = { "method": "overview" } | { "method": "asks" } | { "method": "ask", "params": { ask_id: AskId, } } | { "method": "ask_shown", "params": { ask_id: AskId, shown_digest: Digest, end_shown: boolean, } } | { "method": "ask_hidden" } | { "method": "sessions" } | { "method": "live", "params": { session_id: SessionId, } } | { "method": "traces", "params": { offset: number, limit: number, } } | { "method": "trace", "params": { trace_id: TraceId, } } | { "method": "edges", "params": { trace_id: TraceId, offset: number, limit: number, } } | { "method": "edge", "params": { trace_id: TraceId, edge_id: number, } } | { "method": "verify" } | { "method": "agents" } | { "method": "connect", "params": { agent: AgentName, } } | { "method": "copy_token", "params": { agent: AgentName, } } | { "method": "propose", "params": { change: Change, } } | { "method": "narrow", "params": { change: Change, } } | { "method": "health" } | { "method": "settings" } | { "method": "stop_all" } | { "method": "acknowledge_interrupted" };

/**
 * The response to the [`super::UiRequest`] variant of the same name.
 */
export type UiResponse = { "method": "overview", "result": Overview } | { "method": "asks", "result": Array<AskSummary> } | { "method": "ask", "result": AskDetail } | { "method": "ask_shown" } | { "method": "ask_hidden" } | { "method": "sessions", "result": Array<SessionSummary> } | { "method": "live", "result": LiveView } | { "method": "traces", "result": TracePage } | { "method": "trace", "result": TraceView } | { "method": "edges", "result": EdgePage } | { "method": "edge", "result": EdgeView } | { "method": "verify", "result": VerifyView } | { "method": "agents", "result": AgentsView } | { "method": "connect", "result": ConnectView } | { "method": "copy_token" } | { "method": "propose", "result": AskId } | { "method": "narrow" } | { "method": "health", "result": HealthView } | { "method": "settings", "result": SettingsView } | { "method": "stop_all" } | { "method": "acknowledge_interrupted" };

/**
 * What verifying the log found.
 */
export type VerifyView = { 
/**
 * Whether everything holds.
 */
ok: boolean, 
/**
 * Leaves checked.
 */
leaves: number, 
/**
 * The tree's root.
 */
root: Digest, 
/**
 * Checkpoints whose signature and root hold.
 */
checkpoints: number, 
/**
 * Blocks whose signature holds.
 */
blocks: number, 
/**
 * What doesn't hold, the first bad entry first.
 */
problems: Array<string>, 
/**
 * What a signature proves here, in a sentence.
 */
proves: string, };

/**
 * Something unusual.
 */
export type Warning = { 
/**
 * What to switch on.
 */
code: WarningCode, 
/**
 * One plain sentence.
 */
text: string, };

/**
 * What is unusual.
 */
export type WarningCode = "hidden_characters" | "mixed_scripts" | "runs_later" | "weak_containment" | "dangerous" | "script_not_pinned";

/**
 * Whose desktop the agents of a workspace see and use.
 */
export type WorkspaceDesktop = "shared" | "private";

/**
 * A workspace as the person named it, with the alphabet of [`AgentName`].
 */
export type WorkspaceName = string;

/**
 * A workspace.
 */
export type WorkspaceView = { 
/**
 * Its name.
 */
name: WorkspaceName, 
/**
 * Its root folder, escaped.
 */
root: string, 
/**
 * Whose desktop its agents see and use.
 */
desktop: WorkspaceDesktop, 
/**
 * The policy in force.
 */
policy: PolicyView, };
