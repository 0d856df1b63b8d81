//! What is unusual about an act.

use bodyguard_body::{Review, SandboxLevel};
use bodyguard_protocol::action::ShellExec;
use bodyguard_protocol::ui::{Warning, WarningCode};
use bodyguard_protocol::{Params, escape_line, hidden_characters};

use crate::agent::admission::Admitted;

pub(super) fn warnings(admitted: &Admitted, params: &Params, review: &Review) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |code, text: String| warnings.push(Warning { code, text });
    let hidden: usize = agent_text(params).iter().map(|text| hidden_characters(text).total()).sum();
    if hidden > 0 {
        warn(
            WarningCode::HiddenCharacters,
            format!("{hidden} characters that can't be seen; they are written as \\u{{…}}"),
        );
    }
    if agent_text(params).iter().any(|text| mixes_scripts(text)) {
        warn(WarningCode::MixedScripts, "Letters of several alphabets stand in one word; some look alike".into());
    }
    match review {
        Review::Edit { runs_later: true, path, .. }
        | Review::New { runs_later: true, path, .. }
        | Review::Delete { runs_later: true, path, .. } => {
            warn(WarningCode::RunsLater, format!("{} is run or obeyed later by other programs", escape_line(path)));
        }
        Review::Edit { first_foreign_byte: Some(offset), .. }
        | Review::New { first_foreign_byte: Some(offset), .. } => {
            warn(
                WarningCode::HiddenCharacters,
                format!("The file isn't valid UTF-8 from byte {offset}; foreign bytes are shown as escapes"),
            );
        }
        Review::Command { program, .. } if program.inside_workspace => {
            warn(
                WarningCode::ScriptNotPinned,
                "The program itself lies in the workspace, where the agent can write; its content is pinned".into(),
            );
        }
        Review::Command { .. }
        | Review::Edit { .. }
        | Review::New { .. }
        | Review::Delete { .. }
        | Review::Read { .. }
        | Review::Signal { .. }
        | Review::Capture { .. } => {}
        Review::Input { window, .. } => {
            if window.as_ref().is_none_or(|window| window.runs_commands) {
                let text = "What is typed or clicked here can run commands, and nothing would contain them";
                warn(WarningCode::WeakContainment, text.into());
            }
        }
    }
    if let Some(name) = steering_variable(params) {
        warn(
            WarningCode::Dangerous,
            format!("It sets `{}`, which changes what programs load or run", escape_line(name)),
        );
    }
    if matches!(params, Params::ProcessSpawn(_)) && admitted.sandbox.level == SandboxLevel::None {
        warn(WarningCode::WeakContainment, "Nothing contains this program".into());
    }
    if let Params::ShellExec(shell) = params {
        if let Some(word) = dangerous_word(shell) {
            warn(WarningCode::Dangerous, format!("It contains `{word}`"));
        }
        if shell.command.is_some() && matches!(review, Review::Command { scripts, .. } if scripts.is_empty()) {
            warn(
                WarningCode::ScriptNotPinned,
                "Only this text is checked; files that it runs or imports are not".into(),
            );
        }
        if admitted.sandbox.level == SandboxLevel::None {
            warn(WarningCode::WeakContainment, "Nothing contains this command".into());
        }
    }
    warnings
}

/// Every text of the action that the agent wrote.
fn agent_text(params: &Params) -> Vec<&str> {
    match params {
        Params::ShellExec(shell) => {
            let mut texts: Vec<&str> = Vec::new();
            texts.extend(shell.command.as_deref());
            texts.extend(shell.argv.iter().flatten().map(String::as_str));
            texts.extend(shell.stdin.as_deref());
            texts.extend(shell.env.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]));
            texts
        }
        Params::FileEdit(edit) => edit.edits.iter().flat_map(|one| [one.old.as_str(), one.new.as_str()]).collect(),
        Params::FileWrite(write) => write.content.iter().map(String::as_str).collect(),
        Params::KeyboardInput(input) => input.text.iter().map(String::as_str).collect(),
        Params::ProcessSpawn(spawn) => {
            let env = spawn.env.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]);
            spawn.args.iter().map(String::as_str).chain(env).collect()
        }
        Params::FileRead(_)
        | Params::FileDelete(_)
        | Params::MouseClick(_)
        | Params::MouseDrag(_)
        | Params::ProcessSignal(_)
        | Params::ScreenCapture(_) => Vec::new(),
    }
}

