//! What a person sees of an act before deciding: exact, escaped, whole.

use bodyguard_body::{DeletedEntry, Review, SandboxInfo, SandboxLevel};
use bodyguard_policy::Verdict;
use bodyguard_protocol::action::{ShellExec, WriteMode};
use bodyguard_protocol::ui::{Content, DecisionKind, DecisionView, DiffLine, DiffLineKind, Fact, Warning, WarningCode};
use bodyguard_protocol::{
    AskId, ErrorCode, Fault, FileKind, MAX_REVIEW_BYTES, Params, Timestamp, escape_line, escape_text, hidden_characters,
};
use similar::{ChangeTag, TextDiff};

use super::admission::Admitted;
use crate::session::Session;

/// Unchanged lines shown around a change.
const CONTEXT: usize = 3;
/// Characters of a command that still fit a headline.
const SHORT_COMMAND: usize = 64;

/// What a decision carries beside the action.
pub(crate) struct Frame {
    pub(crate) id: AskId,
    pub(crate) asked_at: Timestamp,
    pub(crate) ttl_ms: u64,
    pub(crate) words: Option<String>,
}

/// The decision as it is shown and signed. `params` are the action's, with secrets as commitments.
///
/// # Errors
/// `too_long_to_review` where it can't be shown whole.
pub(crate) fn decision_view(
    session: &Session,
    admitted: &Admitted,
    params: &Params,
    frame: Frame,
) -> Result<DecisionView, Fault> {
    let action = admitted.action();
    let review = &admitted.inspection.review;
    let contents = contents(params, review)?;
    let mut facts = workspace_facts(session);
    facts.extend(action_facts(params, review, &action.target));
    if matches!(review, Review::Command { .. }) {
        facts.push(fact("Containment", &containment_sentence(&admitted.sandbox)));
    }
    let why = match admitted.decision.verdict() {
        Verdict::Ask { why, .. } => why.as_str(),
        Verdict::Allow { .. } | Verdict::Deny { .. } => "",
    };
    Ok(DecisionView {
        ask_id: frame.id,
        kind: DecisionKind::Act,
        headline: headline(session, params, review),
        requester: session.agent_id(),
        session_id: Some(session.id.clone()),
        contents,
        facts,
        warnings: warnings(admitted, params, review),
        agent_words: frame.words.as_deref().map(escape_text),
        why: escape_line(why),
        policy_id: admitted.decision.policy_id(),
        action_digest: admitted.action_digest.clone(),
        asked_at: frame.asked_at,
        expires_at: frame.asked_at.plus_millis(i64::try_from(frame.ttl_ms).unwrap_or(i64::MAX)),
    })
}

/// Where: the rows that every decision of a session has.
pub(crate) fn workspace_facts(session: &Session) -> Vec<Fact> {
    let mut facts = vec![fact("Workspace", &format!("{} — {}", session.workspace.name, session.workspace.root))];
    if let Some(goal) = &session.goal {
        facts.push(fact("Goal, as the agent says", goal));
    }
    facts
}

fn fact(label: &str, value: &str) -> Fact {
    Fact { label: label.to_owned(), value: escape_line(value) }
}

fn headline(session: &Session, params: &Params, review: &Review) -> String {
    let agent = &session.agent;
    let place = &session.workspace.name;
    match (params, review) {
        (Params::ShellExec(shell), _) => format!("{agent} wants to run {} in {place}", command_phrase(shell)),
        (Params::FileEdit(_), Review::Edit { path, .. }) => {
            format!("{agent} wants to change {} in {place}", escape_line(file_name(path)))
        }
        (_, Review::New { path, .. }) => {
            format!("{agent} wants to make {} in {place}", escape_line(file_name(path)))
        }
        (Params::FileWrite(write), Review::Edit { path, .. }) => {
            let what = if write.mode == WriteMode::Append { "add to" } else { "replace" };
            format!("{agent} wants to {what} {} in {place}", escape_line(file_name(path)))
        }
        (_, Review::Delete { path, entries, .. }) => {
            let more = entries.len() - 1;
            let all = if more == 0 { String::new() } else { format!(" and {more} files and folders in it") };
            format!("{agent} wants to delete {}{all} in {place}", escape_line(file_name(path)))
        }
        (Params::ScreenCapture(_), Review::Capture { monitor, .. }) => {
            format!("{agent} wants a picture of your screen {}", escape_line(monitor))
        }
        (Params::FileRead(_), Review::Read { path, .. }) => {
            format!("{agent} wants to read {} in {place}", escape_line(file_name(path)))
        }
        _ => format!("{agent} wants to act in {place}"),
    }
}

