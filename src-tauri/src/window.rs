//! The one window.

use std::path::Path;

use gtk::glib::prelude::ObjectExt;
use tauri::webview::NewWindowResponse;
use tauri::{AppHandle, Manager, Url, WebviewUrl, WebviewWindow, WebviewWindowBuilder};

/// The label of the one window and its page.
pub(crate) const MAIN: &str = "main";

/// Makes the window, hidden: it is shown when the bar is in it.
///
/// # Errors
/// If WebKit can't be started.
pub(crate) fn create(app: &AppHandle, data_dir: &Path) -> tauri::Result<WebviewWindow> {
    let (width, height) = size(app);
    WebviewWindowBuilder::new(app, MAIN, WebviewUrl::App("index.html".into()))
        .title("Bodyguard")
        .inner_size(width, height)
        .min_inner_size(480.0, 320.0)
        .visible(false)
        .devtools(false)
        // What the page remembers of its looks; custom schemes aren't cached on disk.
        .data_directory(data_dir.join("webview"))
        .on_navigation(is_ours)
        .on_new_window(|_, _| NewWindowResponse::Deny)
        .on_download(|_, _| false)
        .build()
}

/// A comfortable size that fits the screen with its frame: a window that reaches beyond the screen
/// can't be seen whole, and so decides nothing.
fn size(app: &AppHandle) -> (f64, f64) {
    const ROOM: f64 = 70.0;
    let (width, height) = (1120.0, 720.0);
    match app.primary_monitor() {
        Ok(Some(monitor)) => {
            let screen = monitor.size().to_logical::<f64>(monitor.scale_factor());
            (f64::min(width, screen.width - ROOM), f64::min(height, screen.height - ROOM))
        }
        _ => (width, height),
    }
}

/// A content security policy doesn't stop a page from going elsewhere; this does.
fn is_ours(url: &Url) -> bool {
    url.scheme() == "tauri" && url.host_str() == Some("localhost")
}

/// Follows the page's process: when it dies, nothing is shown any more, so nothing can be decided.
///
/// # Errors
/// If there is no page.
pub(crate) fn watch_page(window: &WebviewWindow) -> tauri::Result<()> {
    let app = window.app_handle().clone();
    window.with_webview(move |page| {
        let page = page.inner();
        page.connect("web-process-terminated", false, move |_| {
            tracing::error!("the page's process ended; it is started again");
            crate::app::hide_ask(&app);
            if let Some(window) = app.get_webview_window(MAIN)
                && let Err(error) = window.reload()
            {
                tracing::error!(%error, "the page can't be loaded again");
            }
            None
        });
    })
}

/// Shows the window and brings it to the front, because the person asked for it.
pub(crate) fn show(app: &AppHandle) {
    let Some(window) = app.get_webview_window(MAIN) else { return };
    let shown = window.show().and_then(|()| window.unminimize()).and_then(|()| window.set_focus());
    if let Err(error) = shown {
        tracing::warn!(%error, "the window can't be shown");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_can_go_nowhere_else() {
        let ours = |text: &str| is_ours(&text.parse().unwrap());
        assert!(ours("tauri://localhost/index.html#/traces"));
        for other in [
            "https://example.org/",
            "http://localhost/",
            "tauri://evil/",
            "file:///etc/passwd",
            "data:text/html,x",
            "about:blank",
            "bgblob://localhost/x",
            "javascript:alert(1)",
        ] {
            assert!(!ours(other), "{other}");
        }
    }
}
