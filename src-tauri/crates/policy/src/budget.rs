use bodyguard_protocol::{ErrorCode, Fault};

/// How many asks may wait. One agent's flood must not bury another's ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budgets {
    /// Waiting asks of one agent.
    pub open_asks_per_agent: u32,
    /// Waiting asks of all agents.
    pub open_asks_total: u32,
}

impl Default for Budgets {
    fn default() -> Self {
        Self { open_asks_per_agent: 8, open_asks_total: 64 }
    }
}

impl Budgets {
    /// Whether one more ask may be opened beside those that wait.
    ///
    /// # Errors
    /// `budget_exceeded`, naming the limit.
    pub fn admit_ask(&self, open_of_agent: u32, open_total: u32) -> Result<(), Fault> {
        let (limit, whose) = if open_of_agent >= self.open_asks_per_agent {
            (self.open_asks_per_agent, "of this agent")
        } else if open_total >= self.open_asks_total {
            (self.open_asks_total, "of all agents")
        } else {
            return Ok(());
        };
        Err(Fault::new(ErrorCode::BudgetExceeded, format!("{limit} requests {whose} wait for a decision already"))
            .hint("wait until one of them is decided, or cancel one"))
    }
}
