//! What must not compile. Each refused example has a twin that compiles, so that it can't fail for
//! another reason than the one it is about.
//!
//! Rights can be taken apart by name and passed on:
//! ```
//! use bodyguard_policy::{Authorized, Decision, Presence, ViewScope};
//! fn takes(_: Authorized, _: ViewScope, _: Presence, _: Decision) {}
//! fn root_of(scope: &ViewScope) -> &str { scope.root() }
//! fn is_clone<T: Clone>() {}
//! is_clone::<bodyguard_protocol::Block>();
//! let _ = serde_json::to_string(&"something that can be written").unwrap();
//! let _ = |block: &bodyguard_protocol::Block| serde_json::to_string(block).unwrap();
//! let _ = || serde_json::from_str::<bodyguard_protocol::Block>("").unwrap();
//! ```
//!
//! They can't be made:
//! ```compile_fail,E0451
//! let _ = |mode| bodyguard_policy::ViewScope { mode, root: String::new() };
//! ```
//! ```compile_fail,E0624
//! let _ = |mode| bodyguard_policy::ViewScope::new(mode, "/");
//! ```
//! ```compile_fail,E0624
//! let _ = |block: &bodyguard_protocol::Block| bodyguard_policy::Authorized::by_block(block);
//! ```
//! ```compile_fail,E0624
//! let _ = |e: &bodyguard_policy::Expectation| bodyguard_policy::Authorized::unsigned_read(e, String::new());
//! ```
//! ```compile_fail,E0451
//! let _ = |ask_id, shown_digest| bodyguard_policy::Presence { ask_id, shown_digest, device: String::new() };
//! ```
//! ```compile_fail,E0624
//! use bodyguard_policy::{Decision, Request, Verdict};
//! let _ = |r: &Request<'_>, digest| Decision::new(r, digest, Verdict::Allow { rule: String::new() });
//! ```
//!
//! They can't be copied:
//! ```compile_fail,E0277
//! fn is_clone<T: Clone>() {}
//! is_clone::<bodyguard_policy::Authorized>();
//! ```
//! ```compile_fail,E0277
//! fn is_clone<T: Clone>() {}
//! is_clone::<bodyguard_policy::ViewScope>();
//! ```
//! ```compile_fail,E0277
//! fn is_clone<T: Clone>() {}
//! is_clone::<bodyguard_policy::Presence>();
//! ```
//!
//! They can't be used twice:
//! ```compile_fail,E0382
//! use bodyguard_policy::{Draft, Presence, Signer, issue_by_person};
//! let _ = |signer: &Signer, draft: Draft, presence: Presence, now| {
//!     let _ = issue_by_person(signer, draft.clone(), presence, "me", now, 1, [0; 16]);
//!     let _ = issue_by_person(signer, draft, presence, "me", now, 1, [0; 16]);
//! };
//! ```
//! ```
//! use bodyguard_policy::{Draft, Presence, Signer, issue_by_person};
//! let _ = |signer: &Signer, draft: Draft, presence: Presence, now| {
//!     let _ = issue_by_person(signer, draft.clone(), presence, "me", now, 1, [0; 16]);
//! };
//! ```
//!
//! They can't be written down or read back:
//! ```compile_fail,E0277
//! let _ = |right: &bodyguard_policy::Authorized| serde_json::to_string(right).unwrap();
//! ```
//! ```compile_fail,E0277
//! let _ = |scope: &bodyguard_policy::ViewScope| serde_json::to_string(scope).unwrap();
//! ```
//! ```compile_fail,E0277
//! let _ = |presence: &bodyguard_policy::Presence| serde_json::to_string(presence).unwrap();
//! ```
//! ```compile_fail,E0277
//! let _ = || serde_json::from_str::<bodyguard_policy::Authorized>("").unwrap();
//! ```
