use bodyguard_protocol::{BlockKind, Digest};

use crate::{Authorized, Expectation, Operation, Request, ViewScope};

/// What stands for the rule where none decided.
pub(crate) const DEFAULT_DENY: &str = "default-deny";

/// What a policy says to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// No.
    Deny {
        /// One plain sentence; says nothing about what exists.
        reason: String,
        /// The forbid that said so; absent where simply nothing permits it.
        rule: Option<String>,
    },
    /// A person is asked.
    Ask {
        /// The rule's sentence.
        why: String,
        /// The rule.
        rule: String,
    },
    /// Yes.
    Allow {
        /// The rule.
        rule: String,
    },
}

/// A verdict together with what was asked and the policy that answered. Only a policy makes one.
#[derive(Debug)]
pub struct Decision {
    verdict: Verdict,
    workspace: String,
    agent_id: String,
    operation: Operation,
    policy_digest: Digest,
}

impl Decision {
    pub(crate) fn new(request: &Request<'_>, policy_digest: Digest, verdict: Verdict) -> Self {
        Self {
            verdict,
            workspace: request.workspace.to_string(),
            agent_id: format!("{}@{}", request.agent, request.workspace),
            operation: request.operation,
            policy_digest,
        }
    }

    /// What the policy says.
    pub const fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// What was asked for.
    pub const fn operation(&self) -> Operation {
        self.operation
    }

    /// Who asked, `name@workspace`.
    pub fn agent_id(&self) -> &str {
        &self.agent_id
    }

    /// The digest of the policy's text.
    pub const fn policy_digest(&self) -> &Digest {
        &self.policy_digest
    }

    /// `policy:<workspace>/<rule>`; the rule is `default-deny` where none decided.
    pub fn policy_id(&self) -> String {
        let rule = match &self.verdict {
            Verdict::Deny { rule, .. } => rule.as_deref().unwrap_or(DEFAULT_DENY),
            Verdict::Ask { rule, .. } | Verdict::Allow { rule } => rule,
        };
        format!("policy:{}/{rule}", self.workspace)
    }

    /// The right to look, where looking was asked for and is allowed without asking. `root` is the
    /// folder beneath which the body may look.
    pub fn view_scope(&self, root: &str) -> Option<ViewScope> {
        match (self.operation, &self.verdict) {
            (Operation::Perceive(mode), Verdict::Allow { .. }) => Some(ViewScope::new(mode, root)),
            _ => None,
        }
    }

    /// The right to one act that changes nothing, where it is allowed without asking. Such acts need
    /// no block. None where the expectation is another agent's, another policy's or no act.
    pub fn allow_read(&self, expect: &Expectation) -> Option<Authorized> {
        let Operation::Act(kind) = self.operation else { return None };
        let fits = matches!(expect.kind, BlockKind::Act | BlockKind::Replay)
            && expect.agent_id == self.agent_id
            && expect.policy_digest == self.policy_digest
            && expect.ask_id.is_none();
        let allowed = matches!(self.verdict, Verdict::Allow { .. }) && !kind.is_destructive();
        (fits && allowed).then(|| Authorized::unsigned_read(expect, self.policy_id()))
    }
}
