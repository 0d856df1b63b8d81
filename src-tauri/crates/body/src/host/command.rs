//! Finding out what a `shell_exec` or `process_spawn` would run, before it does.

use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use bodyguard_protocol::action::{ProcessSpawn, ShellExec};
use bodyguard_protocol::{ActionType, Digest, ErrorCode, Fault, canonical_digest, escape_line};
use rustix::fs::FileType;
use serde_json::{Value, json};

use super::files::{Place, Root, fault_of, io_fault, read_at_most};
use super::inner::Spec;
use super::sandbox::{HOME, PATH};
use crate::{Program, Script};

const SHELL: &str = "/bin/sh";
const MAX_PROGRAM: u64 = 512 * 1024 * 1024;
const MAX_SCRIPTS: usize = 16;
const INTERPRETERS: [&str; 14] =
    ["sh", "bash", "dash", "zsh", "python", "python3", "node", "perl", "ruby", "php", "lua", "make", "source", "."];

/// What is to be started, as its action says it.
#[derive(Debug)]
pub(crate) struct Words<'a> {
    kind: ActionType,
    argv: Vec<String>,
    /// Where files may be named; for text, roughly its words.
    named: Vec<String>,
    env: &'a BTreeMap<String, String>,
}

impl<'a> Words<'a> {
    pub(crate) fn of_shell(shell: &'a ShellExec) -> Self {
        let (argv, named) = match (&shell.argv, &shell.command) {
            (Some(argv), _) => (argv.clone(), argv.clone()),
            (None, Some(text)) => (vec![SHELL.to_owned(), "-c".to_owned(), text.clone()], split_words(text)),
            (None, None) => (Vec::new(), Vec::new()),
        };
        Self { kind: ActionType::ShellExec, argv, named, env: &shell.env }
    }

    pub(crate) fn of_spawn(program: &str, spawn: &'a ProcessSpawn) -> Self {
        let argv: Vec<String> =
            std::iter::once(program).chain(spawn.args.iter().map(String::as_str)).map(str::to_owned).collect();
        Self { kind: ActionType::ProcessSpawn, named: argv.clone(), argv, env: &spawn.env }
    }
}

/// Where an action names what it starts, for refusals.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields {
    pub(crate) program: &'static str,
    pub(crate) cwd: &'static str,
}

impl Fields {
    pub(crate) const SHELL: Self = Self { program: "action.params.argv[0]", cwd: "action.target" };
    pub(crate) const SPAWN: Self = Self { program: "action.target", cwd: "action.params.cwd" };

    const fn of(kind: ActionType) -> Self {
        if matches!(kind, ActionType::ProcessSpawn) { Self::SPAWN } else { Self::SHELL }
    }
}

/// A command, resolved.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub(crate) program: Program,
    pub(crate) scripts: Vec<Script>,
    pub(crate) spec: Spec,
    pub(crate) binding: Value,
}

/// Digests of programs, by what changes with their content.
#[derive(Debug, Default)]
pub(crate) struct Programs(Mutex<HashMap<[i64; 6], Digest>>);

/// Resolves a command without running anything.
pub(crate) fn resolve(
    root: &Root,
    cwd: &Place,
    words: Words<'_>,
    env_allow: &BTreeMap<String, String>,
    processes: u64,
    known: &Programs,
) -> Result<Resolved, Fault> {
    let fields = Fields::of(words.kind);
    let env = environment(env_allow, words.env);
    let argv = words.argv;
    let name = argv.first().cloned().unwrap_or_default();
    let program = find(root, cwd, &name, &env, known).map_err(|fault| fault.at(fields.program))?;
    let scripts = scripts(root, cwd, &words.named);
    let folder = root.folder(cwd).map_err(|fault| fault.at(fields.cwd))?;
    let stat = rustix::fs::fstat(&folder).map_err(|e| fault_of(e, &cwd.absolute))?;
    // Device and inode as text: they may pass 2^53.
    let binding = json!({
        "type": words.kind,
        "cwd": { "path": cwd.absolute, "file": format!("{}:{}", stat.st_dev, stat.st_ino) },
        "program": { "path": program.path, "sha256": program.sha256 },
        "scripts": scripts,
        "env_sha256": canonical_digest(&env)?,
    });
    let goes_on = words.kind == ActionType::ProcessSpawn;
    let spec = Spec { program: program.path.clone(), argv, env, cwd: cwd.absolute.clone(), processes, goes_on };
    Ok(Resolved { program, scripts, spec, binding })
}

fn environment(env_allow: &BTreeMap<String, String>, own: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let base = [("PATH", PATH), ("HOME", HOME), ("LANG", "C.UTF-8"), ("TERM", "dumb"), ("USER", "sandbox")];
    let base = base.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
    base.chain(env_allow.clone()).chain(own.clone()).collect()
}

