//! A picture of the screen, and what a person finds in it.

use anyhow::{Context, Result};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// A colour: red, green, blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rgb(pub u8, pub u8, pub u8);

/// A rectangle in pixels of the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Region {
    /// Left edge.
    pub x: i32,
    /// Top edge.
    pub y: i32,
    /// Width.
    pub width: i32,
    /// Height.
    pub height: i32,
}

impl Region {
    /// A rectangle from its corner and size.
    #[must_use]
    pub fn new(x: i32, y: i32, width: i32, height: i32) -> Self {
        Self { x, y, width, height }
    }

    /// The point in its middle.
    #[must_use]
    pub fn centre(self) -> (i32, i32) {
        (self.x + self.width / 2, self.y + self.height / 2)
    }

    /// Area in square pixels.
    #[must_use]
    pub fn area(self) -> i64 {
        i64::from(self.width) * i64::from(self.height)
    }

    /// True if the point lies inside.
    #[must_use]
    pub fn contains(self, x: i32, y: i32) -> bool {
        x >= self.x && y >= self.y && x < self.x + self.width && y < self.y + self.height
    }

    /// The smallest rectangle around both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        let (x, y) = (self.x.min(other.x), self.y.min(other.y));
        let right = (self.x + self.width).max(other.x + other.width);
        let bottom = (self.y + self.height).max(other.y + other.height);
        Self::new(x, y, right - x, bottom - y)
    }
}

/// An RGB picture, rows from the top, three bytes a pixel.
#[derive(Clone, PartialEq, Eq)]
pub struct Image {
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
    /// `width * height * 3` bytes.
    pub data: Vec<u8>,
}

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Image({}x{})", self.width, self.height)
    }
}

impl Image {
    /// The whole picture as a region.
    #[must_use]
    pub fn bounds(&self) -> Region {
        // Screens are far below 2^31 pixels wide.
        Region::new(0, 0, self.width as i32, self.height as i32)
    }

    /// The colour at a point; `None` outside.
    #[must_use]
    pub fn at(&self, x: i32, y: i32) -> Option<Rgb> {
        if !self.bounds().contains(x, y) {
            return None;
        }
        let start = (y as usize * self.width + x as usize) * 3;
        match self.data.get(start..start + 3) {
            Some([r, g, b]) => Some(Rgb(*r, *g, *b)),
            _ => None,
        }
    }

    /// A part of it, cut to what lies inside.
    #[must_use]
    pub fn crop(&self, region: Region) -> Self {
        let left = region.x.clamp(0, self.width as i32) as usize;
        let top = region.y.clamp(0, self.height as i32) as usize;
        let right = (region.x + region.width).clamp(left as i32, self.width as i32) as usize;
        let bottom = (region.y + region.height).clamp(top as i32, self.height as i32) as usize;
        let mut data = Vec::with_capacity((right - left) * (bottom - top) * 3);
        for row in top..bottom {
            let start = row * self.width;
            data.extend_from_slice(&self.data[(start + left) * 3..(start + right) * 3]);
        }
        Self { width: right - left, height: bottom - top, data }
    }

    /// Bounding boxes of the connected areas of exactly this colour that have at least
    /// `least_pixels` pixels of it, largest first. Text on a button leaves holes, no more.
    #[must_use]
    pub fn find_colour(&self, colour: Rgb, least_pixels: usize) -> Vec<Region> {
        let wanted = [colour.0, colour.1, colour.2];
        let mut open: Vec<bool> = self.data.chunks_exact(3).map(|p| p == wanted).collect();
        let mut found = Vec::new();
        for start in 0..open.len() {
            if open[start] {
                let (region, pixels) = self.flood(&mut open, start);
                if pixels >= least_pixels {
                    found.push((pixels, region));
                }
            }
        }
        found.sort_by_key(|(pixels, _)| std::cmp::Reverse(*pixels));
        found.into_iter().map(|(_, region)| region).collect()
    }

    /// Clears the connected area at `start` from `open`; its bounding box and pixel count.
    fn flood(&self, open: &mut [bool], start: usize) -> (Region, usize) {
        let mut region = Region::new((start % self.width) as i32, (start / self.width) as i32, 1, 1);
        let mut pixels = 0;
        let mut stack = vec![start];
        open[start] = false;
        while let Some(at) = stack.pop() {
            pixels += 1;
            let (x, y) = (at % self.width, at / self.width);
            region = region.union(Region::new(x as i32, y as i32, 1, 1));
            let near = [
                (x > 0).then(|| at - 1),
                (x + 1 < self.width).then(|| at + 1),
                (y > 0).then(|| at - self.width),
                (y + 1 < self.height).then(|| at + self.width),
            ];
            for next in near.into_iter().flatten() {
                if open[next] {
                    open[next] = false;
                    stack.push(next);
                }
            }
        }
        (region, pixels)
    }

    /// How many pixels differ from another picture of the same size; all of them if the sizes
    /// differ.
    #[must_use]
    pub fn difference(&self, other: &Self) -> usize {
        if (self.width, self.height) != (other.width, other.height) {
            return self.width * self.height;
        }
        self.data.chunks_exact(3).zip(other.data.chunks_exact(3)).filter(|(a, b)| a != b).count()
    }

    /// Decodes a PNG picture; transparency is ignored.
    ///
    /// # Errors
    /// If it isn't one.
    pub fn from_png(bytes: &[u8]) -> Result<Self> {
        let mut decoder = png::Decoder::new(std::io::Cursor::new(bytes));
        decoder.set_transformations(png::Transformations::normalize_to_color8());
        let mut reader = decoder.read_info()?;
        let mut raw = vec![0; reader.output_buffer_size().context("too large")?];
        let info = reader.next_frame(&mut raw)?;
        raw.truncate(info.buffer_size());
        let samples = info.color_type.samples();
        let data = raw
            .chunks_exact(samples)
            .flat_map(|pixel| match pixel {
                [r, g, b, ..] => [*r, *g, *b],
                grey => [grey[0]; 3],
            })
            .collect();
        Ok(Self { width: info.width as usize, height: info.height as usize, data })
    }

    /// Writes a PNG file.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn save_png(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let file = std::fs::File::create(path).with_context(|| format!("create {path:?}"))?;
        let mut encoder = png::Encoder::new(BufWriter::new(file), self.width.try_into()?, self.height.try_into()?);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::Fast);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.data)?;
        Ok(())
    }

    /// Saves it for a person to look at after a failure: into `$HARNESS_ARTIFACTS`, or a folder
    /// of the temporary directory. The path goes into the failure's message.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn save_artifact(&self, name: &str) -> Result<PathBuf> {
        let folder = std::env::var_os("HARNESS_ARTIFACTS")
            .map_or_else(|| std::env::temp_dir().join("bodyguard-test-artifacts"), PathBuf::from);
        std::fs::create_dir_all(&folder)?;
        let safe: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(60).collect();
        let path = folder.join(format!("{safe}-{}.png", std::process::id()));
        self.save_png(&path)?;
        Ok(path)
    }
}
