//! Where the built programs are.

use anyhow::{Result, bail};
use std::path::PathBuf;

/// The product's program `name` (`bodyguard`, `bodyguard-body`): `$BODYGUARD_BIN` names the
/// first and its folder holds the others; without it, the folder in which cargo built the
/// running test.
///
/// # Errors
/// If it isn't built.
pub fn binary(name: &str) -> Result<PathBuf> {
    if let Some(main) = std::env::var_os("BODYGUARD_BIN").map(PathBuf::from) {
        let path = if name == "bodyguard" { main } else { main.with_file_name(name) };
        if path.exists() {
            return Ok(path);
        }
        bail!("BODYGUARD_BIN leads to {path:?}, which doesn't exist");
    }
    sibling_binary(name)
}

/// A program that cargo built beside the running one: in its folder, or the one above `deps`.
///
/// # Errors
/// If it isn't built.
pub fn sibling_binary(name: &str) -> Result<PathBuf> {
    let me = std::env::current_exe()?;
    for folder in me.ancestors().skip(1).take(2) {
        let path = folder.join(name);
        if path.is_file() {
            return Ok(path);
        }
    }
    bail!("{name} isn't built beside {me:?}: run `cargo build --workspace --bins` first")
}