/// A short command itself; of a long one its size, because half a command misleads.
fn command_phrase(shell: &ShellExec) -> String {
    let exact = match (&shell.command, &shell.argv) {
        (Some(command), _) => command.trim_end().to_owned(),
        (None, argv) => argv.as_deref().unwrap_or_default().join(" "),
    };
    let lines = exact.lines().count();
    let shown = escape_line(&exact);
    if lines <= 1 && shown.chars().count() <= SHORT_COMMAND {
        format!("“{shown}”")
    } else if lines <= 1 {
        format!("a command of {} characters", exact.chars().count())
    } else {
        format!("a command of {lines} lines")
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

fn contents(params: &Params, review: &Review) -> Result<Vec<Content>, Fault> {
    match (params, review) {
        (Params::ShellExec(shell), _) => Ok(shell_contents(shell)),
        (_, Review::Edit { path, before, after, bytes_before, bytes_after, .. }) => {
            reviewable(diff(path, before, after, *bytes_before, *bytes_after))
        }
        (_, Review::New { path, text, bytes, .. }) => reviewable(diff(path, "", text, 0, *bytes)),
        (_, Review::Delete { path, entries, .. }) => reviewable(tree(path, entries)),
        _ => Ok(Vec::new()),
    }
}

/// One content, if it isn't too long to be read.
fn reviewable(content: Content) -> Result<Vec<Content>, Fault> {
    let shown: usize = match &content {
        Content::Diff { lines, .. } => lines.iter().map(|line| line.text.len() + 1).sum(),
        Content::Text { text, .. } => text.len(),
        Content::Arguments { items, .. } => items.iter().map(String::len).sum(),
    };
    if shown > MAX_REVIEW_BYTES {
        let message = format!("it takes {shown} bytes to show, and {MAX_REVIEW_BYTES} can be reviewed");
        return Err(Fault::new(ErrorCode::TooLongToReview, message).hint("split it into smaller actions"));
    }
    Ok(vec![content])
}

/// What is deleted, one line each: folders end in a slash, files say their size.
fn tree(path: &str, entries: &[DeletedEntry]) -> Content {
    let lines: Vec<String> = entries
        .iter()
        .map(|entry| {
            let name = if entry.path.is_empty() { file_name(path) } else { &entry.path };
            // A name may hold a line break, which must not look like another entry.
            let name = escape_line(name);
            match entry.kind {
                FileKind::Folder => format!("{name}/"),
                FileKind::Link => format!("{name} (a link; what it leads to stays)"),
                FileKind::File | FileKind::Other => format!("{name} ({} bytes)", entry.size),
            }
        })
        .collect();
    let text = lines.join("\n");
    Content::Text {
        label: "Everything that is deleted".into(),
        bytes: u32::try_from(text.len()).unwrap_or(u32::MAX),
        lines: u32::try_from(lines.len()).unwrap_or(u32::MAX),
        text,
    }
}

fn shell_contents(shell: &ShellExec) -> Vec<Content> {
    let mut contents = Vec::new();
    if let Some(command) = &shell.command {
        contents.push(text("Command, for sh -c", command));
    }
    if let Some(argv) = &shell.argv {
        contents.push(Content::Arguments {
            label: "Program and arguments, without a shell".into(),
            items: argv.iter().map(|item| escape_line(item)).collect(),
        });
    }
    if let Some(stdin) = &shell.stdin {
        contents.push(text("Text on its standard input", stdin));
    }
    if !shell.env.is_empty() {
        contents.push(Content::Arguments {
            label: "Variables that the agent sets".into(),
            items: shell.env.iter().map(|(name, value)| escape_line(&format!("{name}={value}"))).collect(),
        });
    }
    contents
}

fn text(label: &str, exact: &str) -> Content {
    Content::Text {
        label: label.to_owned(),
        text: escape_text(exact),
        bytes: u32::try_from(exact.len()).unwrap_or(u32::MAX),
        lines: u32::try_from(exact.lines().count()).unwrap_or(u32::MAX),
    }
}

/// A line diff. Every changed line is in it; of what doesn't change, a few lines around.
fn diff(path: &str, before: &str, after: &str, bytes_before: u64, bytes_after: u64) -> Content {
    // Only a line feed ends a line here: a lone carriage return has to stay visible inside its line.
    let (old, new): (Vec<&str>, Vec<&str>) =
        (before.split_inclusive('\n').collect(), after.split_inclusive('\n').collect());
    let diff = TextDiff::from_slices(&old, &new);
    let mut lines = Vec::new();
    let (mut added, mut removed, mut last_old) = (0, 0, 0);
    for group in diff.grouped_ops(CONTEXT) {
        let start = group.first().map_or(0, |op| op.old_range().start);
        if start > last_old {
            lines.push(gap(start - last_old));
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let kind = match change.tag() {
                ChangeTag::Equal => DiffLineKind::Same,
                ChangeTag::Insert => DiffLineKind::Added,
                ChangeTag::Delete => DiffLineKind::Removed,
            };
            added += u32::from(kind == DiffLineKind::Added);
            removed += u32::from(kind == DiffLineKind::Removed);
            lines.push(DiffLine {
                kind,
                old: change.old_index().map(line_number),
                new: change.new_index().map(line_number),
                text: line_text(change.value()),
            });
        }
        last_old = group.last().map_or(last_old, |op| op.old_range().end);
    }
    let total = old.len();
    if total > last_old && !lines.is_empty() {
        lines.push(gap(total - last_old));
    }
    Content::Diff { path: escape_line(path), lines, added, removed, bytes_before, bytes_after }
}

fn gap(count: usize) -> DiffLine {
    let text = if count == 1 { "1 unchanged line".to_owned() } else { format!("{count} unchanged lines") };
    DiffLine { kind: DiffLineKind::Gap, old: None, new: None, text }
}

fn line_number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX).saturating_add(1)
}

