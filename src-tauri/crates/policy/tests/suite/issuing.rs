//! Issuing blocks, and rights without one.

use bodyguard_policy::{
    Budgets, Decision, Draft, MAX_BLOCK_MS, Operation, Policy, accept, issue_by_person, issue_by_policy,
};
use bodyguard_protocol::{
    ActionType, BlockKind, ErrorCode, Fault, PerceptionQuery, Proof, QueryMode, Timestamp, canonical_digest,
};

use crate::common::{
    TTL_MS, after, ask, block, command, decide, digest, draft, expectation, folder, keys, path, presence, screen,
    signer,
};

const RULES: &str = r#"
    @id("all") permit (principal, action, resource);
    @id("no-edits") forbid (principal, action == Action::"file_edit", resource);"#;

fn open_policy() -> Policy {
    Policy::parse("open.cedar", RULES).unwrap()
}

fn by_person(draft: Draft, person: &str, now: Timestamp, ttl_ms: i64) -> Result<(), Fault> {
    let yes = presence(&ask('0'), &digest("shown"));
    issue_by_person(&signer(), draft, yes, person, now, ttl_ms, [1; 16]).map(|_| ())
}

/// A draft for what the open policy allows.
fn draft_for(decision: &Decision) -> Draft {
    Draft {
        ask_id: None,
        shown_digest: draft().action_digest,
        policy_digest: decision.policy_digest().clone(),
        policy_id: decision.policy_id(),
        ..draft()
    }
}

#[test]
fn r33_a_persons_block_says_who_when_until_when_and_by_which_device() {
    let payload = block().payload;
    assert_eq!((payload.approved_by.as_str(), payload.uses), ("Ada", 1));
    assert_eq!(payload.proof, Proof::Click { device: "TigerVNC pointer".into() });
    assert_eq!((payload.approved_at, payload.expires_at), (after(0).wall, after(TTL_MS).wall));
    assert_eq!(payload.nonce, "01".repeat(16));
    assert_eq!(block().authorization_token, canonical_digest(&payload).unwrap());
}

#[test]
fn apr_02_a_yes_counts_only_for_the_ask_and_the_content_it_was_given_to() {
    assert_eq!(by_person(draft(), "Ada", after(0).wall, TTL_MS), Ok(()));
    let others = [
        Draft { ask_id: Some(ask('1')), ..draft() },
        Draft { ask_id: None, ..draft() },
        Draft { shown_digest: digest("other"), ..draft() },
    ];
    for other in others {
        assert_eq!(by_person(other, "Ada", after(0).wall, TTL_MS).unwrap_err().code, ErrorCode::AuthorizationFailure);
    }
}

#[test]
fn a_person_cant_be_nobody_or_a_policy() {
    for name in ["", " ", "policy:web/all"] {
        assert_eq!(by_person(draft(), name, after(0).wall, TTL_MS).unwrap_err().field.as_deref(), Some("approved_by"));
    }
}

#[test]
fn r33_a_lifetime_is_positive_bounded_and_writable() {
    let far = Timestamp::from_millis(i64::MAX);
    let last = Timestamp::from_millis(253_402_300_799_999);
    let table = [(after(0).wall, 0), (after(0).wall, -1), (after(0).wall, MAX_BLOCK_MS + 1), (far, TTL_MS), (last, 1)];
    for (now, ttl_ms) in table.into_iter().chain([(Timestamp::from_millis(-1), 5), (after(0).wall, i64::MAX)]) {
        assert_eq!(
            by_person(draft(), "Ada", now, ttl_ms).unwrap_err().field.as_deref(),
            Some("expires_at"),
            "{ttl_ms}"
        );
    }
    assert_eq!(by_person(draft(), "Ada", after(0).wall, MAX_BLOCK_MS), Ok(()));
}

#[test]
fn r34_a_policys_block_is_issued_only_for_what_it_allows_and_then_accepted() {
    let allowed = decide(&open_policy(), Operation::Act(ActionType::ShellExec), command(true, false));
    let denied = decide(&open_policy(), Operation::Act(ActionType::FileEdit), path(true, false));
    let issue = |draft, decision| issue_by_policy(&signer(), draft, decision, after(0).wall, TTL_MS, [2; 16]);
    let good = draft_for(&allowed);
    let block = issue(good.clone(), &allowed).unwrap();
    assert_eq!(block.payload.approved_by, "policy:web/all");
    assert_eq!(block.payload.proof, Proof::Policy { rule: "all".into() });
    let mut expect = expectation(&good);
    for boot in [None, expect.approved_boot_ms] {
        expect.approved_boot_ms = boot;
        assert_eq!(accept(&block, &keys(), &expect, after(1)).unwrap().policy_id(), "policy:web/all");
    }
    assert_eq!(issue(good.clone(), &denied).unwrap_err().code, ErrorCode::AuthorizationFailure);
    let others = [
        Draft { agent_id: "codex@web".into(), ..good.clone() },
        Draft { policy_digest: digest("older"), ..good.clone() },
        Draft { policy_id: "policy:web/other".into(), ..good.clone() },
        Draft { kind: BlockKind::View, ..good.clone() },
        Draft { ask_id: Some(ask('0')), ..good.clone() },
        Draft { shown_digest: digest("shown"), ..good },
    ];
    for other in others {
        assert_eq!(issue(other, &allowed).unwrap_err().code, ErrorCode::AuthorizationFailure);
    }
}