/// Whether a word mixes Latin letters with Greek or Cyrillic ones, many of which look the same.
fn mixes_scripts(text: &str) -> bool {
    let greek_or_cyrillic = |c: char| matches!(c, '\u{370}'..='\u{52f}' | '\u{1c80}'..='\u{1c8f}' | '\u{2de0}'..='\u{2dff}' | '\u{a640}'..='\u{a69f}');
    text.split(|c: char| !c.is_alphanumeric())
        .any(|word| word.chars().any(|c| c.is_ascii_alphabetic()) && word.chars().any(greek_or_cyrillic))
}

/// A variable by which the agent decides what a program loads or runs beside its words.
fn steering_variable(params: &Params) -> Option<&str> {
    const NAMES: [&str; 17] = [
        "BASH_ENV",
        "CLASSPATH",
        "EDITOR",
        "ENV",
        "GIT_SSH",
        "GIT_SSH_COMMAND",
        "IFS",
        "JAVA_TOOL_OPTIONS",
        "NODE_OPTIONS",
        "NODE_PATH",
        "PAGER",
        "PATH",
        "PERL5LIB",
        "PERL5OPT",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "RUBYOPT",
    ];
    let env = match params {
        Params::ShellExec(shell) => &shell.env,
        Params::ProcessSpawn(spawn) => &spawn.env,
        _ => return None,
    };
    let steers =
        |name: &&String| name.starts_with("LD_") || name.starts_with("GIT_CONFIG") || NAMES.contains(&name.as_str());
    env.keys().find(steers).map(String::as_str)
}

/// A word that people should stumble over. A hint for reading, never a filter.
fn dangerous_word(shell: &ShellExec) -> Option<&'static str> {
    let text = match (&shell.command, &shell.argv) {
        (Some(command), _) => command.clone(),
        (None, Some(argv)) => argv.join(" "),
        (None, None) => return None,
    };
    let words: Vec<&str> = text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_' | '.'))).collect();
    let has = |word: &str| words.contains(&word);
    let recursive_force =
        |word: &&str| word.starts_with('-') && !word.starts_with("--") && word.contains('r') && word.contains('f');
    if has("sudo") || has("su") || has("doas") || has("pkexec") {
        Some("a word for more rights")
    } else if has("rm") && words.iter().any(recursive_force) {
        Some("rm -rf")
    } else if has("git") && (has("--force") || has("--hard") || has("clean") || has("filter-branch")) {
        Some("a git command that loses work")
    } else if has("chmod") && (has("777") || has("-R")) {
        Some("chmod for everyone or everything")
    } else if has("eval") || has("base64") {
        Some("a word that hides what runs")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_load_other_code_are_noticed() {
        let shell = |name: &str| {
            let params = serde_json::json!({"command": "ls", "env": {name: "x"}});
            Params::ShellExec(serde_json::from_value(params).unwrap())
        };
        for name in ["LD_PRELOAD", "PATH", "BASH_ENV", "GIT_CONFIG_COUNT"] {
            assert_eq!(steering_variable(&shell(name)), Some(name));
        }
        assert_eq!(steering_variable(&shell("LANG")), None);
    }

    #[test]
    fn look_alike_letters_are_noticed() {
        assert!(mixes_scripts("echo p\u{430}ypal"));
        assert!(!mixes_scripts("echo paypal \u{43f}\u{440}\u{438}\u{432}\u{435}\u{442}"));
    }
}
