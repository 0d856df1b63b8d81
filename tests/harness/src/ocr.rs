//! Reading text off the screen, with tesseract.

use crate::image::{Image, Region};
use anyhow::{Context, Result, bail};
use std::io::Write;
use std::process::{Command, Stdio};

/// Screen fonts are smaller than what tesseract is made for.
const SCALE: usize = 2;

/// A word on the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// What it says.
    pub text: String,
    /// Where it stands.
    pub region: Region,
    /// Number of its line, counted from the top of the page.
    pub line: usize,
}

/// The text of a picture, line by line.
///
/// # Errors
/// If tesseract isn't installed or fails.
pub fn read(image: &Image) -> Result<String> {
    let mut text = String::new();
    let mut line = 0;
    for word in words(image)? {
        if !text.is_empty() {
            text.push(if word.line == line { ' ' } else { '\n' });
        }
        line = word.line;
        text.push_str(&word.text);
    }
    Ok(text)
}

/// Where words stand one after the other in a line, compared without case and without the
/// punctuation around them; `None` if nowhere.
///
/// # Errors
/// As [`read`].
pub fn find(image: &Image, wanted: &str) -> Result<Option<Region>> {
    let words = words(image)?;
    let wanted: Vec<String> = wanted.split_whitespace().map(bare).collect();
    if wanted.is_empty() {
        bail!("no words to look for");
    }
    Ok(words
        .windows(wanted.len())
        .find(|seen| {
            let same_line = seen.iter().all(|word| word.line == seen[0].line);
            same_line && seen.iter().zip(&wanted).all(|(s, w)| bare(&s.text) == *w)
        })
        .and_then(|seen| seen.iter().map(|word| word.region).reduce(Region::union)))
}

fn bare(word: &str) -> String {
    let trimmed = word.trim_matches(|c: char| !c.is_alphanumeric());
    // A word of punctuation only is kept as it is.
    let kept = if trimmed.is_empty() { word } else { trimmed };
    kept.to_lowercase()
}

/// All words of a picture, in reading order.
///
/// # Errors
/// As [`read`].
pub fn words(image: &Image) -> Result<Vec<Word>> {
    if image.width == 0 || image.height == 0 {
        return Ok(Vec::new());
    }
    let table = tesseract(&enlarged_grey(image))?;
    let mut words = Vec::new();
    let mut lines: Vec<[String; 3]> = Vec::new();
    for row in table.lines().skip(1) {
        // level page block paragraph line word left top width height confidence text
        let cells: Vec<&str> = row.split('\t').collect();
        let ["5", _, block, paragraph, line, _, left, top, width, height, _, text] = cells[..] else {
            continue;
        };
        if text.trim().is_empty() {
            continue;
        }
        let key = [block, paragraph, line].map(str::to_owned);
        let line = lines.iter().position(|k| *k == key).unwrap_or_else(|| {
            lines.push(key);
            lines.len() - 1
        });
        let number = |cell: &str| -> Result<i32> { Ok(cell.parse::<i32>()? / SCALE as i32) };
        words.push(Word {
            text: text.to_owned(),
            region: Region::new(number(left)?, number(top)?, number(width)?, number(height)?),
            line,
        });
    }
    Ok(words)
}

fn tesseract(picture: &[u8]) -> Result<String> {
    let mut child = Command::new("tesseract")
        .args(["stdin", "stdout", "--dpi", "192", "--psm", "11", "tsv"])
        // Its own threads only get in each other's way.
        .env("OMP_THREAD_LIMIT", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("start tesseract (package tesseract-ocr)")?;
    // It reads all of its input before it writes.
    child.stdin.take().context("no stdin")?.write_all(picture).context("write to tesseract")?;
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!("tesseract ended with {}", output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A PGM picture of how much each pixel differs from the background around it: dark text on
/// white, whichever way it was on the screen. Each pixel is `SCALE` times as large, in soft steps.
fn enlarged_grey(image: &Image) -> Vec<u8> {
    let grey: Vec<u8> = image
        .data
        .chunks_exact(3)
        .map(|p| ((u32::from(p[0]) * 3 + u32::from(p[1]) * 6 + u32::from(p[2])) / 10) as u8)
        .collect();
    let mut plain = without_background(&grey, image.width, image.height);
    remove_large(&mut plain, image.width);
    let (width, height) = (image.width * SCALE, image.height * SCALE);
    let mut file = format!("P5 {width} {height} 255\n").into_bytes();
    file.reserve(width * height);
    for y in 0..image.height {
        let row = &plain[y * image.width..(y + 1) * image.width];
        let below = (y + 1).min(image.height - 1) * image.width;
        let below = &plain[below..below + image.width];
        for next in [row, below] {
            for x in 0..image.width {
                let right = (x + 1).min(image.width - 1);
                let here = (u16::from(row[x]) + u16::from(next[x])) / 2;
                let there = (u16::from(row[right]) + u16::from(next[right])) / 2;
                // Both are averages of bytes.
                file.push(here as u8);
                file.push(((here + there) / 2) as u8);
            }
        }
    }
    file
}

/// White where a pixel has the most common grey of its surroundings, darker the more it differs.
fn without_background(grey: &[u8], width: usize, height: usize) -> Vec<u8> {
    const TILE: usize = 8;
    const AROUND: usize = 12;
    let mut plain = vec![255; grey.len()];
    for top in (0..height).step_by(TILE) {
        for left in (0..width).step_by(TILE) {
            let mut counts = [0u32; 256];
            let (last_y, last_x) = ((top + TILE + AROUND).min(height), (left + TILE + AROUND).min(width));
            for y in (top.saturating_sub(AROUND)..last_y).step_by(2) {
                for x in (left.saturating_sub(AROUND)..last_x).step_by(2) {
                    counts[usize::from(grey[y * width + x])] += 1;
                }
            }
            let common = (0u8..=255).max_by_key(|g| counts[usize::from(*g)]);
            let background = common.unwrap_or(255);
            let range = u32::from(background.max(255 - background));
            for y in top..(top + TILE).min(height) {
                for at in y * width + left..y * width + (left + TILE).min(width) {
                    let apart = u32::from(grey[at].abs_diff(background)) * 255 / range;
                    plain[at] = 255 - apart.min(255) as u8;
                }
            }
        }
    }
    plain
}

/// Whitens connected areas that are larger than letters: frames, lines, icons, edges.
fn remove_large(plain: &mut [u8], width: usize) {
    const INK: u8 = 200;
    const TALLEST: usize = 32;
    const WIDEST: usize = 80;
    let mut open: Vec<bool> = plain.iter().map(|g| *g < INK).collect();
    for start in 0..open.len() {
        if !open[start] {
            continue;
        }
        open[start] = false;
        let mut area = vec![start];
        let (mut left, mut right) = (start % width, start % width);
        let mut done = 0;
        while let Some(&at) = area.get(done) {
            done += 1;
            let x = at % width;
            (left, right) = (left.min(x), right.max(x));
            let near =
                [(x > 0).then(|| at - 1), (x + 1 < width).then_some(at + 1), at.checked_sub(width), Some(at + width)];
            for next in near.into_iter().flatten() {
                if open.get(next) == Some(&true) {
                    open[next] = false;
                    area.push(next);
                }
            }
        }
        let bottom = area.iter().max().map_or(0, |at| at / width);
        if bottom - start / width >= TALLEST || right - left >= WIDEST {
            for at in area {
                plain[at] = 255;
            }
        }
    }
}