fn find(
    root: &Root,
    cwd: &Place,
    name: &str,
    env: &BTreeMap<String, String>,
    known: &Programs,
) -> Result<Program, Fault> {
    let candidates: Vec<String> = if name.contains('/') {
        vec![if name.starts_with('/') { name.to_owned() } else { format!("{}/{name}", cwd.absolute) }]
    } else {
        let path = env.get("PATH").map_or(PATH, String::as_str);
        path.split(':').filter(|folder| folder.starts_with('/')).map(|folder| format!("{folder}/{name}")).collect()
    };
    for candidate in &candidates {
        if let Some((path, sha256, inside_workspace)) = program_at(root, candidate, known)? {
            return Ok(Program { name: name.to_owned(), path, sha256, inside_workspace });
        }
    }
    let message = format!("there is no program `{}` where commands run", escape_line(name));
    Err(Fault::new(ErrorCode::ProgramNotFound, message)
        .hint("commands see /usr, /bin and the workspace; name a program there, or add its folder to PATH"))
}

/// The program at a path as the sandbox sees it, its digest, and whether it lies in the workspace.
fn program_at(root: &Root, path: &str, known: &Programs) -> Result<Option<(String, Digest, bool)>, Fault> {
    if let Ok(place) = root.resolve(path) {
        let Ok((file, stat)) = root.regular(&place) else { return Ok(None) };
        if stat.st_mode & 0o111 == 0 {
            return Err(not_executable(path));
        }
        let bytes = read_at_most(&file, 0, MAX_PROGRAM).map_err(|e| io_fault(&e, path))?;
        return Ok(Some((place.absolute, Digest::of(&bytes), true)));
    }
    // `/bin/ls` and its like lie in /usr; nothing else of the system is in the sandbox.
    let Ok(real) = std::fs::canonicalize(path) else { return Ok(None) };
    let Ok(meta) = real.metadata() else { return Ok(None) };
    if !real.starts_with("/usr") || !meta.is_file() {
        return Ok(None);
    }
    if meta.mode() & 0o111 == 0 {
        return Err(not_executable(path));
    }
    // The name it was called by stays, because programs such as busybox go by it.
    Ok(Some((path.to_owned(), known.digest(&real, &meta)?, false)))
}

fn not_executable(path: &str) -> Fault {
    Fault::new(ErrorCode::PermissionDenied, format!("{} isn't executable", escape_line(path)))
        .hint("name its interpreter, or make it executable")
}

impl Programs {
    fn digest(&self, path: &Path, meta: &std::fs::Metadata) -> Result<Digest, Fault> {
        let number = |n: u64| i64::from_ne_bytes(n.to_ne_bytes());
        let key = [number(meta.dev()), number(meta.ino()), number(meta.size()), meta.mtime(), meta.ctime(), {
            meta.mtime_nsec().wrapping_add(meta.ctime_nsec().wrapping_mul(1_000_000_000))
        }];
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(digest) = known.get(&key) {
            return Ok(digest.clone());
        }
        let text = path.to_string_lossy();
        let file = std::fs::File::open(path).map_err(|e| io_fault(&e, &text))?;
        let bytes = read_at_most(&file, 0, MAX_PROGRAM).map_err(|e| io_fault(&e, &text))?;
        let digest = Digest::of(&bytes);
        known.insert(key, digest.clone());
        Ok(digest)
    }
}

/// Files of the workspace that the words of a command name and that it would run: executable ones,
/// and those after an interpreter. Words are taken roughly, without expanding anything: what a script
/// loads in turn, and what stands in variables, isn't seen.
fn scripts(root: &Root, cwd: &Place, words: &[String]) -> Vec<Script> {
    let mut found: Vec<Script> = Vec::new();
    let mut interpreted = false;
    for word in words {
        if let Some(script) = script_at(root, cwd, word, interpreted)
            && !found.contains(&script)
            && found.len() < MAX_SCRIPTS
        {
            found.push(script);
        }
        let name = word.rsplit('/').next().unwrap_or(word);
        // Options stand between an interpreter and its script.
        interpreted = INTERPRETERS.contains(&name) || (interpreted && word.starts_with('-'));
    }
    found
}

fn split_words(text: &str) -> Vec<String> {
    let separator =
        |c: char| c.is_whitespace() || matches!(c, ';' | '&' | '|' | '(' | ')' | '<' | '>' | '`' | '"' | '\'');
    text.split(separator).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn script_at(root: &Root, cwd: &Place, word: &str, interpreted: bool) -> Option<Script> {
    let target = if word.starts_with('/') { word.to_owned() } else { format!("{}/{word}", cwd.absolute) };
    let place = root.resolve(&target).ok()?;
    let (file, stat) = root.regular(&place).ok()?;
    let runs = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
        && (interpreted || (stat.st_mode & 0o111 != 0 && word.contains('/')));
    if !runs {
        return None;
    }
    let bytes = read_at_most(&file, 0, MAX_PROGRAM).ok()?;
    Some(Script { path: place.absolute, sha256: Digest::of(&bytes) })
}