/// A line without its newline; what isn't an ordinary one is said.
fn line_text(line: &str) -> String {
    match line.strip_suffix('\n') {
        Some(line) => escape_text(line),
        None => format!("{} ⏎ no newline at the end", escape_text(line)),
    }
}

fn action_facts(params: &Params, review: &Review, target: &str) -> Vec<Fact> {
    let mut facts = Vec::new();
    match review {
        Review::Command { program, scripts, cwd, env: _ } => {
            facts.push(fact("Program", &format!("{} ({})", program.path, short(program.sha256.short()))));
            facts.push(fact("Folder", cwd));
            for script in scripts {
                facts.push(fact("Runs the script", &format!("{} ({})", script.path, short(script.sha256.short()))));
            }
        }
        Review::Edit { path, bytes_before, bytes_after, .. } => {
            facts.push(fact("File", path));
            facts.push(fact("Size", &format!("{bytes_before} → {bytes_after} bytes")));
        }
        Review::New { path, bytes, permissions, .. } => {
            facts.push(fact("New file", path));
            facts.push(fact("Size", &format!("{bytes} bytes")));
            facts.push(fact("Permissions", permissions));
        }
        Review::Delete { path, entries, .. } => {
            let bytes: u64 = entries.iter().map(|entry| entry.size).sum();
            facts.push(fact("Deletes", path));
            facts.push(fact("Size", &format!("{bytes} bytes in {} files and folders", entries.len())));
        }
        Review::Read { path, size } => {
            facts.push(fact("File", path));
            facts.push(fact("Size", &format!("{size} bytes")));
        }
        Review::Capture { monitor, width, height } => {
            facts.push(fact("Screen", &format!("{monitor} ({target}), {width} × {height} pixels")));
        }
    }
    if let Params::ShellExec(shell) = params {
        if shell.stdin.is_some() {
            facts.push(fact("Standard input", "the text above"));
        }
        facts.push(fact("Ends after", &format!("{} s", shell.timeout_ms.div_ceil(1000))));
    }
    facts
}

