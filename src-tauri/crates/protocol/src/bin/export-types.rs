//! Writes what is generated from this crate: the window's TypeScript types to
//! `ui/src/rpc/generated.ts`, JSON Schemas and the contract to `schemas/`. With `--check` says whether
//! these files are current.

use std::path::Path;
use std::process::ExitCode;

use bodyguard_protocol::published;
use bodyguard_protocol::ui::{UiEvent, UiReply, UiRequest};
use serde_json::Value;
use ts_rs::{Config, TS, TypeVisitor};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../..");

#[derive(Default)]
struct Declarations(std::collections::BTreeMap<String, String>);

impl Declarations {
    fn add<T: TS + 'static + ?Sized>(&mut self) {
        let config = Config::default();
        let mut name = T::ident(&config);
        if let Some(bare) = name.find('<') {
            name.truncate(bare);
        }
        if T::output_path().is_none() || self.0.contains_key(&name) {
            return;
        }
        let docs = T::docs().unwrap_or_default();
        self.0.insert(name, format!("{docs}export {}", T::decl(&config)));
        T::visit_dependencies(self);
    }
}

impl TypeVisitor for Declarations {
    fn visit<T: TS + 'static + ?Sized>(&mut self) {
        self.add::<T>();
        T::visit_generics(self);
        T::visit_dependencies(self);
    }
}

fn types() -> String {
    let mut declarations = Declarations::default();
    declarations.add::<UiRequest>();
    declarations.add::<UiReply>();
    declarations.add::<UiEvent>();
    let body: Vec<String> = declarations.0.into_values().collect();
    let head = "// Generated from the crate bodyguard-protocol by `export-types`; don't edit.";
    format!("{head}\n\n{}\n", body.join("\n\n"))
}

/// Every generated file, by its path from the root of the repository.
fn files() -> Vec<(String, String)> {
    let pretty = |value: &Value| format!("{value:#}\n");
    let mut files = vec![
        ("ui/src/rpc/generated.ts".to_owned(), types()),
        ("schemas/body.os.contract.json".to_owned(), pretty(&published::contract())),
        ("schemas/body_os.embodiment.loop.json".to_owned(), pretty(&published::loop_manifest())),
    ];
    files.extend(
        published::SCHEMAS.iter().map(|(name, schema)| (format!("schemas/{name}.schema.json"), pretty(&schema()))),
    );
    files
}

fn main() -> ExitCode {
    let check_only = std::env::args().any(|arg| arg == "--check");
    let mut result = ExitCode::SUCCESS;
    for (name, text) in files() {
        let file = Path::new(ROOT).join(&name);
        if std::fs::read_to_string(&file).is_ok_and(|old| old == text) {
            continue;
        }
        let written = if check_only {
            Err("it is not current: run `cargo run -p bodyguard-protocol --bin export-types`".to_owned())
        } else {
            let folder = file.parent().map_or(Ok(()), std::fs::create_dir_all);
            folder.and_then(|()| std::fs::write(&file, text)).map_err(|error| error.to_string())
        };
        if let Err(why) = written {
            eprintln!("{name}: {why}");
            result = ExitCode::FAILURE;
        }
    }
    result
}
