//! A person at the desktop: sees its pixels, has a mouse and a keyboard, and nothing else.

use crate::bar_colours::{APPROVE, APPROVE_UNARMED, DENY, NEXT};
use crate::desktop::Desktop;
use crate::image::{Image, Region, Rgb};
use crate::ocr;
use crate::rfb::Rfb;
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// X keysyms of keys without a character.
#[allow(missing_docs)] // Each is the key of that name.
pub mod keysym {
    pub const BACKSPACE: u32 = 0xff08;
    pub const TAB: u32 = 0xff09;
    pub const RETURN: u32 = 0xff0d;
    pub const ESCAPE: u32 = 0xff1b;
    pub const HOME: u32 = 0xff50;
    pub const LEFT: u32 = 0xff51;
    pub const UP: u32 = 0xff52;
    pub const RIGHT: u32 = 0xff53;
    pub const DOWN: u32 = 0xff54;
    pub const PAGE_UP: u32 = 0xff55;
    pub const PAGE_DOWN: u32 = 0xff56;
    pub const END: u32 = 0xff57;
    pub const DELETE: u32 = 0xffff;
    pub const SHIFT: u32 = 0xffe1;
    pub const CONTROL: u32 = 0xffe3;
    pub const ALT: u32 = 0xffe9;
    pub const SUPER: u32 = 0xffeb;
    pub const SPACE: u32 = 0x20;

    /// F1 to F12.
    #[must_use]
    pub fn function(number: u32) -> u32 {
        0xffbd + number
    }

    /// The keysym of a character.
    #[must_use]
    pub fn of(character: char) -> u32 {
        match character {
            '\n' | '\r' => RETURN,
            '\t' => TAB,
            ' '..='~' | '\u{a0}'..='\u{ff}' => character.into(),
            _ => 0x0100_0000 | u32::from(character),
        }
    }
}

/// A mouse button.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Button {
    /// The left one.
    Left = 1,
    /// The wheel pressed.
    Middle = 2,
    /// The right one.
    Right = 4,
}

/// The least size of a bar button's background; smaller spots of its colour are something else.
const BUTTON_PIXELS: usize = 300;
/// How far above the bar's buttons the request's text is, in pixels.
const READING_ABOVE: i32 = 300;

/// A person at a desktop, through VNC.
#[derive(Debug)]
pub struct Person {
    rfb: Rfb,
    at: (i32, i32),
    buttons: u8,
    /// Between two steps of a movement, two keys, and pressing and releasing.
    pub pace: Duration,
}

impl Person {
    /// Sits down at a virtual desktop.
    ///
    /// # Errors
    /// If its VNC server can't be reached.
    pub fn at(desktop: &Desktop) -> Result<Self> {
        Self::connect(desktop.vnc_socket(), desktop.vnc_password())
    }

    /// Sits down at whatever desktop a VNC socket shows.
    ///
    /// # Errors
    /// If it can't be reached or the password is wrong.
    pub fn connect(socket: &Path, password: Option<&str>) -> Result<Self> {
        Ok(Self { rfb: Rfb::connect(socket, password)?, at: (0, 0), buttons: 0, pace: Duration::from_millis(8) })
    }

    /// Looks at the whole screen.
    ///
    /// # Errors
    /// If the connection broke.
    pub fn screenshot(&mut self) -> Result<Image> {
        self.rfb.screenshot()
    }

