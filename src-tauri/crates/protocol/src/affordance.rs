//! Affordances: what the environment offers and the policy permits (OS-011 §3.5, §6.4).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ActionType, Digest, Provenance, Timestamp};

/// One action that is available now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Affordance {
    /// `type@target`, where the target is a ref, a path, or a pattern that ends in `/**`.
    pub affordance_id: String,
    /// The action's type.
    pub action_type: ActionType,
    /// The target or pattern.
    pub target: String,
    /// What a person would call it.
    pub target_label: String,
    /// Always true: what the policy denies isn't listed (OS-011 §7.3).
    pub policy_allowed: bool,
    /// Whether a person is asked before it runs.
    pub asks: bool,
}

impl Affordance {
    /// An affordance for a target.
    pub fn new(action_type: ActionType, target: impl Into<String>, label: impl Into<String>, asks: bool) -> Self {
        let target = target.into();
        Self {
            affordance_id: format!("{}@{target}", action_type.name()),
            action_type,
            target,
            target_label: label.into(),
            policy_allowed: true,
            asks,
        }
    }

    /// Whether an action on a resolved target is one of those this affordance stands for: the very
    /// target, or, for a pattern `P/**`, `P` itself for a working directory and anything below it; for
    /// `**`, any program.
    pub fn covers(&self, action_type: ActionType, target: &str) -> bool {
        if self.action_type != action_type {
            return false;
        }
        if self.target == target {
            return true;
        }
        if action_type == ActionType::ProcessSpawn && self.target == "**" {
            return true;
        }
        let Some(root) = self.target.strip_suffix("/**") else { return false };
        let below = target.strip_prefix(root).is_some_and(|rest| rest.starts_with('/') && rest.len() > 1);
        let folder_itself = action_type == ActionType::ShellExec && target == root;
        (below || folder_itself) && !target.split('/').any(|part| matches!(part, "." | ".."))
    }
}

/// What an agent may do now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AffordanceSet {
    /// Digest over the sorted affordance ids.
    pub affordance_set_hash: Digest,
    /// When.
    pub observed_at: Timestamp,
    /// Always `os`.
    pub body_subtype: String,
    /// The scope that was asked for.
    pub scope: Option<String>,
    /// What is available.
    pub affordances: Vec<Affordance>,
    /// How many (action type × target class) entries the environment affords inside the readable
    /// scope and the policy denies; never which.
    pub policy_filtered_out: u64,
    /// Who enumerated.
    pub provenance: Provenance,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r25_a_pattern_covers_what_is_below_it_and_nothing_else() {
        let edits = Affordance::new(ActionType::FileEdit, "/ws/**", "files", true);
        assert_eq!(edits.affordance_id, "file_edit@/ws/**");
        assert!(edits.covers(ActionType::FileEdit, "/ws/a/b"));
        for target in ["/ws", "/ws/", "/wsx/a", "/ws/../etc/passwd", "/ws/a/../../b", "/", "ws/a"] {
            assert!(!edits.covers(ActionType::FileEdit, target), "{target}");
        }
        assert!(!edits.covers(ActionType::FileRead, "/ws/a"));
        assert!(
            Affordance::new(ActionType::ShellExec, "/ws/**", "commands", true).covers(ActionType::ShellExec, "/ws")
        );
    }

    proptest::proptest! {
        #[test]
        fn r15_nothing_outside_the_root_is_covered(target in "[/.a-z]{0,24}") {
            let reads = Affordance::new(ActionType::FileRead, "/ws/**", "files", false);
            if reads.covers(ActionType::FileRead, &target) {
                proptest::prop_assert!(target.starts_with("/ws/"));
                proptest::prop_assert!(!target.contains("/../") && !target.ends_with("/.."));
            }
        }
    }
}
