//! The real window's page, read through `WebKitWebDriver`. For reading: a click by it decides
//! nothing, and tests make sure of that.

use crate::environment::Environment;
use crate::http_client::HttpRequest;
use crate::image::Image;
use crate::processes::end_child;
use crate::wait::poll;
use anyhow::{Context, Result, bail};
use base64::Engine;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";
const PATIENCE: Duration = Duration::from_secs(60);

/// A driver process and its session, which is deleted (and the app with it) on drop.
#[derive(Debug)]
pub struct WebDriver {
    driver: Child,
    address: String,
    session: Option<String>,
}

impl WebDriver {
    /// Starts a driver, and through it the program.
    ///
    /// # Errors
    /// If either doesn't start.
    pub fn start(environment: &Environment, binary: &Path, arguments: &[OsString], log: &File) -> Result<Self> {
        let mut new = Self::start_driver(environment, log)?;
        let arguments: Vec<_> = arguments.iter().map(|a| a.to_string_lossy()).collect();
        let capabilities = json!({ "capabilities": { "alwaysMatch": {
            "webkitgtk:browserOptions": { "binary": binary, "args": arguments }
        }}});
        let answer = new.call("POST", "/session", &capabilities, PATIENCE)?;
        let session = answer.get("sessionId").and_then(Value::as_str).context("no session")?;
        new.session = Some(session.to_owned());
        Ok(new)
    }

    fn start_driver(environment: &Environment, log: &File) -> Result<Self> {
        // The driver takes no port 0, so a free one is guessed; another may take it meanwhile.
        for _ in 0..5 {
            let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
            let mut driver = environment
                .command("WebKitWebDriver")
                .arg(format!("--port={port}"))
                .arg("--host=127.0.0.1")
                .env("TAURI_WEBVIEW_AUTOMATION", "true")
                // With it, WebKitGTK 2.50 never answers a request for a screenshot.
                .env_remove("WEBKIT_DISABLE_DMABUF_RENDERER")
                .stdin(Stdio::null())
                .stdout(log.try_clone()?)
                .stderr(log.try_clone()?)
                .process_group(0)
                .spawn()
                .context("start WebKitWebDriver (package webkit2gtk-driver)")?;
            let address = format!("127.0.0.1:{port}");
            let answers = poll(Duration::from_secs(10), || {
                if matches!(driver.try_wait(), Ok(Some(_))) {
                    return Some(false);
                }
                TcpStream::connect(&address).ok().map(|_| true)
            });
            if answers == Some(true) {
                return Ok(Self { driver, address, session: None });
            }
            end_child(&mut driver, Duration::from_secs(1));
        }
        bail!("WebKitWebDriver doesn't start")
    }

