//! Places in a workspace whose content runs later, or steers what runs: a change there is never a
//! mere change of a file.

use bodyguard_protocol::ActionType;

/// Folders and files that are held read-only while a command runs, where they exist.
pub(crate) const HELD: [&str; 26] = [
    ".git/hooks",
    ".git/config",
    ".git/config.worktree",
    ".git/info/attributes",
    ".git/modules",
    ".husky",
    ".githooks",
    ".vscode",
    ".idea",
    ".devcontainer",
    ".claude",
    ".codex",
    ".cursor",
    ".pi",
    ".mcp.json",
    ".envrc",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".config/fish",
    ".config/autostart",
    ".ssh",
];

/// Files that tools run without being told to, as part of ordinary work; flagged, not held.
const FLAGGED: [&str; 9] = [
    "package.json",
    "conftest.py",
    "build.rs",
    "Makefile",
    "setup.py",
    "sitecustomize.py",
    ".npmrc",
    ".pre-commit-config.yaml",
    ".gitattributes",
];

/// Whether a path, at any depth, names a place that runs code later: a repository's hooks and
/// configuration, settings of agents and editors, shell start files, build files.
pub fn runs_later(path: &str) -> bool {
    let parts: Vec<String> =
        path.split('/').filter(|part| !part.is_empty() && *part != ".").map(str::to_lowercase).collect();
    let flagged = parts.last().is_some_and(|name| FLAGGED.iter().any(|flag| flag.eq_ignore_ascii_case(name)));
    flagged || HELD.iter().any(|place| lies_in(&parts, place))
}

/// Whether an action on a path changes what runs later: a change of such a place, or the deletion of
/// a repository's own folder, which takes its hooks and configuration along.
pub fn changes_what_runs_later(kind: ActionType, path: &str) -> bool {
    runs_later(path) || (kind == ActionType::FileDelete && runs_later(&format!("{path}/hooks")))
}

fn lies_in(parts: &[String], place: &str) -> bool {
    let place: Vec<&str> = place.split('/').collect();
    parts.windows(place.len()).any(|window| window.iter().zip(&place).all(|(part, want)| part == want))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deleting_a_repository_changes_what_runs_later_and_writing_beside_it_does_not() {
        assert!(changes_what_runs_later(ActionType::FileDelete, "/ws/.git"));
        assert!(!changes_what_runs_later(ActionType::FileWrite, "/ws/.git"));
        assert!(!changes_what_runs_later(ActionType::FileDelete, "/ws/src"));
    }

    #[test]
    fn places_are_known_at_any_depth_and_neighbours_are_not() {
        for path in ["/ws/.git/hooks/pre-commit", "sub/.git/config", ".claude/settings.json", "a/b/package.json"] {
            assert!(runs_later(path), "{path}");
        }
        assert!(runs_later("/ws/.GIT/hooks/x"), "file systems that ignore case");
        for path in ["/ws/src/main.rs", ".git/HEAD", "hooks/pre-commit", ".github/x", "package.json.md"] {
            assert!(!runs_later(path), "{path}");
        }
    }
}
