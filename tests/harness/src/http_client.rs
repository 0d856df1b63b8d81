//! A small HTTP/1.1 client that sends exactly the headers it is told, `Host` included, so that
//! forged requests can be tested.

use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// A request, sent as it stands; only `Content-Length` and `Connection: close` are added.
#[derive(Clone, Debug)]
pub struct HttpRequest {
    /// `GET`, `POST` …
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Headers in order.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
}

/// An answer whose body is still to be read.
#[derive(Debug)]
pub struct HttpReply {
    /// Status code.
    pub status: u16,
    /// Headers, names in lower case.
    pub headers: Vec<(String, String)>,
    body: BufReader<Body>,
}

impl HttpRequest {
    /// A request without headers or body.
    #[must_use]
    pub fn new(method: &str, path: &str) -> Self {
        Self { method: method.to_owned(), path: path.to_owned(), headers: Vec::new(), body: Vec::new() }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Replaces or adds a header.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        self.header(name, value)
    }

    /// Leaves a header out.
    #[must_use]
    pub fn without_header(mut self, name: &str) -> Self {
        self.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Sends it to `address` (`127.0.0.1:8080`) and reads the answer's head. Nothing, the body
    /// included, waits beyond `timeout`.
    ///
    /// # Errors
    /// If there is no connection or no valid answer in time.
    pub fn send(&self, address: &str, timeout: Duration) -> Result<HttpReply> {
        let end = Instant::now() + timeout;
        let stream = TcpStream::connect(address).with_context(|| format!("connect {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(timeout))?;
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let length = self.body.len();
        head.push_str(&format!("Content-Length: {length}\r\nConnection: close\r\n\r\n"));
        let mut out = &stream;
        // A server may refuse by the head alone and close: its answer is still read.
        let sent = out.write_all(head.as_bytes()).and_then(|()| out.write_all(&self.body));
        let timed = Timed { stream, end };
        match (read_head(BufReader::new(timed), &self.method), sent) {
            (Ok(reply), _) => Ok(reply),
            (Err(_), Err(error)) => Err(error).context("send the request"),
            (Err(error), Ok(())) => Err(error.context("read the answer")),
        }
    }
}

impl HttpReply {
    /// A header's value.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// True if the answer is a stream of server-sent events.
    #[must_use]
    pub fn is_event_stream(&self) -> bool {
        self.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"))
    }

    /// Reads the whole body.
    ///
    /// # Errors
    /// If it breaks off or takes too long.
    pub fn bytes(&mut self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.body.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads the whole body as text.
    ///
    /// # Errors
    /// As [`HttpReply::bytes`].
    pub fn text(&mut self) -> Result<String> {
        Ok(String::from_utf8_lossy(&self.bytes()?).into_owned())
    }

    /// The data of the next server-sent event that has any; `None` when the stream ends.
    ///
    /// # Errors
    /// If the stream breaks off or nothing comes in time.
    pub fn next_event(&mut self) -> Result<Option<String>> {
        let mut data: Option<String> = None;
        loop {
            let mut line = String::new();
            if self.body.read_line(&mut line)? == 0 {
                return Ok(data.filter(|text| !text.is_empty()));
            }
            let line = line.trim_end_matches(['\r', '\n']);
            if line.is_empty() {
                match data.take() {
                    Some(text) if !text.is_empty() => return Ok(Some(text)),
                    _ => continue,
                }
            }
            if let Some(more) = line.strip_prefix("data:") {
                let more = more.strip_prefix(' ').unwrap_or(more);
                match &mut data {
                    Some(text) => {
                        text.push('\n');
                        text.push_str(more);
                    }
                    None => data = Some(more.to_owned()),
                }
            }
        }
    }
}

/// A stream whose reads all end at one point in time.
#[derive(Debug)]
struct Timed {
    stream: TcpStream,
    end: Instant,
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(buffer)
    }
}

#[derive(Debug)]
enum Rest {
    Length(u64),
    Chunked(u64),
    UntilClosed,
    Ended,
}

#[derive(Debug)]
struct Body {
    stream: BufReader<Timed>,
    rest: Rest,
}

impl Body {
    /// Reads the size line of the next chunk; zero at the end.
    fn next_chunk(&mut self) -> std::io::Result<u64> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        if line.trim().is_empty() {
            // The line end after the chunk before.
            line.clear();
            self.stream.read_line(&mut line)?;
        }
        let size = line.trim().split(';').next().unwrap_or_default();
        u64::from_str_radix(size, 16).map_err(|_| std::io::ErrorKind::InvalidData.into())
    }
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if let Rest::Chunked(0) = self.rest {
            self.rest = match self.next_chunk()? {
                0 => Rest::Ended,
                size => Rest::Chunked(size),
            };
        }
        let limit = match self.rest {
            Rest::Ended | Rest::Length(0) => return Ok(0),
            Rest::Length(left) | Rest::Chunked(left) => left,
            Rest::UntilClosed => u64::MAX,
        };
        let room = buffer.len().min(usize::try_from(limit).unwrap_or(usize::MAX));
        let count = self.stream.read(&mut buffer[..room])?;
        match &mut self.rest {
            Rest::Length(left) | Rest::Chunked(left) => {
                if count == 0 && room > 0 {
                    return Err(std::io::ErrorKind::UnexpectedEof.into());
                }
                *left -= count as u64;
            }
            Rest::UntilClosed | Rest::Ended => {}
        }
        Ok(count)
    }
}

fn read_head(mut stream: BufReader<Timed>, method: &str) -> Result<HttpReply> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let status = line
        .strip_prefix("HTTP/1.")
        .and_then(|rest| rest.split(' ').nth(1))
        .and_then(|code| code.trim().parse::<u16>().ok())
        .with_context(|| format!("not an HTTP answer: {line:?}"))?;
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            bail!("the answer's head breaks off");
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
    let find = |name: &str| headers.iter().find(|(n, _)| n == name).map(|(_, v)| v);
    let bare = method == "HEAD" || matches!(status, 100..200 | 204 | 304);
    let rest = if bare {
        Rest::Ended
    } else if find("transfer-encoding").is_some_and(|v| v.eq_ignore_ascii_case("chunked")) {
        Rest::Chunked(0)
    } else if let Some(length) = find("content-length") {
        Rest::Length(length.parse()?)
    } else {
        Rest::UntilClosed
    };
    Ok(HttpReply { status, headers, body: BufReader::new(Body { stream, rest }) })
}
