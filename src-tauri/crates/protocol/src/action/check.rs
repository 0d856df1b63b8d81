//! What the parameters of a type must keep to beyond their shape.

use std::collections::BTreeMap;

use super::{
    ClickPhase, FileEdit, FileWrite, KeyboardInput, Modifier, MouseButton, MouseClick, MouseDrag, Params, ProcessSpawn,
    ShellExec, WriteMode,
};
use crate::{Digest, ErrorCode, Fault, MAX_REVIEW_BYTES};

const MAX_TIMEOUT_MS: u64 = 3_600_000;
const MAX_OUTPUT_BYTES: u64 = 4 * 1024 * 1024;
const MAX_READ_BYTES: u64 = 16 * 1024 * 1024;
const MAX_HOLD_MS: u64 = 10_000;
const MAX_CHORDS: usize = 64;
const MAX_POINTS: usize = 256;
/// More than anybody reads before letting it be typed.
pub(super) const MAX_TYPED_BYTES: usize = 16 * 1024;

pub(super) fn check(params: &Params) -> Result<(), Fault> {
    match params {
        Params::ShellExec(shell) => check_shell(shell),
        Params::FileRead(read) => check_range("action.params.limit", read.limit, MAX_READ_BYTES),
        Params::FileWrite(write) => check_write(write),
        Params::FileEdit(edit) => check_edit(edit),
        Params::FileDelete(_) | Params::ProcessSignal(_) => Ok(()),
        Params::KeyboardInput(input) => check_keyboard(input),
        Params::MouseClick(click) => check_click(click),
        Params::MouseDrag(drag) => check_drag(drag),
        Params::ProcessSpawn(spawn) => check_spawn(spawn),
        Params::ScreenCapture(capture) => match capture.max_width {
            Some(0) => Err(Fault::invalid("action.params.max_width", "at least 1 pixel")),
            Some(_) | None => Ok(()),
        },
    }
}

fn check_shell(shell: &ShellExec) -> Result<(), Fault> {
    let words: usize = match (&shell.command, &shell.argv) {
        (Some(command), None) if !command.trim().is_empty() => command.len(),
        (None, Some(argv)) if argv.first().is_some_and(|program| !program.is_empty()) => {
            argv.iter().map(String::len).sum()
        }
        _ => {
            return Err(Fault::invalid("action.params.command", "give exactly one of `command` and `argv`, not empty"));
        }
    };
    let env = check_env(&shell.env)?;
    let stdin = shell.stdin.as_ref().map_or(0, String::len);
    too_long("action.params", words.saturating_add(env).saturating_add(stdin))?;
    check_range("action.params.timeout_ms", shell.timeout_ms, MAX_TIMEOUT_MS)?;
    check_range("action.params.max_output_bytes", shell.max_output_bytes, MAX_OUTPUT_BYTES)?;
    check_network(shell.network)
}

/// How many bytes the variables have.
fn check_env(env: &BTreeMap<String, String>) -> Result<usize, Fault> {
    if env.keys().any(|name| name.is_empty() || name.contains('=')) {
        return Err(Fault::invalid("action.params.env", "a variable name is not empty and has no `=`"));
    }
    Ok(env.iter().map(|(name, value)| name.len().saturating_add(value.len())).sum())
}

fn check_network(wanted: bool) -> Result<(), Fault> {
    if !wanted {
        return Ok(());
    }
    let message = "commands run without network in this version";
    Err(Fault::new(ErrorCode::NotYetSupported, message).at("action.params.network"))
}

fn check_spawn(spawn: &ProcessSpawn) -> Result<(), Fault> {
    let words: usize = spawn.args.iter().map(String::len).sum();
    too_long("action.params", words.saturating_add(check_env(&spawn.env)?))?;
    if spawn.cwd.as_deref() == Some("") {
        return Err(Fault::invalid("action.params.cwd", "a folder's path is not empty"));
    }
    check_network(spawn.network)
}

fn check_keyboard(input: &KeyboardInput) -> Result<(), Fault> {
    match (&input.text, &input.keys) {
        (Some(text), None) if !text.is_empty() => {
            if text.len() > MAX_TYPED_BYTES {
                let message = format!("{} bytes are too many to type; the limit is {MAX_TYPED_BYTES}", text.len());
                return Err(Fault::new(ErrorCode::TooLongToReview, message).at("action.params.text"));
            }
            if let Some(control) = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
                let message =
                    format!("`{}` can't be typed; name it in `keys`", crate::escape_line(&control.to_string()));
                return Err(Fault::invalid("action.params.text", message));
            }
        }
        (None, Some(keys)) if (1..=MAX_CHORDS).contains(&keys.len()) => {}
        _ => {
            let message = format!("give exactly one of `text`, not empty, and `keys`, 1 to {MAX_CHORDS} of them");
            return Err(Fault::invalid("action.params.text", message));
        }
    }
    if input.secret && input.text.is_none() {
        return Err(Fault::invalid("action.params.secret", "only `text` can be a secret"));
    }
    check_most("action.params.hold_ms", input.hold_ms, MAX_HOLD_MS)
}

