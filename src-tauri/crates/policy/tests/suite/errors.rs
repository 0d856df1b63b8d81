//! A policy text that isn't accepted says where.

use bodyguard_policy::{MAX_POLICY_BYTES, Operation, Policy, PolicyError};
use bodyguard_protocol::{ActionType, ErrorCode, Fault};
use proptest::prelude::*;

use crate::common::{decide, path};

fn refuse(text: &str) -> PolicyError {
    Policy::parse("web.cedar", text).expect_err(text)
}

#[test]
fn errors_name_file_line_and_column() {
    let good = "@id(\"one\")\npermit (principal, action, resource);\n\n";
    let table: [(&str, (usize, usize), &str); 21] = [
        ("@id(\"a\")\npermit (principal, actoin, resource);", (5, 20), "actoin"),
        ("permit (principal, action, resource)", (4, 37), "expected"),
        ("@id(\"a\") permit (principal, action == Action::\"fly\", resource);", (4, 39), "fly"),
        ("@id(\"a\") permit (principal == Robot::\"x\", action, resource);", (4, 31), "Robot"),
        (
            "@id(\"a\")\npermit (principal, action == Action::\"file_read\", resource)\n  when { resource.colour };",
            (6, 10),
            "colour",
        ),
        ("@id(\"a\") permit (principal, action, resource)\nwhen { context.network == 1 };", (5, 8), "Bool"),
        (
            "@id(\"a\") permit (principal, action, resource)\nwhen { context.containment == Containment::\"ful\" };",
            (5, 31),
            "ful",
        ),
        ("permit (principal, action, resource);", (4, 1), "@id"),
        ("// @id(\"a\")\n  forbid (principal, action, resource);", (5, 3), "@id"),
        ("@id\npermit (principal, action, resource);", (4, 1), "@id"),
        ("@id(\"\") permit (principal, action, resource);", (4, 1), "@id"),
        ("@id(\"a b\") permit (principal, action, resource);", (4, 1), "a b"),
        ("@id(\"a/b\") permit (principal, action, resource);", (4, 1), "a/b"),
        ("@id(\"default-deny\") permit (principal, action, resource);", (4, 1), "default-deny"),
        ("@ask(\"x\") @id(\"one\") permit (principal, action, resource);", (4, 11), "earlier rule"),
        ("@id(\"a\")\n@proof(\"click\")\npermit (principal, action, resource);", (5, 1), "@proof"),
        ("@id(\"a\")\n  @ask(\" \") permit (principal, action, resource);", (5, 3), "sentence"),
        ("@id(\"a\") @ask permit (principal, action, resource);", (4, 10), "sentence"),
        ("@id(\"a\")\n@ask(\"Why?\") forbid (principal, action, resource);", (5, 1), "forbid"),
        ("@id(\"a\") permit (principal == ?principal, action, resource);", (4, 1), "?principal"),
        ("@id(\"a\") @id(\"b\") permit (principal, action, resource);", (4, 10), "id"),
    ];
    for (bad, place, words) in table {
        let error = refuse(&format!("{good}{bad}"));
        assert_eq!((error.line, error.column), place, "{bad}\n{error}");
        assert!(error.message.contains(words), "{bad}\n{error}");
        assert!(error.to_string().starts_with(&format!("web.cedar:{}:{}: ", place.0, place.1)), "{error}");
    }
}

#[test]
fn a_rule_that_can_never_apply_is_refused() {
    let error = refuse("@id(\"a\") permit (principal, action == Action::\"file_read\", resource is Screen);");
    assert_eq!(error.line, 1, "{error}");
    let error = refuse("@id(\"a\")\nforbid (principal, action, resource) when { false };");
    assert_eq!((error.line, error.column), (1, 1), "{error}");
}

#[test]
fn dsp_04_letters_that_deceive_a_reader_are_refused() {
    for deceiving in ["/ws/\u{202e}txt", "/ws/\u{430}dmin"] {
        let text = format!(
            "@id(\"a\") permit (principal, action == Action::\"file_read\", resource) when {{ resource.path == \"{deceiving}\" }};"
        );
        assert_eq!(refuse(&text).line, 1);
    }
}

#[test]
fn a_text_beyond_the_limits_is_refused_before_it_is_parsed() {
    let error = refuse(&" ".repeat(MAX_POLICY_BYTES + 1));
    assert!(error.message.contains("bytes"), "{error}");
    assert!(Policy::parse("web.cedar", &" ".repeat(MAX_POLICY_BYTES)).is_ok());
    let rule =
        |condition: &str| format!("// one\n@id(\"a\") permit (principal, action, resource) when {{ {condition} }};");
    let error = refuse(&rule(&"true || ".repeat(3_000)));
    assert_eq!((error.line, error.column), (2, 1), "{error}");
    let nested = |n: usize| rule(&format!("{}true{}", "(".repeat(n), ")".repeat(n)));
    let error = refuse(&nested(12));
    assert_eq!((error.line, error.column), (2, 65), "{error}");
    assert!(Policy::parse("web.cedar", &nested(11)).is_ok());
    let chosen = |n: usize| rule(&format!("{}true{}", "if true then ".repeat(n), " else true".repeat(n)));
    assert!(refuse(&chosen(12)).message.contains("nested"));
    assert!(Policy::parse("web.cedar", &chosen(11)).is_ok());
}

/// Cedar's parser recurses; an exhausted stack would end the supervisor.
#[test]
fn a_text_made_to_exhaust_the_stack_is_answered() {
    let nests = [("(", "true", ")"), ("[", "1", "]"), ("{a:", "1", "}"), ("if true then ", "true", " else true")];
    let chains =
        [("!", "true", ""), ("1+", "1==1", ""), ("true&&", "true", ""), ("", "resource", ".a"), ("-", "1==1", "")];
    for (before, middle, after) in nests.into_iter().chain(chains) {
        for n in [11, 100, 600, 1_500, 8_000, 20_000] {
            let condition = format!("{}{middle}{}", before.repeat(n), after.repeat(n));
            let text = format!("@id(\"a\") permit (principal, action, resource) when {{ {condition} }};");
            if let Ok(policy) = Policy::parse("web.cedar", &text) {
                let _ = decide(&policy, Operation::Act(ActionType::FileRead), path(true, false));
            }
        }
    }
}

#[test]
fn an_error_becomes_a_fault_with_its_place() {
    let fault = Fault::from(refuse("permit (principal, action, resource);"));
    assert_eq!(fault.code, ErrorCode::InvalidArgument);
    assert!(fault.message.starts_with("web.cedar:1:1: "), "{}", fault.message);
}

proptest! {
    #[test]
    fn any_text_is_answered_and_errors_point_into_it(
        text in "(@id\\(\"[a-z]\"\\)|permit|forbid|\\(principal, action, resource\\)|;|when \\{ true \\}|[@\"\\\\/\n {}]){0,12}",
    ) {
        if let Err(error) = Policy::parse("web.cedar", &text) {
            prop_assert!((1..=text.matches('\n').count() + 1).contains(&error.line), "{}", error);
            prop_assert!((1..=text.chars().count() + 1).contains(&error.column), "{}", error);
        }
    }
}
