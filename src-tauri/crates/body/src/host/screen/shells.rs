//! Which windows run commands: what is typed there is a command that nothing contains.

use std::collections::BTreeMap;

/// Terminals, launchers, run dialogs, desktops and editors with a terminal, by window class in lower
/// case. A name also stands for the names that begin with it and a `-`, `.` or digit.
const APPS: [&str; 92] = [
    "aixterm",
    "alacritty",
    "albert",
    "aterm",
    "blackbox",
    "code",
    "code-oss",
    "codium",
    "com.mitchellh.ghostty",
    "contour",
    "cool-retro-term",
    "cosmic-term",
    "cursor",
    "deepin-terminal",
    "dmenu",
    "eclipse",
    "emacs",
    "eterm",
    "foot",
    "footclient",
    "geany",
    "ghostty",
    "gmrun",
    "gnome-builder",
    "gnome-shell",
    "gnome-terminal",
    "guake",
    "gvim",
    "hyper",
    "idea",
    "io.elementary.terminal",
    "jetbrains",
    "kate",
    "kdevelop",
    "kgx",
    "kitty",
    "konsole",
    "krunner",
    "kterm",
    "kupfer",
    "kwrite",
    "lxqt-runner",
    "lxterm",
    "lxterminal",
    "mate-panel",
    "mate-terminal",
    "mlterm",
    "neovide",
    "nvim-qt",
    "nxterm",
    "openbox",
    "org.gnome.builder",
    "org.gnome.console",
    "org.gnome.ptyxis",
    "org.kde.konsole",
    "org.kde.krunner",
    "org.wezfurlong.wezterm",
    "plasmashell",
    "ptyxis",
    "qterminal",
    "rio",
    "rofi",
    "roxterm",
    "rxvt",
    "sakura",
    "spyder",
    "st",
    "sublime_text",
    "synapse",
    "tabby",
    "termit",
    "terminal",
    "terminator",
    "terminology",
    "termite",
    "tilda",
    "tilix",
    "tym",
    "ulauncher",
    "urxvt",
    "uxterm",
    "vim",
    "vscodium",
    "warp",
    "wayst",
    "wezterm",
    "windsurf",
    "wofi",
    "xfce4-appfinder",
    "xfce4-panel",
    "xfce4-terminal",
    "xterm",
];

/// Further names whose windows are the desktop itself.
const DESKTOPS: [&str; 6] = ["caja", "nemo-desktop", "pcmanfm", "xfdesktop", "yakuake", "zed"];

/// What counts of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kin {
    pub(super) parent: u32,
    /// The terminal that it runs in; 0 for none.
    pub(super) terminal: i64,
}

/// Every process that can be seen.
pub(super) fn processes() -> BTreeMap<u32, Kin> {
    let Ok(listing) = std::fs::read_dir("/proc") else { return BTreeMap::new() };
    let pids = listing.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Some((pid, parse(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?))).collect()
}

/// `pid (name) state parent group session terminal …`; the name may hold brackets.
fn parse(stat: &str) -> Option<Kin> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    Some(Kin { parent, terminal: fields.nth(2)?.parse().ok()? })
}

/// Whether a window runs commands, by its classes (the names that X calls instance and class) and by
/// what its processes have started: a program in another terminal than its own is one that it shows.
/// A window that says nothing about itself counts as one that does.
pub(super) fn runs_commands(classes: &[String], pids: &[u32], processes: &BTreeMap<u32, Kin>) -> bool {
    classes.iter().all(String::is_empty)
        || classes.iter().any(|class| is_shell(&class.to_lowercase()))
        || pids.iter().any(|&pid| shows_a_terminal(pid, processes))
}

fn is_shell(class: &str) -> bool {
    APPS.iter().chain(&DESKTOPS).any(|app| {
        class.strip_prefix(app).is_some_and(|rest| {
            rest.chars().next().is_none_or(|next| matches!(next, '-' | '.' | '_') || next.is_ascii_digit())
        })
    })
}

fn shows_a_terminal(pid: u32, processes: &BTreeMap<u32, Kin>) -> bool {
    let own = processes.get(&pid).map_or(0, |kin| kin.terminal);
    let mut ahead = vec![pid];
    let mut seen = 0;
    while let Some(parent) = ahead.pop() {
        seen += 1;
        for (&child, kin) in processes.iter().filter(|(_, kin)| kin.parent == parent) {
            if kin.terminal != 0 && kin.terminal != own {
                return true;
            }
            // A listing is no snapshot, so that a reused number could close a ring.
            if seen < processes.len() {
                ahead.push(child);
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_class(class: &str) -> bool {
        runs_commands(&[class.to_owned()], &[], &BTreeMap::new())
    }

    #[test]
    fn inp_terminals_and_launchers_are_known_by_their_class_and_neighbours_are_not() {
        for class in
            ["XTerm", "Gnome-terminal", "gnome-terminal-server", "st-256color", "jetbrains-idea", "Code", "Rofi", ""]
        {
            assert!(by_class(class), "{class}");
        }
        for class in ["Firefox", "Mousepad", "Steam", "Stellarium", "Codeblocks2go", "Galculator", "Zenity"] {
            assert!(!by_class(class), "{class}");
        }
    }

    #[test]
    fn inp_a_window_whose_process_has_a_shell_in_a_terminal_runs_commands() {
        let kin = |parent, terminal| Kin { parent, terminal };
        // 10 is an unknown terminal with a shell on a terminal of its own; 20 was started from one.
        let all = BTreeMap::from([(10, kin(1, 0)), (11, kin(10, 34816)), (20, kin(11, 34816)), (21, kin(20, 34816))]);
        let class = ["Something".to_owned()];
        assert!(runs_commands(&class, &[10], &all));
        assert!(!runs_commands(&class, &[20], &all));
        assert!(!runs_commands(&class, &[99], &all));
    }

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        assert_eq!(parse("12 (a) R 1 (b)) S 7 12 12 34817 12"), Some(Kin { parent: 7, terminal: 34817 }));
        assert_eq!(parse("nonsense"), None);
    }
}
