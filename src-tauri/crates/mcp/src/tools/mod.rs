//! The seven tools: what they are called, what they take and give.

mod arguments;
mod output;
mod reply;
mod schema;

use std::sync::{Arc, LazyLock};

use rmcp::model::{JsonObject, Tool, ToolAnnotations};

pub(crate) use arguments::Arguments;
pub(crate) use reply::{call_refusal, give, give_act, give_perception, give_replay};

/// Begins a session or goes on with one.
pub(crate) const ENSURE_SESSION: &str = "body_os_ensure_session";
/// Looks.
pub(crate) const PERCEIVE: &str = "body_os_perceive";
/// Lists what may be done.
pub(crate) const AFFORDANCES: &str = "body_os_affordances";
/// Hashes the state.
pub(crate) const ENCODE_STATE: &str = "body_os_encode_state";
/// Acts, or asks what became of an act.
pub(crate) const ACT: &str = "body_os_act";
/// Predicts.
pub(crate) const DRY_RUN: &str = "body_os_dry_run";
/// Replays a trace, or asks what became of that.
pub(crate) const REPLAY: &str = "body_os_replay";

/// What the server says about itself at `initialize`.
pub(crate) const INSTRUCTIONS: &str = "Bodyguard is your body on this computer, and a person's guard over it. \
The loop: 1. body_os_ensure_session gives you a session_id. 2. body_os_perceive looks and hands out refs such as @f3/g7. \
3. body_os_affordances lists what you may do now. 4. body_os_act does one thing; then perceive again, because every \
change makes older refs stale. Most changes are shown to a person first. While the person hasn't decided, body_os_act \
answers with error.code `authorization_required` and an escalation_id: call body_os_act again with session_id and \
escalation_id only, until you get an outcome. Don't send the action a second time. `denied_by_person` and \
`denied_by_policy` are final: tell your user, don't work around them.";

/// All tools, in the order of the loop.
pub(crate) fn all() -> &'static [Tool] {
    static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(build);
    &TOOLS
}

/// A tool by name.
pub(crate) fn find(name: &str) -> Option<&'static Tool> {
    all().iter().find(|tool| tool.name == name)
}

/// Whether a call of this tool changes nothing.
pub(crate) fn is_read_only(name: &str) -> bool {
    matches!(name, PERCEIVE | AFFORDANCES | ENCODE_STATE | DRY_RUN)
}

fn build() -> Vec<Tool> {
    vec![
        tool(ENSURE_SESSION, "Begin or resume a session", ENSURE_TEXT, schema::ensure_session(), output::session()),
        tool(PERCEIVE, "Look at the computer", PERCEIVE_TEXT, schema::perceive(), output::observation()),
        tool(AFFORDANCES, "List what may be done", AFFORDANCES_TEXT, schema::affordances(), output::affordance_set()),
        tool(ENCODE_STATE, "Hash the state", ENCODE_TEXT, schema::encode_state(), output::state()),
        tool(ACT, "Do one action", ACT_TEXT, schema::act(), output::outcome()),
        tool(DRY_RUN, "Predict an action", DRY_RUN_TEXT, schema::dry_run(), output::prediction()),
        tool(REPLAY, "Replay a trace", REPLAY_TEXT, schema::replay(), output::replay()),
    ]
}

fn tool(name: &'static str, title: &str, text: &'static str, input: JsonObject, output: JsonObject) -> Tool {
    let changes = matches!(name, ACT | REPLAY);
    let hints = ToolAnnotations::with_title(title)
        .read_only(is_read_only(name))
        .destructive(changes)
        .idempotent(!changes)
        .open_world(changes);
    Tool::new(name, text, Arc::new(input))
        .with_title(title)
        .with_raw_output_schema(Arc::new(output))
        .with_annotations(hints)
}

const ENSURE_TEXT: &str = "Begins a session in one of your workspaces, or goes on with one by its session_id. Call this \
first and give the session_id to every other tool. `workspace` may be left out if you have just one; the answer names \
all that are yours. Sessions are independent of each other and live on when a connection ends.";

