//! The exact content under review.

use std::collections::BTreeMap;

use bodyguard_body::{DeletedEntry, Review};
use bodyguard_protocol::action::{KeyboardInput, ProcessSpawn, ShellExec};
use bodyguard_protocol::ui::{Content, DiffLine, DiffLineKind};
use bodyguard_protocol::{ErrorCode, Fault, FileKind, MAX_REVIEW_BYTES, Params, escape_line, escape_text};
use similar::{ChangeTag, TextDiff};

use super::file_name;

/// Unchanged lines shown around a change.
const CONTEXT: usize = 3;

pub(super) fn contents(params: &Params, review: &Review) -> Result<Vec<Content>, Fault> {
    match (params, review) {
        (Params::ShellExec(shell), _) => Ok(shell_contents(shell)),
        (Params::ProcessSpawn(spawn), Review::Command { program, .. }) => Ok(spawn_contents(&program.name, spawn)),
        (Params::KeyboardInput(input), _) => Ok(keyboard_contents(input)),
        (_, Review::Edit { path, before, after, bytes_before, bytes_after, .. }) => {
            reviewable(diff(path, before, after, *bytes_before, *bytes_after))
        }
        (_, Review::New { path, text, bytes, .. }) => reviewable(diff(path, "", text, 0, *bytes)),
        (_, Review::Delete { path, entries, .. }) => reviewable(tree(path, entries)),
        _ => Ok(Vec::new()),
    }
}

/// Two texts side by side, if the difference isn't too long to be read.
pub(crate) fn reviewable_diff(path: &str, before: &str, after: &str) -> Result<Vec<Content>, Fault> {
    reviewable(diff(path, before, after, before.len() as u64, after.len() as u64))
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

fn keyboard_contents(input: &KeyboardInput) -> Vec<Content> {
    let typed = input.text.iter().map(|exact| text(if input.secret { "Types a secret" } else { "Types" }, exact));
    let pressed = input.keys.iter().map(|keys| Content::Arguments {
        label: "Presses".into(),
        items: keys.iter().map(|chord| escape_line(&chord.to_string())).collect(),
    });
    typed.chain(pressed).collect()
}

fn spawn_contents(program: &str, spawn: &ProcessSpawn) -> Vec<Content> {
    let items = std::iter::once(program).chain(spawn.args.iter().map(String::as_str)).map(escape_line).collect();
    let mut contents = vec![Content::Arguments { label: "Program and arguments, without a shell".into(), items }];
    contents.extend(environment(&spawn.env));
    contents
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
    contents.extend(environment(&shell.env));
    contents
}

fn environment(env: &BTreeMap<String, String>) -> Option<Content> {
    (!env.is_empty()).then(|| Content::Arguments {
        label: "Variables that the agent sets".into(),
        items: env.iter().map(|(name, value)| escape_line(&format!("{name}={value}"))).collect(),
    })
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
