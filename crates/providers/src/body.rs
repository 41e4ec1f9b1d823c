//! Encoded messages, kept between requests, and the request body made of them.
//!
//! What was encoded stays where it is: a request lends slices of it to the connection. No
//! byte is encoded twice, and none but those of the youngest segment is ever moved.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::mem;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::sync::oneshot;

/// A segment that has grown to this many bytes is closed.
const SEGMENT: usize = 64 << 10;

/// Bytes that only grow, in segments that can be lent out while they do.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    closed: Vec<Bytes>,
    open: Bytes,
}

impl Segments {
    /// How many bytes there are.
    pub(crate) fn len(&self) -> usize {
        self.closed_len() + self.open.len()
    }

    fn closed_len(&self) -> usize {
        self.closed.iter().map(Bytes::len).sum()
    }

    /// Appends what `write` writes. It is handed the open segment and the position of that
    /// segment's first byte.
    pub(crate) fn append(&mut self, write: impl FnOnce(&mut Vec<u8>, usize)) {
        // Without a copy, unless a connection that was cut still holds the segment.
        let mut open = Vec::from(mem::take(&mut self.open));
        write(&mut open, self.closed_len());
        if open.len() < SEGMENT {
            self.open = Bytes::from(open);
        } else {
            open.shrink_to_fit();
            self.closed.push(Bytes::from(open));
        }
    }

    /// Lends these bytes.
    pub(crate) fn lend(&self, range: Range<usize>) -> impl Iterator<Item = Bytes> {
        let mut end = 0;
        self.closed.iter().chain([&self.open]).filter_map(move |segment| {
            let start = end;
            end += segment.len();
            let (first, last) = (range.start.max(start), range.end.min(end));
            (first < last).then(|| segment.slice(first - start..last - start))
        })
    }
}

/// A request body that says when it was handed to the connection.
#[derive(Debug)]
pub(crate) struct Body {
    parts: VecDeque<Bytes>,
    taken: Option<oneshot::Sender<()>>,
}

impl Body {
    /// Of these parts, and what tells when the connection has taken all of it.
    pub(crate) fn new(parts: Vec<Bytes>) -> (Self, oneshot::Receiver<()>) {
        let (taken, all_taken) = oneshot::channel();
        let parts = parts.into_iter().filter(|part| !part.is_empty()).collect();
        (Self { parts, taken: Some(taken) }, all_taken)
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let part = self.parts.pop_front();
        if self.parts.is_empty() {
            // Whoever waits for this may have gone: then nobody needs to know.
            let _nobody_waits = self.taken.take().map(|taken| taken.send(()));
        }
        Poll::Ready(part.map(|part| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.parts.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.parts.iter().map(|part| part.len() as u64).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lent(segments: &Segments, from: usize, to: usize) -> Vec<Bytes> {
        segments.lend(from..to).collect()
    }

    #[test]
    fn slices_across_segments_are_what_was_appended() {
        let mut segments = Segments::default();
        let mut all = Vec::new();
        for n in 0..9_000_u32 {
            let text = format!("<{n}>").repeat(5);
            all.extend_from_slice(text.as_bytes());
            segments.append(|open, _| open.extend_from_slice(text.as_bytes()));
        }
        assert_eq!(segments.len(), all.len());
        assert!(segments.closed.len() > 2);
        for (from, to) in [(0, all.len()), (1, 2), (65_000, 66_000), (3, 200_000), (7, 7)] {
            assert_eq!(lent(&segments, from, to).concat(), &all[from..to]);
        }
    }

    #[test]
    fn appending_moves_nothing_while_there_is_room_and_nothing_closed_ever() {
        let mut segments = Segments::default();
        segments.append(|open, _| open.resize(SEGMENT, b'x'));
        segments.append(|open, _| {
            open.reserve(100);
            open.push(b'y');
        });
        let places = |parts: Vec<Bytes>| parts.iter().map(|part| part.as_ptr()).collect::<Vec<_>>();
        let before = places(lent(&segments, 0, segments.len()));
        segments.append(|open, _| open.push(b'z'));
        let after = places(lent(&segments, 0, segments.len()));
        assert_eq!(before, after);
    }

    #[test]
    fn a_segment_that_is_still_lent_does_not_change() {
        let mut segments = Segments::default();
        segments.append(|open, _| open.extend_from_slice(b"first"));
        let held = lent(&segments, 0, 5);
        segments.append(|open, _| open.extend_from_slice(b" second"));
        assert_eq!(held.concat(), b"first");
        assert_eq!(lent(&segments, 0, 12).concat(), b"first second");
    }
}
