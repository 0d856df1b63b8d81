//! The processes that this session started, and no others.

use std::collections::BTreeMap;

use bodyguard_protocol::ProcessEntry;

/// Bytes of a command line that are told; a program can make its own as long as it likes.
const MAX_COMMAND: usize = 4_096;

struct Stat {
    parent: u32,
    name: String,
    state: char,
    /// Ticks after boot. With the number it names a process for good: numbers are used again.
    started: u64,
}

/// What runs below this process, by number.
pub(super) fn own() -> Vec<ProcessEntry> {
    let all = all();
    programs(&all, std::process::id()).into_iter().map(|(pid, stat)| entry(pid, stat)).collect()
}

/// The process below this one that has a number and started at a time.
pub(super) fn find(pid: u32, started: u64) -> Option<ProcessEntry> {
    let all = all();
    let stat = *programs(&all, std::process::id()).get(&pid)?;
    (stat.started == started).then(|| entry(pid, stat))
}

/// The process that has a number inside a sandbox, by the sandbox's process out here.
pub(super) fn inside(sandbox: u32, number: u32) -> Option<ProcessEntry> {
    let all = all();
    let below = below(&all, sandbox);
    let pid = *below.keys().find(|&&pid| number_inside(pid) == Some(number))?;
    Some(entry(pid, all.get(&pid)?))
}

/// How an action names a process.
fn target(pid: u32, started: u64) -> String {
    format!("process:{pid}:{started}")
}

/// The number and start that a target names, if it is one; no other spelling names them.
pub(super) fn parse_target(text: &str) -> Option<(u32, u64)> {
    let (pid, started) = text.strip_prefix("process:")?.split_once(':')?;
    let (pid, started) = (pid.parse().ok()?, started.parse().ok()?);
    (target(pid, started) == text).then_some((pid, started))
}

/// What is below a process without what only stands between it and the programs: `bwrap`, the first
/// process of each sandbox, and the inner program. These go by where they stand, because a program
/// can give itself any name.
fn programs(all: &BTreeMap<u32, Stat>, top: u32) -> BTreeMap<u32, &Stat> {
    let is_wrapper = |pid: u32, depth: usize| depth < 3 || (depth == 3 && number_inside(pid) == Some(2));
    let below = below(all, top).into_iter().filter(|&(pid, depth)| !is_wrapper(pid, depth));
    below.filter_map(|(pid, _)| Some((pid, all.get(&pid)?))).collect()
}

/// What is below a process, and how far.
fn below(all: &BTreeMap<u32, Stat>, top: u32) -> BTreeMap<u32, usize> {
    let mut found = BTreeMap::new();
    let mut ahead: Vec<(u32, usize)> = vec![(top, 0)];
    while let Some((parent, depth)) = ahead.pop() {
        let Some(since) = all.get(&parent).map(|stat| stat.started) else { continue };
        for (&pid, stat) in all.iter().filter(|(_, stat)| stat.parent == parent) {
            // A child that is older than its parent is the child of another that had this number.
            if stat.started >= since && found.insert(pid, depth + 1).is_none() {
                ahead.push((pid, depth + 1));
            }
        }
    }
    found
}

/// The number of a process in the innermost namespace that it is in.
fn number_inside(pid: u32) -> Option<u32> {
    let status = std::fs::read(format!("/proc/{pid}/status")).ok()?;
    let line = status.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"NSpid:"))?;
    std::str::from_utf8(line).ok()?.split_ascii_whitespace().last()?.parse().ok()
}

fn entry(pid: u32, stat: &Stat) -> ProcessEntry {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<_> = words.split(|&byte| byte == 0).filter(|word| !word.is_empty()).collect();
    let command = shorten(String::from_utf8_lossy(&words.join(&b' ')).into_owned());
    let state = match stat.state {
        'R' => "running",
        'D' => "waiting",
        'T' | 't' => "stopped",
        'Z' | 'X' => "ended",
        _ => "sleeping",
    };
    ProcessEntry {
        reference: String::new(),
        target: target(pid, stat.started),
        command: if command.is_empty() { stat.name.clone() } else { command },
        state: state.to_owned(),
        exit_code: None,
        signal: None,
        output_tail: None,
    }
}

/// A command line as it is told: whole, or its beginning and how much is left out.
pub(super) fn shorten(command: String) -> String {
    let end = command.floor_char_boundary(MAX_COMMAND);
    let left_out = command.len() - end;
    if left_out == 0 {
        return command;
    }
    format!("{}… [{left_out} bytes left out]", command.get(..end).unwrap_or_default())
}

/// Every process that can be seen. One that ends meanwhile is left out.
fn all() -> BTreeMap<u32, Stat> {
    let Ok(listing) = std::fs::read_dir("/proc") else { return BTreeMap::new() };
    let pids = listing.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Some((pid, parse(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)?))).collect()
}

/// `pid (name) state parent …`; the name may hold anything, brackets and bytes that aren't UTF-8 too.
fn parse(stat: &[u8]) -> Option<Stat> {
    let stat = String::from_utf8_lossy(stat);
    let (before, after) = stat.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    let mut fields = after.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    // The parent was field 4; the start is field 22.
    let started = fields.nth(17)?.parse().ok()?;
    Some(Stat { parent, name: name.to_owned(), state, started })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(parent: u32, started: u64) -> Stat {
        Stat { parent, name: String::new(), state: 'S', started }
    }

    #[test]
    fn prc_04_a_name_with_brackets_does_not_shift_the_fields() {
        let tail = "7 12 12 0 -1 5 6 7 8 9 10 11 12 13 20 0 1 0 777 0";
        let one = parse(format!("12 (a) R 1 (b)) S {tail}").as_bytes()).unwrap();
        assert_eq!((one.parent, one.name.as_str(), one.state, one.started), (7, "a) R 1 (b)", 'S', 777));
        let odd = parse(&[b"12 (\xff\n) Z ", tail.as_bytes()].concat()).unwrap();
        assert_eq!((odd.parent, odd.name.as_str(), odd.state), (7, "\u{fffd}\n", 'Z'));
        assert!(parse(b"12 nonsense").is_none());
    }

    #[test]
    fn prc_02_only_one_spelling_names_a_process() {
        assert_eq!(parse_target("process:12:777"), Some((12, 777)));
        for other in
            ["process:012:7", "process:+1:7", "process:-1:7", "process:1.5:7", "process:12abc:7", "process:1", "1:7"]
        {
            assert_eq!(parse_target(other), None, "{other}");
        }
    }

    #[test]
    fn a_child_older_than_its_parent_belongs_to_another() {
        let all = BTreeMap::from([(10, stat(1, 50)), (11, stat(10, 60)), (12, stat(11, 60)), (13, stat(11, 59))]);
        assert_eq!(below(&all, 10), BTreeMap::from([(11, 1), (12, 2)]));
    }
}
