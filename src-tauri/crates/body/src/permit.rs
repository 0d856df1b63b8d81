//! The one thing that lets a body act.

use bodyguard_policy::Authorized;
use bodyguard_protocol::{BlockKind, Digest, ErrorCode, Fault, TypedAction};
use bodyguard_trace::IntentCommitted;

/// Leave to carry out one action, once: an authorization and a durable intent that name the same
/// action in the same session. Neither can be made elsewhere, so neither can this; it is not `Clone`
/// and not `Serialize`, and acting consumes it.
#[derive(Debug)]
pub struct Permit {
    action_digest: Digest,
    binding_digest: Digest,
    /// Whether a block stands behind it; without one only what changes nothing is carried out.
    signed: bool,
}

impl Permit {
    /// Joins an authorization with the intent that was recorded for it.
    ///
    /// # Errors
    /// `authorization_failure` where they name different actions or sessions.
    pub fn mint(authorized: Authorized, intent: IntentCommitted) -> Result<Self, Fault> {
        if authorized.kind() == BlockKind::View {
            return Err(refused("an authorization to look is none to act"));
        }
        if authorized.action_digest() != intent.action_digest() {
            return Err(refused("the authorization and the recorded intent name different actions"));
        }
        if authorized.session_id() != intent.session_id() {
            return Err(refused("the authorization and the recorded intent name different sessions"));
        }
        Ok(Self {
            action_digest: authorized.action_digest().clone(),
            binding_digest: authorized.binding_digest().clone(),
            signed: authorized.block().is_some(),
        })
    }

    /// The action it is for.
    pub fn action_digest(&self) -> &Digest {
        &self.action_digest
    }

    /// What the action is bound to.
    pub fn binding_digest(&self) -> &Digest {
        &self.binding_digest
    }

    /// Whether it is for this very action.
    pub(crate) fn admits(&self, resolved: &TypedAction) -> Result<(), Fault> {
        if resolved.digest()? != self.action_digest {
            return Err(refused("the permit is for another action"));
        }
        if resolved.kind.is_destructive() && !self.signed {
            return Err(refused("no block authorises this action, and it changes the world"));
        }
        Ok(())
    }
}

fn refused(message: &str) -> Fault {
    Fault::new(ErrorCode::AuthorizationFailure, message)
}
