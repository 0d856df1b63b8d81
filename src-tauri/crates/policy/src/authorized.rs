//! What accepted decisions turn into: rights that can't be made elsewhere, copied or stored.

use bodyguard_protocol::{
    AskId, Block, BlockKind, Digest, ErrorCode, Fault, PerceptionQuery, QueryMode, SessionId, TraceId, canonical_digest,
};

use crate::Expectation;

/// The right to do exactly one thing, once: made by [`accept`](crate::accept) from a signed block,
/// or by [`Decision::allow_read`](crate::Decision::allow_read) for what changes nothing.
#[derive(Debug)]
#[must_use]
pub struct Authorized {
    kind: BlockKind,
    action_digest: Digest,
    binding_digest: Digest,
    agent_id: String,
    session_id: SessionId,
    trace_id: TraceId,
    ask_id: Option<AskId>,
    policy_id: String,
    block: Option<Block>,
}

impl Authorized {
    pub(crate) fn by_block(block: &Block) -> Self {
        let payload = block.payload.clone();
        Self {
            kind: payload.kind,
            action_digest: payload.action_digest,
            binding_digest: payload.binding_digest,
            agent_id: payload.agent_id,
            session_id: payload.session_id,
            trace_id: payload.trace_id,
            ask_id: payload.ask_id,
            policy_id: payload.policy_id,
            block: Some(block.clone()),
        }
    }

    pub(crate) fn unsigned_read(expect: &Expectation, policy_id: String) -> Self {
        Self {
            kind: expect.kind,
            action_digest: expect.action_digest.clone(),
            binding_digest: expect.binding_digest.clone(),
            agent_id: expect.agent_id.clone(),
            session_id: expect.session_id.clone(),
            trace_id: expect.trace_id.clone(),
            ask_id: None,
            policy_id,
            block: None,
        }
    }

    /// What for.
    pub const fn kind(&self) -> BlockKind {
        self.kind
    }

    /// The digest of the one action, or of the query, that it is for.
    pub const fn action_digest(&self) -> &Digest {
        &self.action_digest
    }

    /// The digest of what that is bound to.
    pub const fn binding_digest(&self) -> &Digest {
        &self.binding_digest
    }

    /// Whose it is, `name@workspace`.
    pub fn agent_id(&self) -> &str {
        &self.agent_id
    }

    /// The session it is for.
    pub const fn session_id(&self) -> &SessionId {
        &self.session_id
    }

    /// The trace that records it.
    pub const fn trace_id(&self) -> &TraceId {
        &self.trace_id
    }

    /// The ask that was answered; absent where the policy didn't ask.
    pub const fn ask_id(&self) -> Option<&AskId> {
        self.ask_id.as_ref()
    }

    /// The rule, `policy:<workspace>/<rule>`.
    pub fn policy_id(&self) -> &str {
        &self.policy_id
    }

    /// The block. Absent only for what changes nothing: without one, a destructive action must not
    /// run.
    pub const fn block(&self) -> Option<&Block> {
        self.block.as_ref()
    }

    /// Turns an accepted block of kind `view` into the right to look. `root` is the folder beneath
    /// which the body may look.
    ///
    /// # Errors
    /// `authorization_failure` where this isn't for a view or is for another query: the block's
    /// `action_digest` is the canonical digest of the query.
    pub fn into_view_scope(self, query: &PerceptionQuery, root: &str) -> Result<ViewScope, Fault> {
        if self.kind == BlockKind::View && self.action_digest == canonical_digest(query)? {
            Ok(ViewScope::new(query.mode, root))
        } else {
            Err(Fault::new(ErrorCode::AuthorizationFailure, "this authorises something else than that look"))
        }
    }
}

/// The right to look in one mode beneath one folder, once.
#[derive(Debug)]
#[must_use]
pub struct ViewScope {
    mode: QueryMode,
    root: String,
}

impl ViewScope {
    pub(crate) fn new(mode: QueryMode, root: &str) -> Self {
        Self { mode, root: root.to_owned() }
    }

    /// What may be looked at.
    pub const fn mode(&self) -> QueryMode {
        self.mode
    }

    /// The folder beneath which.
    pub fn root(&self) -> &str {
        &self.root
    }
}