    /// The driver's process id; the app is its child.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.driver.id().cast_signed()
    }

    fn call(&self, method: &str, path: &str, body: &Value, patience: Duration) -> Result<Value> {
        let mut request =
            HttpRequest::new(method, path).header("Host", &self.address).header("Content-Type", "application/json");
        if method == "POST" {
            request = request.body(serde_json::to_vec(body)?);
        }
        let mut reply = request.send(&self.address, patience)?;
        let text = reply.text()?;
        let answer: Value =
            serde_json::from_str(&text).with_context(|| format!("{method} {path}: {} {text}", reply.status))?;
        let value = answer.get("value").cloned().unwrap_or_default();
        if reply.status != 200 {
            bail!("{method} {path}: {value}");
        }
        Ok(value)
    }

    fn in_session(&self, method: &str, path: &str, body: &Value) -> Result<Value> {
        let session = self.session.as_deref().context("no session")?;
        self.call(method, &format!("/session/{session}{path}"), body, PATIENCE)
    }

    /// The page's title.
    ///
    /// # Errors
    /// If the driver or the page is gone, as for all that follow.
    pub fn title(&self) -> Result<String> {
        text(&self.in_session("GET", "/title", &Value::Null)?)
    }

    /// The page's address.
    pub fn url(&self) -> Result<String> {
        text(&self.in_session("GET", "/url", &Value::Null)?)
    }

    fn elements(&self, css: &str) -> Result<Vec<String>> {
        let query = json!({ "using": "css selector", "value": css });
        let found = self.in_session("POST", "/elements", &query)?;
        let ids = found.as_array().into_iter().flatten();
        Ok(ids.filter_map(|element| Some(element.get(ELEMENT)?.as_str()?.to_owned())).collect())
    }

    fn element(&self, css: &str) -> Result<String> {
        let found = self.elements(css)?.into_iter().next();
        found.with_context(|| format!("nothing on the page matches {css:?}"))
    }

    /// How many elements match a CSS selector.
    pub fn count(&self, css: &str) -> Result<usize> {
        Ok(self.elements(css)?.len())
    }

    /// The visible text of the first element that matches.
    pub fn text(&self, css: &str) -> Result<String> {
        let element = self.element(css)?;
        text(&self.in_session("GET", &format!("/element/{element}/text"), &Value::Null)?)
    }

    /// The visible texts of all elements that match.
    pub fn texts(&self, css: &str) -> Result<Vec<String>> {
        self.elements(css)?
            .iter()
            .map(|id| text(&self.in_session("GET", &format!("/element/{id}/text"), &Value::Null)?))
            .collect()
    }

    /// Runs JavaScript (`return …`) in the page.
    pub fn script(&self, source: &str, arguments: &[Value]) -> Result<Value> {
        let body = json!({ "script": source, "args": arguments });
        self.in_session("POST", "/execute/sync", &body)
    }

    /// Clicks an element by WebDriver: a control that must decide nothing.
    pub fn click(&self, css: &str) -> Result<()> {
        let element = self.element(css)?;
        self.in_session("POST", &format!("/element/{element}/click"), &json!({}))?;
        Ok(())
    }

    /// Types into an element by WebDriver, as [`WebDriver::click`] clicks. `\u{e00a}` holds Alt
    /// down for what follows.
    pub fn type_into(&self, css: &str, keys: &str) -> Result<()> {
        let element = self.element(css)?;
        self.in_session("POST", &format!("/element/{element}/value"), &json!({ "text": keys }))?;
        Ok(())
    }

    /// Clicks a point of the page by WebDriver, also outside what it shows of itself.
    pub fn click_at(&self, x: i32, y: i32) -> Result<()> {
        let steps = json!([
            { "type": "pointerMove", "duration": 0, "x": x, "y": y, "origin": "viewport" },
            { "type": "pointerDown", "button": 0 },
            { "type": "pointerUp", "button": 0 },
        ]);
        let pointer = json!({ "type": "pointer", "id": "mouse", "actions": steps });
        self.in_session("POST", "/actions", &json!({ "actions": [pointer] }))?;
        Ok(())
    }

    /// Presses keys together by WebDriver, wherever the focus is, and lets them go in reverse.
    pub fn chord(&self, keys: &[char]) -> Result<()> {
        let step = |kind: &str, key: &char| json!({ "type": kind, "value": key.to_string() });
        let down = keys.iter().map(|key| step("keyDown", key));
        let up = keys.iter().rev().map(|key| step("keyUp", key));
        let keyboard = json!({ "type": "key", "id": "keyboard", "actions": down.chain(up).collect::<Vec<_>>() });
        self.in_session("POST", "/actions", &json!({ "actions": [keyboard] }))?;
        Ok(())
    }

    /// Waits until a JavaScript expression is true.
    ///
    /// # Errors
    /// If it isn't within `timeout`; the message has the page's text.
    pub fn wait_for(&self, expression: &str, timeout: Duration) -> Result<()> {
        let source = format!("return !!({expression})");
        let done = poll(timeout, || {
            let value = self.script(&source, &[]).ok()?;
            (value == json!(true)).then_some(())
        });
        match done {
            Some(()) => Ok(()),
            None => {
                bail!("not within {timeout:?}: {expression}; the page says: {}", self.text("body").unwrap_or_default())
            }
        }
    }

    /// What the page looks like, without the native parts of the window.
    ///
    /// # Errors
    /// If the page is gone or doesn't paint: see `WEBKIT_DISABLE_DMABUF_RENDERER` above, which a
    /// program may also set for itself.
    pub fn screenshot(&self) -> Result<Image> {
        let session = self.session.as_deref().context("no session")?;
        let path = format!("/session/{session}/screenshot");
        let encoded = text(&self.call("GET", &path, &Value::Null, Duration::from_secs(15))?)?;
        let png = base64::engine::general_purpose::STANDARD.decode(encoded)?;
        Image::from_png(&png)
    }
}

fn text(value: &Value) -> Result<String> {
    let text = value.as_str().map(str::to_owned);
    text.with_context(|| format!("not a text: {value}"))
}

impl Drop for WebDriver {
    fn drop(&mut self) {
        // A driver that is killed leaves the app behind; deleting the session ends it.
        if self.session.is_some() {
            let _ = self.in_session("DELETE", "", &Value::Null);
        }
        end_child(&mut self.driver, Duration::from_secs(2));
    }
}
