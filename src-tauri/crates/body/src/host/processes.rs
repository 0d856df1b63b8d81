//! The processes that this session's commands started, and no others.

use std::collections::BTreeMap;

use bodyguard_protocol::ProcessEntry;

use super::sandbox::INNER;

struct Stat {
    parent: u32,
    name: String,
    state: char,
}

/// What runs below this process, by age.
pub(super) fn own() -> Vec<ProcessEntry> {
    let all = all();
    let mut found = BTreeMap::new();
    let mut ahead = vec![std::process::id()];
    while let Some(parent) = ahead.pop() {
        for (&pid, stat) in all.iter().filter(|(_, stat)| stat.parent == parent) {
            found.insert(pid, stat);
            ahead.push(pid);
        }
    }
    found.into_iter().map(|(pid, stat)| entry(pid, stat)).filter(|process| !is_wrapper(process)).collect()
}

/// Whether it only stands between this process and a command.
fn is_wrapper(process: &ProcessEntry) -> bool {
    let program = process.command.split(' ').next().unwrap_or_default();
    matches!(program, INNER | "bwrap" | "/usr/bin/bwrap")
}

fn entry(pid: u32, stat: &Stat) -> ProcessEntry {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<_> = words.split(|&byte| byte == 0).filter(|word| !word.is_empty()).collect();
    let command = String::from_utf8_lossy(&words.join(&b' ')).into_owned();
    let state = match stat.state {
        'R' => "running",
        'D' => "waiting",
        'T' | 't' => "stopped",
        'Z' | 'X' => "ended",
        _ => "sleeping",
    };
    ProcessEntry {
        reference: String::new(),
        target: String::new(),
        command: if command.is_empty() { stat.name.clone() } else { command },
        state: state.to_owned(),
    }
}

/// Every process that can be seen. One that ends meanwhile is left out.
fn all() -> BTreeMap<u32, Stat> {
    let Ok(listing) = std::fs::read_dir("/proc") else { return BTreeMap::new() };
    let pids = listing.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Some((pid, parse(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?))).collect()
}

/// `pid (name) state parent …`; the name may hold anything, brackets too.
fn parse(stat: &str) -> Option<Stat> {
    let (before, after) = stat.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    let mut fields = after.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some(Stat { parent: fields.next()?.parse().ok()?, name: name.to_owned(), state })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        let stat = parse("12 (a) R 1 (b)) S 7 12 12").unwrap();
        assert_eq!((stat.parent, stat.name.as_str(), stat.state), (7, "a) R 1 (b)", 'S'));
        assert!(parse("12 nonsense").is_none());
    }
}
