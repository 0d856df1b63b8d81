//! What the black-box tests of Bodyguard stand on, never shipped: a virtual [`Desktop`], a
//! [`Person`] who sees and acts by VNC only, the ways of acting that are *not* a person
//! ([`injector`], [`accessibility`]), an [`agent`] that speaks MCP only, and the real [`App`].
//!
//! Nothing here calls into the product: every part talks to it as a person, an agent, or an
//! operating system would.

pub mod accessibility;
pub mod agent;
mod app;
pub mod bar_colours;
mod binaries;
mod desktop;
pub mod environment;
mod http_client;
mod image;
pub mod injector;
pub mod ocr;
mod person;
mod probe;
pub mod processes;
pub mod rfb;
mod services;
mod wait;
mod webdriver;
pub mod windows;
mod workspace;

pub use agent::http::HttpAgent;
pub use agent::stdio::StdioAgent;
pub use agent::{Agent, RpcError, ToolResult};
pub use app::{App, AppOptions, freeze, thaw};
pub use binaries::{binary, sibling_binary};
pub use desktop::{Desktop, DesktopOptions};
pub use environment::Environment;
pub use http_client::{HttpReply, HttpRequest};
pub use image::{Image, Region, Rgb};
pub use person::{Button, Person, keysym};
pub use probe::{Probe, ProbeEvent, ProbeKind};
pub use wait::{poll, wait_until};
pub use webdriver::WebDriver;
pub use windows::{WindowInfo, list_windows};
pub use workspace::Workspace;
