//! Pixels: masking, shrinking, encoding.

use bodyguard_protocol::action::CaptureFormat;
use bodyguard_protocol::{Fault, MonitorInfo};

/// What stands where a window is that nobody may see.
const MASK: [u8; 3] = [128, 128, 128];
const JPEG_QUALITY: u8 = 85;

/// A rectangle in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rect {
    pub(crate) x: i32,
    pub(crate) y: i32,
    pub(crate) width: u32,
    pub(crate) height: u32,
}

impl Rect {
    /// The whole of a monitor, in its own pixels.
    pub(crate) fn whole(monitor: &MonitorInfo) -> Self {
        Self { x: 0, y: 0, width: monitor.width, height: monitor.height }
    }

    pub(crate) fn moved(self, x: i32, y: i32) -> Self {
        Self { x: self.x.saturating_add(x), y: self.y.saturating_add(y), ..self }
    }

    /// Columns or rows of a picture of `length` that `from .. from + extent` covers.
    fn span(from: i32, extent: u32, length: u32) -> std::ops::Range<usize> {
        let start = i64::from(from).clamp(0, i64::from(length));
        let end = (i64::from(from) + i64::from(extent)).clamp(start, i64::from(length));
        let index = |n: i64| usize::try_from(n).unwrap_or(0);
        index(start)..index(end)
    }
}

/// RGB, three bytes a pixel, row by row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Picture {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) rgb: Vec<u8>,
}

impl Picture {
    /// From four bytes a pixel; `order` says where red, green and blue stand.
    pub(crate) fn from_words(width: u32, height: u32, bytes: &[u8], order: [usize; 3]) -> Self {
        let mut rgb = Vec::with_capacity(bytes.len() / 4 * 3);
        for pixel in bytes.as_chunks::<4>().0 {
            rgb.extend(order.map(|at| pixel.get(at).copied().unwrap_or(0)));
        }
        Self { width, height, rgb }
    }

    /// Covers a rectangle; says whether any of it was in the picture.
    pub(crate) fn mask(&mut self, rect: Rect) -> bool {
        let columns = Rect::span(rect.x, rect.width, self.width);
        let rows = Rect::span(rect.y, rect.height, self.height);
        if columns.is_empty() || rows.is_empty() {
            return false;
        }
        let stride = self.stride();
        for row in self.rgb.chunks_exact_mut(stride).take(rows.end).skip(rows.start) {
            if let Some(part) = row.get_mut(columns.start * 3..columns.end * 3) {
                part.as_chunks_mut::<3>().0.fill(MASK);
            }
        }
        true
    }

    fn stride(&self) -> usize {
        self.width.max(1) as usize * 3
    }

    /// Shrinks to at most `max_width`, keeping the proportions; also says the scale.
    pub(crate) fn shrink(self, max_width: Option<u32>) -> (Self, f64) {
        let Some(width) = max_width.filter(|&most| most > 0 && most < self.width) else { return (self, 1.0) };
        let scale = f64::from(width) / f64::from(self.width);
        let height = (u64::from(self.height) * u64::from(width)).div_ceil(u64::from(self.width)).max(1);
        let height = u32::try_from(height).unwrap_or(u32::MAX).min(self.height);
        let mut rgb = Vec::with_capacity(width as usize * height as usize * 3);
        for row in 0..height {
            let rows = part(row, height, self.height);
            for column in 0..width {
                rgb.extend(self.average(part(column, width, self.width), rows.clone()));
            }
        }
        (Self { width, height, rgb }, scale)
    }

    fn average(&self, columns: std::ops::Range<usize>, rows: std::ops::Range<usize>) -> [u8; 3] {
        let mut sum = [0_u32; 3];
        let mut count = 0_u32;
        let stride = self.stride();
        for row in rows {
            let from = row * stride;
            let pixels = self.rgb.get(from + columns.start * 3..from + columns.end * 3).unwrap_or_default();
            for pixel in pixels.as_chunks::<3>().0 {
                for (sum, value) in sum.iter_mut().zip(pixel) {
                    *sum += u32::from(*value);
                }
                count += 1;
            }
        }
        sum.map(|sum| u8::try_from(sum / count.max(1)).unwrap_or(u8::MAX))
    }