const PERCEIVE_TEXT: &str = "Looks at the computer and hands out refs. Call it before acting and again after anything \
changed: an action needs a perception that is current, and refs (@f3/g7 a file, @m1/g7 a monitor, @w2/g7 a window; g7 is \
the perception's generation) go stale with every change. Modes: `filesystem` lists files under `scope` with sizes and \
content hashes, `git` reads the repository's state, `screen` takes a screenshot (an image block, with its scale) and \
names the focused window, `process` lists what your commands have started, `shell` gives the workspace's variables and \
your own commands so far, `full` is all of these that the policy allows without asking. Whether you may look is policy too: a person may be asked, then the answer is \
`authorization_required`; call again with {session_id, escalation_id} alone.";

const AFFORDANCES_TEXT: &str = "Lists the actions that the environment offers and the policy permits now, as \
`type@target`, where a target is a ref, a path or a pattern ending in /**. `asks` says that a person decides each time. \
What isn't listed is refused; `policy_filtered_out` counts what the policy hides. Optional `scope` narrows it to a path.";

const ENCODE_TEXT: &str = "The hash of the state's stable fields (working directory, focused window, git head, key \
processes, environment). Equal states hash equal, also on other machines. It changes nothing and hands out no refs.";

const ACT_TEXT: &str = "Does exactly one action and records it. `action` is {type, target, params, preconditions}. Types: \
`shell_exec` (target: working directory; params.command for `sh -c`, or params.argv; contained, no network), `file_read`, \
`file_write` (params.content; params.mode create, overwrite or append), `file_edit` (params.edits of exact old and new \
text), `file_delete` (params.recursive for a folder that isn't empty), `screen_capture`, `keyboard_input` (target: a \
window; params.text or params.keys such as [\"ctrl+s\"]), `mouse_click` and `mouse_drag` (target: point:X,Y in physical \
pixels of the desktop, or a window; perceive the screen first), `process_spawn` (target: a program; it runs on until the \
session ends) and `process_signal` (target: a process of perceive mode `process`). Other targets are refs of the latest \
perception or absolute paths. Typing into terminals and launchers is refused: use shell_exec. Say in `reason` why, in your own words; the person reads it.\n\
Actions that change something are usually shown to a person first. The call waits up to wait_ms (45 s unless you say \
otherwise) and sends progress. If nobody has decided by then you get error.code `authorization_required` with an \
escalation_id: nothing has run yet. Call body_os_act again with {session_id, escalation_id} and nothing else, as often \
as it takes; sending the action again asks nothing new. error.code tells the rest: `denied_by_person` (with the \
person's reason), `denied_by_policy`, `expired` (nobody decided), `stale_ref` or `perceive_required` (perceive again), \
`not_afforded`, `state_changed` (what was approved is no longer there).";

const DRY_RUN_TEXT: &str = "Predicts what an action would come to, without doing, asking or recording anything: whether \
it would run, be asked or be refused (and why), the state after it, what would be observed (exact for files; for \
commands, how the very same one ended last), and how long such acts took before. The same as body_os_act with `dry_run: true`.";

const REPLAY_TEXT: &str = "Carries out a recorded trace of yours again, edge by edge, in the same workspace. Every change is \
authorised anew; what was permitted when it was recorded doesn't count. It stops at the first difference and never goes \
beyond it: another state at the start, before or after an act, an act that isn't possible or permitted any more, or that \
ends otherwise. Acts that were refused when they were recorded are skipped. What is carried out is recorded as a new \
trace, whose `trace_id` you get. from_edge and to_edge choose a part. `dry_run: true` does, asks and records nothing, and \
predicts each act.\n\
`status` is `success`, `partial` (it stopped after something had been carried out), `failure` (before anything was), \
`aborted` or `running`; `reason`, `failed_at_edge`, expected_hash, actual_hash and divergence_details say why it stopped. \
While it runs or a person has to decide (escalation_id), you get `running` with a replay_id once wait_ms is over: call \
again with {session_id, replay_id} and nothing else, as often as it takes; what a person permitted runs while you are \
there. Cancelling the call ends the replay.";