#[test]
fn an_ask_is_never_signed_by_the_policy() {
    let asks = Policy::parse("p", "@id(\"a\") @ask(\"Why.\") permit (principal, action, resource);").unwrap();
    let decision = decide(&asks, Operation::Act(ActionType::ShellExec), command(true, false));
    let issued = issue_by_policy(&signer(), draft_for(&decision), &decision, after(0).wall, TTL_MS, [2; 16]);
    assert_eq!(issued.unwrap_err().code, ErrorCode::AuthorizationFailure);
}

#[test]
fn r32_a_right_without_a_block_exists_only_for_what_changes_nothing() {
    let policy = open_policy();
    let read = decide(&policy, Operation::Act(ActionType::FileRead), path(true, false));
    let expect = expectation(&draft_for(&read));
    let right = read.allow_read(&expect).unwrap();
    assert_eq!(right.action_digest(), &expect.action_digest);
    assert_eq!((right.session_id(), right.agent_id()), (&expect.session_id, "claude@web"));
    assert!(right.block().is_none());
    for kind in ActionType::ALL {
        for resource in [path(true, false), command(true, false), screen()] {
            let decision = decide(&policy, Operation::Act(kind), resource);
            assert!(decision.allow_read(&expect).is_none() || !kind.is_destructive(), "{kind:?}");
        }
    }
    let mut others = [(); 4].map(|()| expect.clone());
    others[0].kind = BlockKind::View;
    others[1].agent_id = "codex@web".into();
    others[2].policy_digest = digest("older");
    others[3].ask_id = Some(ask('0'));
    assert!(others.iter().all(|other| read.allow_read(other).is_none()));
    let mut replayed = expect.clone();
    replayed.kind = BlockKind::Replay;
    assert_eq!(read.allow_read(&replayed).map(|right| right.kind()), Some(BlockKind::Replay));
    let look = decide(&policy, Operation::Perceive(QueryMode::Git), folder(true));
    assert!(look.allow_read(&expect).is_none(), "a look isn't an act");
}

#[test]
fn r05_a_scope_comes_from_an_allowed_look_or_an_accepted_view() {
    let policy = open_policy();
    let look = decide(&policy, Operation::Perceive(QueryMode::Git), folder(true));
    let scope = look.view_scope("/ws").unwrap();
    assert_eq!((scope.mode(), scope.root()), (QueryMode::Git, "/ws"));
    let read = decide(&policy, Operation::Act(ActionType::FileRead), path(true, false));
    assert!(read.view_scope("/ws").is_none(), "an act isn't a look");
    let mismatch = decide(&policy, Operation::Perceive(QueryMode::Git), screen());
    assert!(mismatch.view_scope("/ws").is_none());

    let query = PerceptionQuery { mode: QueryMode::Screen, ..PerceptionQuery::default() };
    let view = Draft { kind: BlockKind::View, action_digest: canonical_digest(&query).unwrap(), ..draft() };
    let accepted = |draft: &Draft| {
        let yes = presence(&ask('0'), &draft.shown_digest);
        let block = issue_by_person(&signer(), draft.clone(), yes, "Ada", after(0).wall, TTL_MS, [1; 16]).unwrap();
        accept(&block, &keys(), &expectation(draft), after(1)).unwrap()
    };
    assert_eq!(accepted(&view).into_view_scope(&query, "/ws").unwrap().mode(), QueryMode::Screen);
    let other = PerceptionQuery { mode: QueryMode::Full, ..query.clone() };
    let as_act = Draft { kind: BlockKind::Act, ..view.clone() };
    for refused in [accepted(&view).into_view_scope(&other, "/ws"), accepted(&as_act).into_view_scope(&query, "/ws")] {
        assert_eq!(refused.unwrap_err().code, ErrorCode::AuthorizationFailure);
    }
}

#[test]
fn apr_03_waiting_asks_are_bounded_per_agent_and_in_all() {
    let budgets = Budgets::default();
    assert_eq!((budgets.open_asks_per_agent, budgets.open_asks_total), (8, 64));
    assert_eq!(budgets.admit_ask(7, 63), Ok(()));
    for (of_agent, total) in [(8, 8), (0, 64), (u32::MAX, u32::MAX)] {
        assert_eq!(budgets.admit_ask(of_agent, total).unwrap_err().code, ErrorCode::BudgetExceeded);
    }
}
