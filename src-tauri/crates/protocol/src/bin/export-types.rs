//! Writes the window's TypeScript types to `ui/src/rpc/generated.ts`, or with `--check` says
//! whether that file is current.

use std::path::Path;
use std::process::ExitCode;

use bodyguard_protocol::ui::{UiEvent, UiReply, UiRequest};
use ts_rs::{Config, TS, TypeVisitor};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../ui/src/rpc/generated.ts");

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

fn main() -> ExitCode {
    let mut declarations = Declarations::default();
    declarations.add::<UiRequest>();
    declarations.add::<UiReply>();
    declarations.add::<UiEvent>();
    let body: Vec<String> = declarations.0.into_values().collect();
    let text = format!(
        "// Generated from the crate bodyguard-protocol by `export-types`; don't edit.\n\n{}\n",
        body.join("\n\n")
    );
    let file = Path::new(FILE);
    let current = std::fs::read_to_string(file).is_ok_and(|old| old == text);
    let check_only = std::env::args().any(|arg| arg == "--check");
    match (current, check_only) {
        (true, _) => ExitCode::SUCCESS,
        (false, true) => {
            eprintln!(
                "ui/src/rpc/generated.ts is not current: run `cargo run -p bodyguard-protocol --bin export-types`"
            );
            ExitCode::FAILURE
        }
        (false, false) => {
            match file.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(file, text)) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    eprintln!("can't write {FILE}: {error}");
                    ExitCode::FAILURE
                }
            }
        }
    }
}
