//! How rules combine.

use bodyguard_policy::{Operation, Policy, Resource, Verdict};
use bodyguard_protocol::{ActionType, QueryMode};
use proptest::prelude::*;

use crate::common::{command, decide, folder, path, screen, short};

const READ: Operation = Operation::Act(ActionType::FileRead);

fn policy(text: &str) -> Policy {
    Policy::parse("test.cedar", text).unwrap()
}

fn operations() -> impl Strategy<Value = Operation> {
    prop_oneof![
        proptest::sample::select(ActionType::ALL.to_vec()).prop_map(Operation::Act),
        proptest::sample::select(QueryMode::ALL.to_vec()).prop_map(Operation::Perceive),
    ]
}

fn resources() -> impl Strategy<Value = Resource> {
    prop_oneof![
        (any::<bool>(), any::<bool>()).prop_map(|(inside, later)| path(inside, later)),
        (any::<bool>(), any::<bool>()).prop_map(|(inside, network)| command(inside, network)),
        Just(screen()),
        any::<bool>().prop_map(folder),
    ]
}

#[test]
fn r32_an_empty_policy_denies() {
    assert_eq!(short(&decide(&policy("// nothing\n"), READ, path(true, false))), ("deny", ""));
}

#[test]
fn a_forbid_beats_every_permit() {
    let text = r#"
        @id("all") permit (principal, action, resource);
        @id("ask-all") @ask("Why?") permit (principal, action, resource);
        @id("not-this") forbid (principal, action == Action::"file_read", resource);"#;
    assert_eq!(short(&decide(&policy(text), READ, path(true, false))), ("deny", "not-this"));
    assert_eq!(
        short(&decide(&policy(text), Operation::Act(ActionType::ShellExec), command(true, false))),
        ("allow", "all")
    );
}

#[test]
fn a_permit_without_ask_allows_and_among_those_that_ask_the_first_asks() {
    let asks = r#"
        @id("z-first") @ask("First.") permit (principal, action, resource);
        @id("a-second") @ask("Second.") permit (principal, action, resource);"#;
    let decision = decide(&policy(asks), READ, path(true, false));
    assert_eq!(decision.verdict(), &Verdict::Ask { why: "First.".into(), rule: "z-first".into() });
    let both = format!("{asks} @id(\"plain\") permit (principal, action, resource);");
    assert_eq!(short(&decide(&policy(&both), READ, path(true, false))), ("allow", "plain"));
}

#[test]
fn the_order_of_rules_is_that_of_the_text_beyond_ten() {
    let rules: Vec<_> = (0..12)
        .map(|n| {
            format!(
                "@id(\"r{n}\") @ask(\"{n}\") permit (principal, action, resource) when {{ {} }};",
                match n {
                    0..=1 => "context.network",
                    _ => "true",
                }
            )
        })
        .collect();
    assert_eq!(short(&decide(&policy(&rules.join("\n")), READ, path(true, false))), ("ask", "r2"));
}

#[test]
fn a_rule_that_cant_be_evaluated_denies_instead_of_being_passed_over() {
    // Overflows only where `text` matches, which no schema can see.
    let text = r#"
        @id("all") permit (principal, action, resource);
        @id("broken") forbid (principal, action == Action::"shell_exec", resource)
        when { 9223372036854775807 + (if resource.text like "ls*" then 1 else 0) == 0 };"#;
    let run = decide(&policy(text), Operation::Act(ActionType::ShellExec), command(true, false));
    let Verdict::Deny { reason, .. } = run.verdict() else { panic!("{run:?}") };
    assert!(reason.contains("broken"), "{reason}");
    assert_eq!(short(&decide(&policy(text), READ, path(true, false))), ("allow", "all"));
}

