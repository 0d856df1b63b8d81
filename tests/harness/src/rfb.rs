//! A small RFB 3.8 (RFC 6143) client over a Unix socket: raw encoding, 32 bits a pixel.

use crate::image::Image;
use anyhow::{Context, Result, bail};
use des::Des;
use des::cipher::{Array, BlockCipherEncrypt, KeyInit};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

const SECURITY_NONE: u8 = 1;
const SECURITY_VNC: u8 = 2;
const ENCODING_RAW: i32 = 0;
const ENCODING_DESKTOP_SIZE: i32 = -223;
/// The key with which VNC password files are obfuscated (it is no secret).
const PASSWORD_FILE_KEY: [u8; 8] = [23, 82, 107, 6, 35, 78, 88, 7];

/// DES as VNC uses it: with the bits of each key byte reversed.
fn vnc_des(key: [u8; 8], block: [u8; 8]) -> [u8; 8] {
    let cipher = Des::new(&Array::from(key.map(u8::reverse_bits)));
    let mut block = Array::from(block);
    cipher.encrypt_block(&mut block);
    block.into()
}

/// The first eight bytes of a password, as VNC takes it.
fn password_key(password: &str) -> [u8; 8] {
    let mut key = [0; 8];
    for (to, from) in key.iter_mut().zip(password.bytes()) {
        *to = from;
    }
    key
}

/// The contents of a VNC password file. VNC looks at eight bytes of a password only.
#[must_use]
pub fn password_file(password: &str) -> [u8; 8] {
    vnc_des(PASSWORD_FILE_KEY, password_key(password))
}

/// A connection that sees the screen and has a pointer and a keyboard.
#[derive(Debug)]
pub struct Rfb {
    stream: UnixStream,
    width: u16,
    height: u16,
    /// BGRX rows.
    frame: Vec<u8>,
}

impl Rfb {
    /// Connects, shared with other viewers.
    ///
    /// # Errors
    /// If the socket can't be reached, the server speaks something else, or the password is wrong.
    pub fn connect(socket: &Path, password: Option<&str>) -> Result<Self> {
        let stream = UnixStream::connect(socket).with_context(|| format!("connect {socket:?}"))?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        stream.set_write_timeout(Some(Duration::from_secs(20)))?;
        let mut new = Self { stream, width: 0, height: 0, frame: Vec::new() };
        new.handshake(password).context("RFB handshake")?;
        new.initialise().context("RFB initialisation")?;
        Ok(new)
    }

    /// Width and height of the screen in pixels.
    #[must_use]
    pub fn size(&self) -> (u16, u16) {
        (self.width, self.height)
    }

    fn handshake(&mut self, password: Option<&str>) -> Result<()> {
        let version: [u8; 12] = self.take()?;
        if !version.starts_with(b"RFB 003.") {
            bail!("not an RFB server: {version:?}");
        }
        self.stream.write_all(b"RFB 003.008\n")?;
        let [count] = self.take()?;
        if count == 0 {
            bail!("refused: {}", self.take_text()?);
        }
        let offered = self.take_bytes(count.into())?;
        let wanted = match password {
            Some(_) => SECURITY_VNC,
            None => SECURITY_NONE,
        };
        if !offered.contains(&wanted) {
            bail!("security type {wanted} isn't offered, only {offered:?}");
        }
        self.stream.write_all(&[wanted])?;
        if let Some(password) = password {
            let key = password_key(password);
            let (first, second) = (self.take()?, self.take()?);
            self.stream.write_all(&vnc_des(key, first))?;
            self.stream.write_all(&vnc_des(key, second))?;
        }
        if u32::from_be_bytes(self.take()?) != 0 {
            bail!("refused: {}", self.take_text()?);
        }
        Ok(())
    }

    fn initialise(&mut self) -> Result<()> {
        self.stream.write_all(&[1])?; // shared
        self.width = u16::from_be_bytes(self.take()?);
        self.height = u16::from_be_bytes(self.take()?);
        let _its_pixel_format: [u8; 16] = self.take()?;
        let _name = self.take_text()?;
        self.resize(self.width, self.height);
        // 32 bits, depth 24, little endian, true colour, maxima 255, shifts 16, 8, 0.
        self.stream.write_all(&[0, 0, 0, 0, 32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 16, 8, 0, 0, 0, 0])?;
        let mut encodings = vec![2, 0, 0, 2];
        encodings.extend(ENCODING_RAW.to_be_bytes());
        encodings.extend(ENCODING_DESKTOP_SIZE.to_be_bytes());
        self.stream.write_all(&encodings)?;
        Ok(())
    }