    pub(crate) fn encode(&self, format: CaptureFormat) -> Result<Vec<u8>, Fault> {
        let failed = |error: &dyn std::fmt::Display| Fault::internal(format!("the picture can't be encoded: {error}"));
        let mut bytes = Vec::new();
        match format {
            CaptureFormat::Png => {
                let mut encoder = png::Encoder::new(&mut bytes, self.width, self.height);
                encoder.set_color(png::ColorType::Rgb);
                encoder.set_compression(png::Compression::Fast);
                let mut writer = encoder.write_header().map_err(|e| failed(&e))?;
                writer.write_image_data(&self.rgb).map_err(|e| failed(&e))?;
                writer.finish().map_err(|e| failed(&e))?;
            }
            CaptureFormat::Jpeg => {
                let side = |n: u32| u16::try_from(n).map_err(|e| failed(&e));
                let encoder = jpeg_encoder::Encoder::new(&mut bytes, JPEG_QUALITY);
                encoder
                    .encode(&self.rgb, side(self.width)?, side(self.height)?, jpeg_encoder::ColorType::Rgb)
                    .map_err(|e| failed(&e))?;
            }
        }
        Ok(bytes)
    }
}

/// The source pixels of pixel `index` of `count`, of `length` in all; never empty.
fn part(index: u32, count: u32, length: u32) -> std::ops::Range<usize> {
    let at = |index: u32| u64::from(index) * u64::from(length) / u64::from(count.max(1));
    let (start, end) = (at(index), at(index + 1));
    let place = |n: u64| usize::try_from(n).unwrap_or(0);
    place(start)..place(end.max(start + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn picture(width: u32, height: u32) -> Picture {
        Picture { width, height, rgb: vec![7; (width * height * 3) as usize] }
    }

    proptest! {
        #[test]
        fn cap_08_exactly_the_covered_pixels_are_masked(
            width in 1_u32..40, height in 1_u32..40, x in -50_i32..50, y in -50_i32..50, w in 0_u32..60, h in 0_u32..60,
        ) {
            let mut masked = picture(width, height);
            masked.mask(Rect { x, y, width: w, height: h });
            for (index, pixel) in masked.rgb.as_chunks::<3>().0.iter().enumerate() {
                let column = i64::try_from(index % width as usize).unwrap();
                let row = i64::try_from(index / width as usize).unwrap();
                let inside = |at: i64, from: i32, extent: u32| at >= i64::from(from) && at < i64::from(from) + i64::from(extent);
                let covered = inside(column, x, w) && inside(row, y, h);
                prop_assert_eq!(*pixel, if covered { MASK } else { [7; 3] });
            }
        }

        #[test]
        fn cap_14_a_shrunk_picture_keeps_its_proportions(width in 1_u32..200, height in 1_u32..200, most in 1_u32..250) {
            let (small, scale) = picture(width, height).shrink(Some(most));
            prop_assert_eq!(small.width, width.min(most));
            prop_assert_eq!(small.rgb.len(), (small.width * small.height * 3) as usize);
            prop_assert!((f64::from(small.height) - f64::from(height) * scale).abs() <= 1.0);
            prop_assert!(small.rgb.iter().all(|&value| value == 7));
        }
    }

    #[test]
    fn both_formats_are_what_they_say() {
        assert!(picture(3, 2).encode(CaptureFormat::Png).unwrap().starts_with(b"\x89PNG"));
        assert!(picture(3, 2).encode(CaptureFormat::Jpeg).unwrap().starts_with(&[0xff, 0xd8]));
    }
}
