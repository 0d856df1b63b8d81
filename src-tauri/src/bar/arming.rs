//! When Approve counts: a pure machine over what is observed, so that it can be tested without a
//! screen.

use std::collections::HashSet;
use std::time::{Duration, Instant};

/// How long everything has to stand still before Approve counts.
pub(super) const DELAY: Duration = Duration::from_millis(1200);

/// How long after a bar has appeared even Deny ignores input that was meant for something else.
pub(super) const GUARD: Duration = Duration::from_millis(500);

/// What is observed at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Conditions {
    /// The end of the content has been in view.
    pub(super) end_shown: bool,
    /// The window has the focus.
    pub(super) active: bool,
    /// The window is mapped and not minimised.
    pub(super) mapped: bool,
    /// Nothing covers any part of the window, and all of it is on the screen.
    pub(super) clear: bool,
    /// No key and no button is down.
    pub(super) hands_off: bool,
}

/// How Approve stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It would count.
    Armed,
    /// It wouldn't, and why.
    Waiting(&'static str),
}

/// The machine.
#[derive(Debug)]
pub(super) struct Arming {
    /// Since when all has stood still.
    since: Option<Instant>,
    armed: bool,
    /// Raised by every disarming: a press in one period can't be completed in another.
    period: u64,
    raised: Instant,
    /// Keys pressed since arming and not yet released, so that repeats are known.
    down: HashSet<u16>,
    /// When a key that writes something was last pressed.
    typed: Option<Instant>,
}

impl Arming {
    pub(super) fn new(now: Instant) -> Self {
        Self { since: None, armed: false, period: 0, raised: now, down: HashSet::new(), typed: None }
    }

    /// Another ask, or other content, stands in the bar.
    pub(super) fn raise(&mut self, now: Instant) {
        self.raised = now;
        self.disturb();
    }

    /// Something moved: the delay starts again.
    pub(super) fn disturb(&mut self) {
        self.since = None;
        self.armed = false;
        self.period += 1;
    }

    /// Takes a look.
    pub(super) fn look(&mut self, now: Instant, seen: Conditions) -> Standing {
        if let Some(reason) = missing(seen) {
            if self.armed || self.since.is_some() {
                self.disturb();
            }
            return Standing::Waiting(reason);
        }
        if self.armed {
            return Standing::Armed;
        }
        let since = *self.since.get_or_insert(now);
        if now.duration_since(since) < DELAY {
            return Standing::Waiting("a moment, so that nothing is pressed by accident");
        }
        if !seen.hands_off {
            return Standing::Waiting("a key or button is held down");
        }
        self.armed = true;
        self.down.clear();
        Standing::Armed
    }

    /// The period in which a press would count now.
    pub(super) fn armed_period(&self) -> Option<u64> {
        self.armed.then_some(self.period)
    }

    /// Whether the bar stands long enough that input can be meant for it.
    pub(super) fn past_guard(&self, now: Instant) -> bool {
        now.duration_since(self.raised) >= GUARD
    }

    /// A key went down. True if it is a fresh press and not in the middle of typing, so that it can
    /// be meant for a button.
    pub(super) fn key_down(&mut self, now: Instant, code: u16, writes: bool) -> bool {
        let fresh = self.down.insert(code);
        let typing = self.typed.is_some_and(|at| now.duration_since(at) < GUARD);
        if writes {
            self.typed = Some(now);
        }
        fresh && !typing
    }

    /// A key went up.
    pub(super) fn key_up(&mut self, code: u16) {
        self.down.remove(&code);
    }
}

fn missing(seen: Conditions) -> Option<&'static str> {
    if !seen.mapped {
        Some("the window is hidden")
    } else if !seen.active {
        Some("the window isn't in use: click into it")
    } else if !seen.clear {
        Some("something covers this window, or part of it is off the screen")
    } else if !seen.end_shown {
        Some("read the request to its end")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Conditions = Conditions { end_shown: true, active: true, mapped: true, clear: true, hands_off: true };

    fn at(start: Instant, ms: u64) -> Instant {
        start + Duration::from_millis(ms)
    }

    fn armed(now: Instant) -> Arming {
        let mut arming = Arming::new(now);
        arming.look(now, GOOD);
        assert_eq!(arming.look(now + DELAY, GOOD), Standing::Armed);
        arming
    }

    #[test]
    fn apr_22_it_arms_only_after_the_whole_delay() {
        let t = Instant::now();
        let mut arming = Arming::new(t);
        assert_ne!(arming.look(t, GOOD), Standing::Armed);
        assert_ne!(arming.look(at(t, 1199), GOOD), Standing::Armed);
        assert_eq!(arming.look(at(t, 1200), GOOD), Standing::Armed);
    }

    #[test]
    fn each_condition_alone_keeps_it_unarmed_and_disarms_it() {
        let spoil: [fn(&mut Conditions); 4] =
            [|c| c.end_shown = false, |c| c.active = false, |c| c.mapped = false, |c| c.clear = false];
        for change in spoil {
            let mut bad = GOOD;
            change(&mut bad);
            let t = Instant::now();
            let mut arming = Arming::new(t);
            arming.look(t, bad);
            assert_ne!(arming.look(at(t, 9000), bad), Standing::Armed);

            let mut arming = armed(t);
            let period = arming.armed_period();
            assert_ne!(arming.look(at(t, 1300), bad), Standing::Armed);
            assert_eq!(arming.armed_period(), None);
            assert_ne!(arming.look(at(t, 1400), GOOD), Standing::Armed, "the delay starts again");
            assert_eq!(arming.look(at(t, 2600), GOOD), Standing::Armed);
            assert_ne!(arming.armed_period(), period, "a press from before isn't completed now");
        }
    }

    #[test]
    fn apr_22_a_key_held_from_before_keeps_it_unarmed() {
        let t = Instant::now();
        let mut arming = Arming::new(t);
        let held = Conditions { hands_off: false, ..GOOD };
        arming.look(t, held);
        assert_ne!(arming.look(at(t, 5000), held), Standing::Armed);
        assert_eq!(arming.look(at(t, 5100), GOOD), Standing::Armed);
        assert_eq!(arming.look(at(t, 5200), held), Standing::Armed, "pressing the armed button doesn't disarm it");
    }

    #[test]
    fn apr_02_another_ask_starts_the_delay_again() {
        let t = Instant::now();
        let mut arming = armed(t);
        arming.raise(at(t, 1300));
        assert_eq!(arming.armed_period(), None);
        assert!(!arming.past_guard(at(t, 1500)));
        assert!(arming.past_guard(at(t, 1800)));
        assert_ne!(arming.look(at(t, 1800), GOOD), Standing::Armed);
    }

    #[test]
    fn apr_22_repeats_and_typing_are_not_meant_for_a_button() {
        let t = Instant::now();
        let mut arming = armed(t);
        assert!(arming.key_down(at(t, 2000), 65, true), "a fresh press after a pause counts");
        assert!(!arming.key_down(at(t, 2600), 65, true), "a repeat doesn't");
        arming.key_up(65);
        assert!(!arming.key_down(at(t, 2680), 65, true), "one in a row of twelve a second doesn't");
        arming.key_up(65);
        assert!(!arming.key_down(at(t, 2760), 23, false), "nor does Tab within it");
        assert!(arming.key_down(at(t, 3400), 65, true));
    }
}