    /// Saves what is seen now as PNG.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn save_screenshot(&mut self, path: impl AsRef<Path>) -> Result<()> {
        self.screenshot()?.save_png(path)
    }

    fn send_pointer(&mut self) -> Result<()> {
        let (width, height) = self.rfb.size();
        let x = self.at.0.clamp(0, i32::from(width) - 1) as u16;
        let y = self.at.1.clamp(0, i32::from(height) - 1) as u16;
        self.rfb.pointer(x, y, self.buttons)
    }

    /// Moves the pointer there in a few steps.
    ///
    /// # Errors
    /// If the connection broke, as for all that follow.
    pub fn move_to(&mut self, x: i32, y: i32) -> Result<()> {
        const STEPS: i32 = 6;
        let (from_x, from_y) = self.at;
        for step in 1..=STEPS {
            self.at = (from_x + (x - from_x) * step / STEPS, from_y + (y - from_y) * step / STEPS);
            self.send_pointer()?;
            sleep(self.pace);
        }
        Ok(())
    }

    /// Presses a button where the pointer is, and keeps it down.
    pub fn press(&mut self, button: Button) -> Result<()> {
        self.buttons |= button as u8;
        self.send_pointer()?;
        sleep(self.pace);
        Ok(())
    }

    /// Releases a button.
    pub fn release(&mut self, button: Button) -> Result<()> {
        self.buttons &= !(button as u8);
        self.send_pointer()?;
        sleep(self.pace);
        Ok(())
    }

    /// Goes there and clicks left.
    pub fn click(&mut self, x: i32, y: i32) -> Result<()> {
        self.click_with(Button::Left, x, y)
    }

    /// Goes there and clicks a button.
    pub fn click_with(&mut self, button: Button, x: i32, y: i32) -> Result<()> {
        self.move_to(x, y)?;
        self.press(button)?;
        sleep(Duration::from_millis(30));
        self.release(button)
    }

    /// Clicks the middle of a region.
    pub fn click_on(&mut self, region: Region) -> Result<()> {
        let (x, y) = region.centre();
        self.click(x, y)
    }

    /// Drags with the left button.
    pub fn drag(&mut self, from: (i32, i32), to: (i32, i32)) -> Result<()> {
        self.move_to(from.0, from.1)?;
        self.press(Button::Left)?;
        self.move_to(to.0, to.1)?;
        self.release(Button::Left)
    }

    /// Turns the wheel: `notches` down, or up if negative.
    pub fn wheel(&mut self, x: i32, y: i32, notches: i32) -> Result<()> {
        const UP: u8 = 8;
        const DOWN: u8 = 16;
        self.move_to(x, y)?;
        let bit = if notches < 0 { UP } else { DOWN };
        for _ in 0..notches.abs() {
            self.buttons |= bit;
            self.send_pointer()?;
            self.buttons &= !bit;
            self.send_pointer()?;
            sleep(self.pace);
        }
        Ok(())
    }

    /// Presses a key and keeps it down.
    pub fn key_down(&mut self, keysym: u32) -> Result<()> {
        self.rfb.key(keysym, true)?;
        sleep(self.pace);
        Ok(())
    }

    /// Releases a key.
    pub fn key_up(&mut self, keysym: u32) -> Result<()> {
        self.rfb.key(keysym, false)?;
        sleep(self.pace);
        Ok(())
    }

    /// Presses and releases a key.
    pub fn key(&mut self, keysym: u32) -> Result<()> {
        self.key_down(keysym)?;
        self.key_up(keysym)
    }

    /// Presses keys one after the other and releases them in reverse: `[CONTROL, of('s')]`.
    pub fn chord(&mut self, keysyms: &[u32]) -> Result<()> {
        for key in keysyms {
            self.key_down(*key)?;
        }
        for key in keysyms.iter().rev() {
            self.key_up(*key)?;
        }
        Ok(())
    }

    /// Types text, any Unicode; a newline is Return.
    pub fn type_text(&mut self, text: &str) -> Result<()> {
        for character in text.chars() {
            self.key(keysym::of(character))?;
        }
        Ok(())
    }

    /// Looks again and again until `see` finds something.
    ///
    /// # Errors
    /// If it doesn't within `timeout`; the message names a saved picture of what was seen last.
    pub fn wait_for<T>(
        &mut self,
        what: &str,
        timeout: Duration,
        mut see: impl FnMut(&Image) -> Option<T>,
    ) -> Result<T> {
        let end = Instant::now() + timeout;
        loop {
            let image = self.screenshot()?;
            if let Some(found) = see(&image) {
                return Ok(found);
            }
            if Instant::now() >= end {
                let saved = image.save_artifact(what)?;
                bail!("the person doesn't see within {timeout:?}: {what}; sees {saved:?}");
            }
            sleep(Duration::from_millis(120));
        }
    }

    /// Waits until the screen has stood still for `still`; what it then shows.
    ///
    /// # Errors
    /// If it keeps changing for `timeout`.
    pub fn wait_still(&mut self, still: Duration, timeout: Duration) -> Result<Image> {
        let mut last = self.screenshot()?;
        let mut since = Instant::now();
        self.wait_for("a screen that stands still", timeout, |image| {
            if image.difference(&last) > 0 {
                last = image.clone();
                since = Instant::now();
            }
            (since.elapsed() >= still).then(|| image.clone())
        })
    }

    /// Waits for an area of exactly this colour of at least `least_pixels`; the largest.
    ///
    /// # Errors
    /// If it doesn't appear within `timeout`.
    pub fn wait_for_colour(&mut self, colour: Rgb, least_pixels: usize, timeout: Duration) -> Result<Region> {
        self.wait_for(&format!("{colour:?}"), timeout, |image| image.find_colour(colour, least_pixels).first().copied())
    }

    /// Where an armed Approve button is now.
    pub fn find_approve(&mut self) -> Result<Option<Region>> {
        Ok(self.find_button(APPROVE)?.first().copied())
    }

    /// Where a Deny button is now.
    pub fn find_deny(&mut self) -> Result<Option<Region>> {
        Ok(self.find_button(DENY)?.first().copied())
    }

    fn find_button(&mut self, colour: Rgb) -> Result<Vec<Region>> {
        Ok(self.screenshot()?.find_colour(colour, BUTTON_PIXELS))
    }

    /// Waits until Approve is armed and clicks it.
    ///
    /// # Errors
    /// If it doesn't become so within `timeout`.
    pub fn approve(&mut self, timeout: Duration) -> Result<()> {
        let button = self.read_until_armed(timeout)?;
        self.click_on(button)
    }

    /// Reads the request to its end, by the wheel where it doesn't fit, until Approve is armed;
    /// where Approve is.
    ///
    /// # Errors
    /// If it doesn't become so within `timeout`.
    pub fn read_until_armed(&mut self, timeout: Duration) -> Result<Region> {
        let end = Instant::now() + timeout;
        while Instant::now() < end {
            let turn = Duration::from_secs(3).min(end - Instant::now());
            let seen = self.wait_for("an Approve button", turn, |image| {
                let armed = image.find_colour(APPROVE, BUTTON_PIXELS).first().copied();
                armed.map(|region| (region, true)).or_else(|| {
                    let unarmed = image.find_colour(APPROVE_UNARMED, BUTTON_PIXELS).first().copied();
                    unarmed.map(|region| (region, false))
                })
            });
            match seen {
                Ok((region, true)) => return Ok(region),
                Ok((region, false)) => {
                    sleep(Duration::from_millis(1500));
                    if let Some(armed) = self.find_approve()? {
                        return Ok(armed);
                    }
                    let (x, y) = region.centre();
                    self.wheel(x, y - READING_ABOVE, 20)?;
                }
                Err(_) => {}
            }
        }
        self.wait_for_colour(APPROVE, BUTTON_PIXELS, Duration::ZERO).context("an armed Approve button")
    }

    /// Waits for Deny and clicks it.
    ///
    /// # Errors
    /// If it doesn't appear within `timeout`.
    pub fn deny(&mut self, timeout: Duration) -> Result<()> {
        self.wait_for_colour(DENY, BUTTON_PIXELS, timeout).context("a Deny button")?;
        // The bar ignores what comes right after it was raised; and nobody decides that fast.
        sleep(Duration::from_millis(1500));
        let button = self.wait_for_colour(DENY, BUTTON_PIXELS, timeout).context("a Deny button")?;
        self.click_on(button)
    }

    /// Waits for the page's button to the next request and clicks it.
    ///
    /// # Errors
    /// If it doesn't appear within `timeout`.
    pub fn next_request(&mut self, timeout: Duration) -> Result<()> {
        let button = self.wait_for_colour(NEXT, 8 * BUTTON_PIXELS, timeout).context("a button to the next request")?;
        self.click_on(button)
    }

    /// Reads the text of a region.
    ///
    /// # Errors
    /// If tesseract isn't there.
    pub fn read_text(&mut self, region: Region) -> Result<String> {
        ocr::read(&self.screenshot()?.crop(region))
    }

    /// Reads the whole screen.
    ///
    /// # Errors
    /// If tesseract isn't there.
    pub fn read_screen(&mut self) -> Result<String> {
        ocr::read(&self.screenshot()?)
    }

    /// Where words stand on the screen: the first place, compared without case.
    ///
    /// # Errors
    /// If tesseract isn't there.
    pub fn find_text(&mut self, words: &str) -> Result<Option<Region>> {
        ocr::find(&self.screenshot()?, words)
    }

    /// Waits until words can be read somewhere; where.
    ///
    /// # Errors
    /// If they can't within `timeout`; the message says what was read instead.
    pub fn wait_for_text(&mut self, words: &str, timeout: Duration) -> Result<Region> {
        let end = Instant::now() + timeout;
        let mut last = None;
        loop {
            let image = self.screenshot()?;
            // Reading takes a second of processor time: only what is new is read.
            if last.as_ref() != Some(&image) {
                if let Some(region) = ocr::find(&image, words)? {
                    return Ok(region);
                }
                last = Some(image);
            }
            if Instant::now() >= end {
                let Some(image) = last else { continue };
                let saved = image.save_artifact(words)?;
                let read = ocr::read(&image)?;
                bail!("the person doesn't read {words:?} within {timeout:?} ({saved:?}): {read}");
            }
            sleep(Duration::from_millis(100));
        }
    }
}
