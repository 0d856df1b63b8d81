//! Whether a changed policy takes something away only.

use bodyguard_policy::{Policy, template};

fn policy(text: &str) -> Policy {
    Policy::parse("p.cedar", text).unwrap()
}

fn narrows(new: &str, old: &str) -> bool {
    policy(new).narrows(&policy(old))
}

const READ: &str =
    r#"@id("read") permit (principal, action == Action::"file_read", resource) when { resource.inside_workspace };"#;
const EDIT: &str = r#"@id("edit") @ask("It edits.") permit (principal, action == Action::"file_edit", resource);"#;
const NEVER: &str =
    r#"@id("never") forbid (principal, action == Action::"file_edit", resource) when { resource.runs_later };"#;

#[test]
fn r32_taking_a_permit_away_or_adding_a_forbid_narrows() {
    let old = format!("{READ}{EDIT}");
    assert!(narrows(&old, &old));
    assert!(narrows(READ, &old) && narrows(EDIT, &old));
    assert!(narrows(&format!("{NEVER}{old}"), &old));
    let renamed = old.replace("@id(\"read\")", "// why\n@id(\"read-2\")").replace("It edits.", "It changes a file.");
    assert!(narrows(&renamed, &old), "names, comments and sentences permit nothing");
}

#[test]
fn r32_everything_else_widens() {
    let old = format!("{READ}{EDIT}{NEVER}");
    for wider in [
        format!("{READ}{EDIT}"),
        old.replace(" @ask(\"It edits.\")", ""),
        old.replace(" when { resource.inside_workspace }", ""),
        old.replace("file_edit\", resource) when", "file_delete\", resource) when"),
        format!("{old}@id(\"all\") @ask(\"It does.\") permit (principal, action == Action::\"shell_exec\", resource);"),
    ] {
        assert_ne!(wider, old);
        assert!(!narrows(&wider, &old), "{wider}");
    }
    assert!(!narrows(template::CAREFUL, &old));
    // Spaces within a text mean something.
    let spaced = |path: &str| {
        format!(
            "@id(\"a\") permit (principal, action == Action::\"file_read\", resource) when {{ resource.path == \"{path}\" }};"
        )
    };
    assert!(!narrows(&spaced("/ws/a  b"), &spaced("/ws/a b")));
}
