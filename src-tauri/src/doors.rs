//! The agents' doors: a Unix socket for the stdio bridge, and HTTP on loopback.

use bodyguard_supervisor::Supervisor;

pub(crate) async fn open(_supervisor: &Supervisor) -> Result<(), String> {
    Ok(())
}
