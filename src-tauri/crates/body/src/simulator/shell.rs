//! A shell of six words, without expansion, pipes or redirection.

use bodyguard_protocol::action::ShellExec;
use bodyguard_protocol::{ErrorCode, Fault, escape_line};
use serde_json::{Value, json};

use super::world::World;

const BUILTINS: [&str; 6] = ["echo", "cat", "true", "false", "pwd", "ls"];

pub(super) struct Ran {
    pub(super) exit_code: i32,
    stdout: String,
    stderr: String,
}

impl Ran {
    /// What it wrote, as a program whose streams are kept together.
    pub(super) fn output(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    pub(super) fn observed(&self, shell: &ShellExec, cwd: &str) -> Value {
        let info = |text: &str| {
            json!({
                "encoding": "utf8",
                "binary": false,
                "bytes_seen": text.len(),
                "bytes_kept": text.len(),
                "truncated": false,
                "left_out_at": null,
            })
        };
        json!({
            "stdout": self.stdout,
            "stdout_info": info(&self.stdout),
            "stderr": self.stderr,
            "stderr_info": info(&self.stderr),
            "stdin": if shell.stdin.is_some() { "text" } else { "empty" },
            "cwd": cwd,
            "exit_code": self.exit_code,
            "signal": null,
            "survivors_ended": [],
            "runs_later_created": [],
        })
    }
}

/// The words of a command. Quotes group; anything else that a real shell would interpret is refused,
/// because to take it literally would be to run something else than was asked.
pub(super) fn argv(shell: &ShellExec) -> Result<Vec<String>, Fault> {
    let text = match (&shell.argv, &shell.command) {
        (Some(argv), _) => return Ok(argv.clone()),
        (None, Some(text)) => text,
        (None, None) => return Ok(Vec::new()),
    };
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in text.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (Some('\''), c) => word.get_or_insert_default().push(c),
            (_, '|' | '&' | ';' | '<' | '>' | '$' | '`' | '\\' | '*' | '?' | '(' | ')' | '#') => {
                let message = format!("the simulated shell does not know `{c}`");
                return Err(Fault::new(ErrorCode::NotYetSupported, message).at("action.params.command"));
            }
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

/// The builtin that a command names.
pub(super) fn builtin(argv: &[String]) -> Result<&str, Fault> {
    let name = argv.first().map(String::as_str).unwrap_or_default();
    let known = BUILTINS.iter().find(|builtin| **builtin == name);
    known.copied().ok_or_else(|| {
        Fault::new(ErrorCode::ProgramNotFound, format!("there is no program `{}` in the simulation", escape_line(name)))
            .at("action.params.argv[0]")
            .hint(format!("it knows {}", BUILTINS.join(", ")))
    })
}

pub(super) fn run(world: &World, shell: &ShellExec, cwd: &str) -> Result<Ran, Fault> {
    run_words(world, &argv(shell)?, shell.stdin.as_deref(), cwd)
}

pub(super) fn run_words(world: &World, argv: &[String], stdin: Option<&str>, cwd: &str) -> Result<Ran, Fault> {
    let words = argv.get(1..).unwrap_or_default();
    let mut ran = Ran { exit_code: 0, stdout: String::new(), stderr: String::new() };
    match builtin(argv)? {
        "echo" => ran.stdout = format!("{}\n", words.join(" ")),
        "false" => ran.exit_code = 1,
        "pwd" => ran.stdout = format!("{cwd}\n"),
        "cat" if words.is_empty() => ran.stdout = stdin.unwrap_or_default().to_owned(),
        "cat" => {
            for word in words {
                match world.file(&at(cwd, word)) {
                    Ok(bytes) => ran.stdout.push_str(&String::from_utf8_lossy(bytes)),
                    Err(fault) => ran.fail("cat", &fault),
                }
            }
        }
        "ls" => {
            let here = [String::new()];
            for word in if words.is_empty() { &here } else { words } {
                match world.names(&at(cwd, word)) {
                    Ok(names) => ran.stdout.extend(names.iter().map(|name| format!("{name}\n"))),
                    Err(fault) => ran.fail("ls", &fault),
                }
            }
        }
        _ => {}
    }
    Ok(ran)
}

impl Ran {
    fn fail(&mut self, name: &str, fault: &Fault) {
        self.exit_code = 1;
        self.stderr.push_str(&format!("{name}: {}\n", fault.message));
    }
}

fn at(cwd: &str, word: &str) -> String {
    if word.starts_with('/') { word.to_owned() } else { format!("{cwd}/{word}") }
}