fn check_click(click: &MouseClick) -> Result<(), Fault> {
    let (least, most) = match click.button {
        MouseButton::None => (0, 0),
        wheel if wheel.is_wheel() => (1, 50),
        _ => (1, 3),
    };
    if click.clicks.is_some_and(|clicks| !(least..=most).contains(&clicks)) {
        return Err(Fault::invalid("action.params.clicks", format!("from {least} to {most} with this button")));
    }
    if click.phase != ClickPhase::Click
        && (click.button.is_wheel() || click.button == MouseButton::None || click.clicks.is_some_and(|n| n != 1))
    {
        return Err(Fault::invalid("action.params.phase", "`down` and `up` are of one button"));
    }
    check_modifiers(&click.modifiers)
}

fn check_drag(drag: &MouseDrag) -> Result<(), Fault> {
    if !(1..=MAX_POINTS).contains(&drag.path.len()) {
        return Err(Fault::invalid("action.params.path", format!("1 to {MAX_POINTS} points")));
    }
    if drag.button.is_wheel() || drag.button == MouseButton::None {
        return Err(Fault::invalid("action.params.button", "a drag holds a button"));
    }
    check_most("action.params.duration_ms", drag.duration_ms, MAX_HOLD_MS)?;
    check_modifiers(&drag.modifiers)
}

fn check_modifiers(modifiers: &[Modifier]) -> Result<(), Fault> {
    let mut sorted = modifiers.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    if sorted.len() == modifiers.len() {
        return Ok(());
    }
    Err(Fault::invalid("action.params.modifiers", "each modifier once"))
}

fn check_most(field: &str, value: u64, max: u64) -> Result<(), Fault> {
    if value <= max { Ok(()) } else { Err(Fault::invalid(field, format!("at most {max}"))) }
}

fn check_edit(edit: &FileEdit) -> Result<(), Fault> {
    if edit.edits.is_empty() {
        return Err(Fault::invalid("action.params.edits", "at least one edit"));
    }
    let mut total = 0_usize;
    for (index, one) in edit.edits.iter().enumerate() {
        let field = |name: &str| format!("action.params.edits[{index}].{name}");
        if one.old.is_empty() {
            return Err(Fault::new(ErrorCode::EmptyMatch, "`old` is empty; it would match everywhere").at(field("old")));
        }
        if one.expected_count == 0 {
            return Err(Fault::invalid(field("expected_count"), "at least 1"));
        }
        total = total.saturating_add(one.old.len()).saturating_add(one.new.len());
    }
    too_long("action.params.edits", total)
}

fn check_write(write: &FileWrite) -> Result<(), Fault> {
    let bytes = write.bytes()?;
    write.permission_bits()?;
    let creates = write.mode == WriteMode::Create;
    if !creates && write.permissions.is_some() {
        return Err(Fault::invalid("action.params.permissions", "a file that is there keeps its permissions"));
    }
    if creates && write.before_sha256.is_some() {
        return Err(Fault::invalid("action.params.before_sha256", "a new file has no content before"));
    }
    if write.mode == WriteMode::Append && bytes.is_empty() {
        return Err(Fault::invalid("action.params.content", "nothing to append"));
    }
    if let Some(expected) = &write.content_sha256 {
        let found = Digest::of(&bytes);
        if found != *expected {
            let message = format!("the content arrived with {found}");
            return Err(Fault::invalid("action.params.content_sha256", message));
        }
    }
    too_long("action.params.content", bytes.len())
}

fn check_range(field: &str, value: u64, max: u64) -> Result<(), Fault> {
    if (1..=max).contains(&value) { Ok(()) } else { Err(Fault::invalid(field, format!("between 1 and {max}"))) }
}

fn too_long(field: &str, bytes: usize) -> Result<(), Fault> {
    if bytes <= MAX_REVIEW_BYTES {
        return Ok(());
    }
    let message = format!("{bytes} bytes are too many for a person to review; the limit is {MAX_REVIEW_BYTES}");
    Err(Fault::new(ErrorCode::TooLongToReview, message)
        .at(field)
        .hint("split it into smaller actions, or put the content into a file that is edited in steps"))
}
