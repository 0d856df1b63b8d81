//! Lines of bounded length.

use std::io;

use rmcp::model::RequestId;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

use super::IdScan;

/// One line as it came.
#[derive(Debug, PartialEq)]
pub(crate) enum Line {
    /// A whole line without its end.
    Whole(Vec<u8>),
    /// The last bytes before the end of the stream, without a line's end.
    Rest(Vec<u8>),
    /// A line longer than the limit, read to its end and thrown away.
    TooLong {
        /// Its length.
        bytes: u64,
        /// The request's id, where it could be made out.
        id: Option<RequestId>,
    },
}

/// Reads lines and never keeps more than the limit of one. Safe to cancel: what was read stays.
pub(crate) struct LineReader<R> {
    source: BufReader<R>,
    limit: usize,
    kept: Vec<u8>,
    over: Option<Overlong>,
    ended: bool,
}

struct Overlong {
    bytes: u64,
    scan: IdScan,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(crate) fn new(source: R, limit: usize) -> Self {
        Self { source: BufReader::with_capacity(64 * 1024, source), limit, kept: Vec::new(), over: None, ended: false }
    }

    /// Changes the limit for what comes next.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// The next line; `None` at the end.
    ///
    /// # Errors
    /// What reading gave.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Line>> {
        while !self.ended {
            // Nothing is awaited between taking bytes and keeping them.
            let chunk = self.source.fill_buf().await?;
            if chunk.is_empty() {
                self.ended = true;
                break;
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let (part, used) = match end {
                Some(at) => chunk.split_at_checked(at).map_or((chunk, at), |(part, _)| (part, at + 1)),
                None => (chunk, chunk.len()),
            };
            keep(&mut self.kept, &mut self.over, self.limit, part);
            self.source.consume(used);
            if end.is_some() {
                return Ok(Some(self.take()));
            }
        }
        if self.kept.is_empty() && self.over.is_none() {
            return Ok(None);
        }
        Ok(Some(match self.take() {
            Line::Whole(rest) => Line::Rest(rest),
            other => other,
        }))
    }

    fn take(&mut self) -> Line {
        let kept = std::mem::take(&mut self.kept);
        match self.over.take() {
            Some(over) => Line::TooLong { bytes: over.bytes, id: over.scan.found() },
            None => Line::Whole(kept),
        }
    }
}

fn keep(kept: &mut Vec<u8>, over: &mut Option<Overlong>, limit: usize, part: &[u8]) {
    if over.is_none() {
        if kept.len().saturating_add(part.len()) <= limit {
            kept.extend_from_slice(part);
            return;
        }
        let mut scan = IdScan::default();
        scan.feed(kept);
        let bytes = u64::try_from(kept.len()).unwrap_or(u64::MAX);
        // Also gives back the memory.
        *kept = Vec::new();
        *over = Some(Overlong { bytes, scan });
    }
    if let Some(over) = over {
        over.scan.feed(part);
        over.bytes = over.bytes.saturating_add(u64::try_from(part.len()).unwrap_or(u64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(text: &[u8], limit: usize) -> Vec<Line> {
        let mut reader = LineReader::new(text, limit);
        let mut lines = Vec::new();
        while let Some(line) = reader.next().await.unwrap() {
            lines.push(line);
        }
        lines
    }

    #[tokio::test]
    async fn lines_come_whole_and_the_rest_is_told_apart() {
        let lines = all(b"a\n\nb\r\nrest", 10).await;
        let whole = |text: &[u8]| Line::Whole(text.to_vec());
        assert_eq!(lines, [whole(b"a"), whole(b""), whole(b"b\r"), Line::Rest(b"rest".to_vec())]);
    }

    #[tokio::test]
    async fn a_line_over_the_limit_is_read_to_its_end_and_its_id_made_out() {
        let long = format!("{{\"a\":\"{}\",\"id\":7}}\nnext\n", "x".repeat(300_000));
        let lines = all(long.as_bytes(), 1000).await;
        let bytes = u64::try_from(long.len()).unwrap() - 6;
        assert_eq!(lines, [Line::TooLong { bytes, id: Some(RequestId::Number(7)) }, Line::Whole(b"next".to_vec())]);
    }
}
