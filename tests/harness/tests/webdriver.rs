//! A real WebKit page is read through the driver, and nothing stays behind.

use anyhow::{Context, Result};
use harness::{Desktop, DesktopOptions, Person, Rgb, WebDriver, processes};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(10);

/// The small browser that comes with WebKitGTK.
fn mini_browser() -> Result<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib")?.flatten();
    let mut found = folders.map(|folder| folder.path().join("webkit2gtk-4.1/MiniBrowser"));
    found.find(|path| path.exists()).context("no MiniBrowser")
}

#[test]
fn a_page_is_read_and_the_browser_ends() -> Result<()> {
    let desktop = Desktop::with(DesktopOptions::bare())?;
    let log = std::fs::File::create(desktop.folder().join("driver.log"))?;
    let browser = mini_browser()?;
    let page = WebDriver::start(desktop.environment(), Path::new(&browser), &["--automation".into()], &log)?;
    let body = "<p>One &lt;b&gt;</p><p>Two</p><button onclick='document.title=arguments.length'>B</button>";
    let set = "document.body.style.background = '#1a7f37'; document.body.innerHTML = arguments[0]";
    page.script(set, &[json!(body)])?;
    assert_eq!(page.texts("p")?, ["One <b>", "Two"]);
    assert_eq!(page.count("button")?, 1);
    assert!(page.text("article").is_err());

    // The person sees the same page, and what the driver does.
    let mut person = Person::at(&desktop)?;
    let green = person.wait_for_colour(Rgb(0x1a, 0x7f, 0x37), 10_000, SOON)?;
    let seen = page.screenshot()?;
    assert_eq!(seen.at(seen.bounds().width / 2, seen.bounds().height / 2), Some(Rgb(0x1a, 0x7f, 0x37)));
    assert!(green.width <= seen.bounds().width);
    page.click("button")?;
    page.wait_for("document.title === '1'", SOON)?;
    assert!(page.wait_for("document.title === '2'", Duration::from_millis(100)).is_err());

    let driver = page.pid();
    let started = processes::descendants(driver);
    assert!(!started.is_empty());
    drop(page);
    harness::wait_until("all have ended", SOON, || !started.iter().any(processes::lives))
}
