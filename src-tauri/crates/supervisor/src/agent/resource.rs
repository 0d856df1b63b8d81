//! What an action is done to, in the policy's words.

use bodyguard_body::{Review, changes_what_runs_later};
use bodyguard_policy::Resource;
use bodyguard_protocol::{ActionType, ErrorCode, Fault, Params, TypedAction, WindowInfo};

use super::admission::{absolute, is_inside};
use crate::session::Session;

/// The resource of an action whose target is resolved.
pub(super) fn of(session: &Session, action: &TypedAction, review: Option<&Review>) -> Resource {
    let root = &session.workspace.root;
    match &action.params {
        Params::ShellExec(shell) => Resource::Command {
            program: shell.argv.as_ref().and_then(|argv| argv.first().cloned()),
            text: shell.command.clone().unwrap_or_else(|| shell.argv.as_deref().unwrap_or_default().join(" ")),
            cwd_inside_workspace: is_inside(root, &action.target),
            network: shell.network,
        },
        Params::ProcessSpawn(spawn) => {
            let cwd = absolute(root, spawn.cwd.as_deref().unwrap_or_default());
            let words = std::iter::once(&action.target).chain(&spawn.args).map(String::as_str);
            Resource::Command {
                program: Some(action.target.clone()),
                text: words.collect::<Vec<_>>().join(" "),
                cwd_inside_workspace: cwd.is_ok_and(|cwd| is_inside(root, &cwd)),
                network: spawn.network,
            }
        }
        Params::FileRead(_) | Params::FileWrite(_) | Params::FileEdit(_) | Params::FileDelete(_) => Resource::Path {
            path: action.target.clone(),
            inside_workspace: is_inside(root, &action.target),
            runs_later: changes_what_runs_later(action.kind, &action.target),
        },
        Params::ScreenCapture(_) => Resource::Screen { monitor: action.target.clone(), private: session.is_private() },
        Params::KeyboardInput(_) | Params::MouseClick(_) | Params::MouseDrag(_) => {
            let found = match review {
                Some(Review::Input { window, .. }) => window.clone(),
                _ => seen(session, &action.target),
            };
            let chord = matches!(&action.params, Params::KeyboardInput(input)
                if input.keys.iter().flatten().any(|chord| chord.may_open_a_shell()));
            window(found.as_ref(), chord, session.is_private())
        }
        Params::ProcessSignal(_) => Resource::Process {
            command: match review {
                Some(Review::Signal { command }) => command.clone(),
                _ => command_of(session, &action.target).unwrap_or_default(),
            },
        },
    }
}

/// A window in the policy's words. The bare desktop starts programs, so that it counts as a shell.
pub(super) fn window(found: Option<&WindowInfo>, opens_a_shell: bool, private: bool) -> Resource {
    let (title, app, runs_commands) = match found {
        Some(window) => (window.title.clone(), window.app.clone(), window.runs_commands),
        None => (String::new(), String::new(), true),
    };
    Resource::Window { title, app, runs_commands: runs_commands || opens_a_shell, private }
}

/// The window that the current perception showed at a target.
fn seen(session: &Session, target: &str) -> Option<WindowInfo> {
    let look = session.look();
    match point(target) {
        Some(at) => look.windows.iter().find(|window| holds(window, at)).cloned(),
        None => look.windows.iter().find(|window| window.target == target).cloned(),
    }
}

fn command_of(session: &Session, target: &str) -> Option<String> {
    let look = session.look();
    look.processes.iter().find(|process| process.target == target).map(|process| process.command.clone())
}

fn holds(window: &WindowInfo, (x, y): (i32, i32)) -> bool {
    let within = |at: i32, from: i32, length: u32| {
        let offset = i64::from(at) - i64::from(from);
        (0..i64::from(length)).contains(&offset)
    };
    within(x, window.x, window.width) && within(y, window.y, window.height)
}

/// The point of `point:X,Y`.
fn point(target: &str) -> Option<(i32, i32)> {
    let (x, y) = target.strip_prefix("point:")?.split_once(',')?;
    Some((x.parse().ok()?, y.parse().ok()?))
}

/// A window or point of the current perception of the screen.
///
/// # Errors
/// `invalid_argument`; `perceive_required` where the current perception isn't of the screen;
/// `not_found` where it showed no such window.
pub(super) fn input_target(session: &Session, kind: ActionType, target: &str) -> Result<String, Fault> {
    let field = "action.target";
    if !session.look().sees_screen {
        return Err(Fault::new(ErrorCode::PerceiveRequired, "the screen wasn't perceived since the last change")
            .at(field)
            .hint("call body_os_perceive with mode `screen`, then act on what it shows"));
    }
    if let Some((x, y)) = point(target) {
        if kind == ActionType::KeyboardInput {
            return Err(Fault::invalid(field, "keys go to a window, not to a point"));
        }
        return Ok(format!("point:{x},{y}"));
    }
    if target.strip_prefix("window:").is_none_or(|number| number.parse::<u32>().is_err()) {
        return Err(Fault::invalid(field, "a target of input is a window's ref, `window:N` or `point:X,Y`"));
    }
    match seen(session, target) {
        Some(window) => Ok(window.target),
        None => Err(Fault::new(ErrorCode::NotFound, "the current perception shows no such window").at(field)),
    }
}

/// A process of the current perception.
///
/// # Errors
/// `invalid_argument`, `not_found`.
pub(super) fn process_target(session: &Session, target: &str) -> Result<String, Fault> {
    let field = "action.target";
    if !target.starts_with("process:") {
        return Err(Fault::invalid(field, "a signal's target is the ref of a process")
            .hint("call body_os_perceive with mode `process` and take a ref from there"));
    }
    match command_of(session, target) {
        Some(_) => Ok(target.to_owned()),
        None => Err(Fault::new(ErrorCode::NotFound, "the current perception shows no such process of the session")
            .at(field)
            .hint("call body_os_perceive with mode `process` first")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inp_a_point_is_in_a_window_up_to_its_last_pixel() {
        let window = WindowInfo { x: -10, y: 5, width: 20, height: 10, ..WindowInfo::default() };
        assert!(holds(&window, (-10, 5)) && holds(&window, (9, 14)));
        assert!(!holds(&window, (10, 5)) && !holds(&window, (-11, 5)) && !holds(&window, (0, 15)));
        assert_eq!(point("point:3,-4"), Some((3, -4)));
        assert_eq!(point("point:3"), None);
    }

    #[test]
    fn r73_the_bare_desktop_counts_as_a_shell() {
        assert!(matches!(window(None, false, false), Resource::Window { runs_commands: true, .. }));
        let plain = WindowInfo::default();
        assert!(matches!(window(Some(&plain), false, false), Resource::Window { runs_commands: false, .. }));
        assert!(matches!(window(Some(&plain), true, false), Resource::Window { runs_commands: true, .. }));
    }
}