/// What contains a command, in one row.
fn containment_sentence(sandbox: &SandboxInfo) -> String {
    let row = |(label, value): &(String, String)| match label.as_str() {
        "containment" => value.clone(),
        _ => format!("{label}: {value}"),
    };
    sandbox.facts.iter().map(row).collect::<Vec<_>>().join("; ")
}

fn short(digest: &str) -> String {
    format!("sha256 {digest}…")
}

fn warnings(admitted: &Admitted, params: &Params, review: &Review) -> Vec<Warning> {
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
        | Review::Capture { .. } => {}
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
        Params::FileRead(_) | Params::FileDelete(_) | Params::ScreenCapture(_) => Vec::new(),
    }
}

/// Whether a word mixes Latin letters with Greek or Cyrillic ones, many of which look the same.
fn mixes_scripts(text: &str) -> bool {
    let greek_or_cyrillic = |c: char| matches!(c, '\u{370}'..='\u{52f}' | '\u{1c80}'..='\u{1c8f}' | '\u{2de0}'..='\u{2dff}' | '\u{a640}'..='\u{a69f}');
    text.split(|c: char| !c.is_alphanumeric())
        .any(|word| word.chars().any(|c| c.is_ascii_alphabetic()) && word.chars().any(greek_or_cyrillic))
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

    fn lines(before: &str, after: &str) -> (Vec<DiffLine>, u32, u32) {
        match diff("/ws/a", before, after, before.len() as u64, after.len() as u64) {
            Content::Diff { lines, added, removed, .. } => (lines, added, removed),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn fil_06_every_changed_line_is_in_the_diff() {
        let before: String = (0..100).map(|n| format!("line {n}\n")).collect();
        let after = before.replace("line 5\n", "five\n").replace("line 90\n", "");
        let (lines, added, removed) = lines(&before, &after);
        assert_eq!((added, removed), (1, 2));
        assert!(lines.iter().any(|line| line.kind == DiffLineKind::Removed && line.text == "line 90"));
        let unchanged: u32 = lines
            .iter()
            .map(|line| match line.kind {
                DiffLineKind::Same => 1,
                DiffLineKind::Gap => line.text.split(' ').next().unwrap().parse().unwrap(),
                DiffLineKind::Added | DiffLineKind::Removed => 0,
            })
            .sum();
        assert_eq!(unchanged, 98);
    }

    #[test]
    fn fil_05_a_missing_final_newline_is_said() {
        let (lines, ..) = lines("x\ny", "X\ny");
        assert!(lines.last().unwrap().text.contains("no newline"));
    }

    #[test]
    fn dsp_01_a_carriage_return_in_a_diff_is_visible() {
        let (lines, ..) = lines("a\n", "a\r\n");
        assert!(lines.iter().any(|line| line.text == "a\\u{d}"));
    }

    #[test]
    fn look_alike_letters_are_noticed() {
        assert!(mixes_scripts("echo p\u{430}ypal"));
        assert!(!mixes_scripts("echo paypal \u{43f}\u{440}\u{438}\u{432}\u{435}\u{442}"));
    }

    proptest::proptest! {
        #[test]
        fn dsp_the_diff_holds_every_changed_line_exactly(before in "[ab\r\u{200b}\n]{0,40}", after in "[ab\r\u{200b}\n]{0,40}") {
            let (lines, ..) = lines(&before, &after);
            let side = |wanted: DiffLineKind| -> Vec<String> {
                let text = |line: &DiffLine| bodyguard_protocol::unescape(line.text.trim_end_matches(" ⏎ no newline at the end"));
                lines.iter().filter(|line| line.kind == wanted).map(text).collect()
            };
            for (kind, whole) in [(DiffLineKind::Removed, &before), (DiffLineKind::Added, &after)] {
                for line in side(kind) {
                    let found = whole.split('\n').any(|l| l == line);
                    proptest::prop_assert!(found);
                }
            }
        }
    }
}