#[test]
fn rules_see_agent_workspace_program_text_and_monitor() {
    let cases = [
        (r#"principal == Agent::"claude""#, r#"principal == Agent::"codex""#),
        (r#"context.workspace == "web""#, r#"context.workspace == "other""#),
        (
            r#"resource has program && resource.program == "/bin/ls""#,
            r#"resource has program && resource.program == "/bin/rm""#,
        ),
        (r#"resource.text like "ls *""#, r#"resource.text like "rm *""#),
        (r#"context.containment == Containment::"full""#, r#"context.containment == Containment::"reduced""#),
        ("resource.cwd_inside_workspace", "context.network"),
    ];
    let run = |condition: &str| {
        let text = format!(
            "@id(\"r\") permit (principal, action == Action::\"shell_exec\", resource) when {{ {condition} }};"
        );
        let decision = decide(&policy(&text), Operation::Act(ActionType::ShellExec), command(true, false));
        short(&decision).0
    };
    for (holds, fails) in cases {
        assert_eq!((run(holds), run(fails)), ("allow", "deny"), "{holds}");
    }
}

#[test]
fn an_operation_that_doesnt_go_with_its_target_is_denied_even_if_everything_is_permitted() {
    let all = policy("@id(\"all\") permit (principal, action, resource);");
    assert_eq!(short(&decide(&all, READ, screen())), ("deny", ""));
    assert_eq!(short(&decide(&all, Operation::Perceive(QueryMode::Screen), folder(true))), ("deny", ""));
    assert_eq!(short(&decide(&all, READ, path(false, false))), ("allow", "all"));
}

/// Rules to combine; `{}` is the name.
const POOL: [&str; 7] = [
    "@id(\"{}\") permit (principal, action, resource);",
    "@id(\"{}\") permit (principal, action == Action::\"file_read\", resource) when { resource.inside_workspace };",
    "@id(\"{}\") @ask(\"Why.\") permit (principal, action, resource is Path);",
    "@id(\"{}\") @ask(\"Why.\") permit (principal == Agent::\"claude\", action, resource);",
    "@id(\"{}\") permit (principal == Agent::\"codex\", action, resource);",
    "@id(\"{}\") forbid (principal, action, resource) when { context.network };",
    "@id(\"{}\") forbid (principal, action == Action::\"file_edit\", resource) when { resource.runs_later };",
];

fn rules() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec(proptest::sample::select(POOL.to_vec()), 0..6)
        .prop_map(|chosen| chosen.iter().enumerate().map(|(n, rule)| rule.replace("{}", &format!("r{n}"))).collect())
}

fn rank(rules: &[String], operation: Operation, resource: &Resource) -> u8 {
    let decision = decide(&policy(&rules.join("\n")), operation, resource.clone());
    match decision.verdict() {
        Verdict::Deny { .. } => 0,
        Verdict::Ask { .. } => 1,
        Verdict::Allow { .. } => 2,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn r32_what_no_permit_names_is_denied(operation in operations(), resource in resources()) {
        let named = "@id(\"only\") permit (principal, action == Action::\"file_read\", resource);";
        let expected = u8::from(operation == READ && matches!(resource, Resource::Path { .. })) * 2;
        prop_assert_eq!(rank(&[named.to_owned()], operation, &resource), expected);
    }

    #[test]
    fn narrowing_a_policy_never_widens_a_verdict(
        rules in rules(), operation in operations(), resource in resources(), at in any::<proptest::sample::Index>(),
    ) {
        let before = rank(&rules, operation, &resource);
        // Another forbid.
        for rule in POOL.iter().filter(|rule| rule.contains("forbid")) {
            let mut narrower = rules.clone();
            narrower.insert(at.index(rules.len() + 1), rule.replace("{}", "added"));
            prop_assert!(rank(&narrower, operation, &resource) <= before);
        }
        if rules.is_empty() {
            return Ok(());
        }
        let at = at.index(rules.len());
        // A permit less.
        if rules[at].contains("permit") {
            let mut narrower = rules.clone();
            narrower.remove(at);
            prop_assert!(rank(&narrower, operation, &resource) <= before);
        }
        // A permit that asks from now on.
        if rules[at].contains("permit") && !rules[at].contains("@ask") {
            let mut narrower = rules.clone();
            narrower[at] = format!("@ask(\"Why.\") {}", rules[at]);
            prop_assert!(rank(&narrower, operation, &resource) <= before);
        }
    }
}
