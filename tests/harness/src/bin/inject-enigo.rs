//! Clicks or types by the enigo library: `inject-enigo click X Y`, `inject-enigo key CHARACTER`.
//! A program of its own, because enigo takes its display and cookie from the environment.

use anyhow::{Context, Result, bail};
use enigo::{Button, Coordinate, Direction, Enigo, Key, Keyboard, Mouse, Settings};
use std::thread::sleep;
use std::time::Duration;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut enigo = Enigo::new(&Settings::default())?;
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["click", x, y] => {
            enigo.move_mouse(x.parse()?, y.parse()?, Coordinate::Abs)?;
            sleep(Duration::from_millis(30));
            enigo.button(Button::Left, Direction::Click)?;
        }
        ["key", text] => {
            let key = text.chars().next().context("no character")?;
            enigo.key(Key::Unicode(key), Direction::Click)?;
        }
        _ => bail!("usage: inject-enigo click X Y | key CHARACTER"),
    }
    // Input that is still on its way is lost with the connection.
    sleep(Duration::from_millis(50));
    Ok(())
}