    fn resize(&mut self, width: u16, height: u16) {
        (self.width, self.height) = (width, height);
        self.frame = vec![0; usize::from(width) * usize::from(height) * 4];
    }

    /// The screen as it is now.
    ///
    /// # Errors
    /// If the connection broke.
    pub fn screenshot(&mut self) -> Result<Image> {
        loop {
            let before = self.size();
            let mut request = vec![3, 0, 0, 0, 0, 0];
            request.extend(self.width.to_be_bytes());
            request.extend(self.height.to_be_bytes());
            self.stream.write_all(&request)?;
            while !self.read_message().context("read from the VNC server")? {}
            if self.size() == before {
                break;
            }
        }
        let mut data = Vec::with_capacity(self.frame.len() / 4 * 3);
        for pixel in self.frame.chunks_exact(4) {
            data.extend_from_slice(&[pixel[2], pixel[1], pixel[0]]);
        }
        Ok(Image { width: self.width.into(), height: self.height.into(), data })
    }

    /// Reads one message; true if it was a framebuffer update.
    fn read_message(&mut self) -> Result<bool> {
        let [kind] = self.take()?;
        match kind {
            0 => {
                let [_padding] = self.take()?;
                let count = u16::from_be_bytes(self.take()?);
                for _ in 0..count {
                    self.read_rectangle()?;
                }
                Ok(true)
            }
            1 => {
                let [_, _, _, a, b]: [u8; 5] = self.take()?;
                self.take_bytes(usize::from(u16::from_be_bytes([a, b])) * 6)?;
                Ok(false)
            }
            2 => Ok(false),
            3 => {
                let _padding: [u8; 3] = self.take()?;
                self.take_text()?;
                Ok(false)
            }
            other => bail!("unknown RFB message {other}"),
        }
    }

    fn read_rectangle(&mut self) -> Result<()> {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = self.take::<12>()?;
        let [x, y, width, height] = [[a, b], [c, d], [e, f], [g, h]].map(u16::from_be_bytes);
        match i32::from_be_bytes([i, j, k, l]) {
            ENCODING_RAW => {
                let pixels = self.take_bytes(usize::from(width) * usize::from(height) * 4)?;
                let (left, row_bytes) = (usize::from(x) * 4, usize::from(width) * 4);
                let stride = usize::from(self.width) * 4;
                if row_bytes == 0 {
                    return Ok(());
                }
                for (row, line) in pixels.chunks_exact(row_bytes).enumerate() {
                    let start = (usize::from(y) + row) * stride + left;
                    self.frame
                        .get_mut(start..start + row_bytes)
                        .context("rectangle outside the screen")?
                        .copy_from_slice(line);
                }
            }
            ENCODING_DESKTOP_SIZE => self.resize(width, height),
            other => bail!("unknown encoding {other}"),
        }
        Ok(())
    }

    /// Moves the pointer, with these buttons down (bit 0 left, 1 middle, 2 right, 3–6 wheel).
    ///
    /// # Errors
    /// If the connection broke.
    pub fn pointer(&mut self, x: u16, y: u16, buttons: u8) -> Result<()> {
        let [[a, b], [c, d]] = [x, y].map(u16::to_be_bytes);
        Ok(self.stream.write_all(&[5, buttons, a, b, c, d])?)
    }

    /// Presses or releases a key.
    ///
    /// # Errors
    /// If the connection broke.
    pub fn key(&mut self, keysym: u32, down: bool) -> Result<()> {
        let mut message = vec![4, u8::from(down), 0, 0];
        message.extend(keysym.to_be_bytes());
        Ok(self.stream.write_all(&message)?)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn take_bytes(&mut self, count: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn take_text(&mut self) -> Result<String> {
        let length = u32::from_be_bytes(self.take()?);
        let bytes = self.take_bytes(length.try_into()?)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_files_are_those_of_vncpasswd() {
        // `printf password | vncpasswd -f` of tigervnc-tools gives these bytes.
        assert_eq!(password_file("password"), [0xdb, 0xd8, 0x3c, 0xfd, 0x72, 0x7a, 0x14, 0x58]);
    }
}
