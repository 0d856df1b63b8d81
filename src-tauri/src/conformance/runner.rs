//! The twelve tests in their order.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::bench::{Bench, Checked};
use super::house::House;
use super::transport::Transport;
use super::{acts, affordances, looks, replays, traces};

/// The names as OS-011 §9 writes them.
pub const NAMES: [&str; 12] = [
    "perceive_returns_typed_observation",
    "state_hash_is_deterministic",
    "stale_ref_rejection",
    "unaffordable_action_rejection",
    "policy_filtered_affordances",
    "policy_filter_out_count_is_truthful",
    "trace_edge_complete",
    "destructive_action_authorization_required",
    "replay_fails_on_state_divergence",
    "replay_fails_on_mid_trace_divergence",
    "replay_re_authorizes_destructive_edges",
    "surprise_signal_conforms_to_pulse_v0.1.1",
];

/// What one test came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestResult {
    /// From 1, as in OS-011 §9.
    pub number: usize,
    /// One of [`NAMES`].
    pub name: String,
    /// The body that was tested.
    pub body_subtype: String,
    /// Whether it holds.
    pub passed: bool,
    /// Why not, if not.
    pub reason: Option<String>,
    /// How long it took.
    pub duration_ms: u64,
}

/// Runs one test by its number, over a connection from [`House::door`] or what stands before it.
pub async fn run(number: usize, house: &House, transport: &mut dyn Transport) -> TestResult {
    let began = Instant::now();
    let checked = check(number, &mut Bench { house, transport }).await;
    result(number, began, checked)
}

fn result(number: usize, began: Instant, checked: Checked) -> TestResult {
    TestResult {
        number,
        name: number.checked_sub(1).and_then(|index| NAMES.get(index)).copied().unwrap_or_default().to_owned(),
        body_subtype: bodyguard_protocol::BODY_SUBTYPE.to_owned(),
        passed: checked.is_ok(),
        reason: checked.err().map(|unmet| unmet.0),
        duration_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
    }
}

/// Runs all of them, and tells each result as it comes.
pub async fn run_all(house: &House, mut told: impl FnMut(&TestResult)) -> Vec<TestResult> {
    let mut results = Vec::new();
    for number in 1..=NAMES.len() {
        let began = Instant::now();
        let result = match house.door(number).await {
            Ok(mut door) => run(number, house, &mut door).await,
            Err(broken) => result(number, began, Err(broken.into())),
        };
        told(&result);
        results.push(result);
    }
    results
}

async fn check(number: usize, bench: &mut Bench<'_>) -> Checked {
    match number {
        1 => looks::perceive_returns_typed_observation(bench).await,
        2 => looks::state_hash_is_deterministic(bench).await,
        3 => acts::stale_ref_rejection(bench).await,
        4 => acts::unaffordable_action_rejection(bench).await,
        5 => affordances::policy_filtered_affordances(bench).await,
        6 => affordances::policy_filter_out_count_is_truthful(bench).await,
        7 => traces::trace_edge_complete(bench).await,
        8 => acts::destructive_action_authorization_required(bench).await,
        9 => replays::replay_fails_on_state_divergence(bench).await,
        10 => replays::replay_fails_on_mid_trace_divergence(bench).await,
        11 => replays::replay_re_authorizes_destructive_edges(bench).await,
        12 => traces::surprise_signal_conforms_to_pulse(bench).await,
        _ => Err(super::bench::Unmet(format!("there is no test {number}"))),
    }
}
