//! Server-sent events, decoded from bytes (semantics.md names no wire; the format is the
//! WHATWG's).
//!
//! It works on bytes, so that any chunking gives the same frames and a character that is
//! split between two chunks is whole again. A frame that lies inside one chunk is lent out of
//! it and copied nowhere. It must not know what a frame's data means.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

/// Buffers that grew beyond this for one large frame are given back after it.
const KEEP: usize = 1 << 20;

/// One event. `id` and `retry` are left out: what a model answers can't be taken up again, and
/// our own events have their number in their data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The event's name; empty when the stream gave none.
    pub event: &'a [u8],
    /// The data lines, joined by line feeds.
    pub data: &'a [u8],
}

/// An event is larger than the setting allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stream holds an event of more than {limit} bytes; `max_event_bytes` sets the limit")]
pub struct TooLarge {
    /// The limit, in bytes.
    pub limit: usize,
}

/// Cuts a stream of bytes into frames. What is unterminated when the stream ends is dropped
/// with the decoder.
#[derive(Debug)]
pub struct Decoder {
    limit: usize,
    /// What earlier chunks held of an event that isn't whole yet.
    begun: Vec<u8>,
    /// The bytes of its lines, comments included and line ends not.
    size: usize,
    /// Its last line has begun and not ended.
    in_line: bool,
    /// The last chunk ended in a carriage return: a line feed now is the same line's end.
    after_cr: bool,
    /// The first event may begin with a byte order mark.
    is_first: bool,
}

impl Decoder {
    /// A decoder whose events have at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, begun: Vec::new(), size: 0, in_line: false, after_cr: false, is_first: true }
    }

    /// Takes the next bytes and hands on every frame they complete.
    ///
    /// # Errors
    /// What `on_frame` returns, or [`TooLarge`]; the decoder is of no use afterwards.
    pub fn feed<E: From<TooLarge>>(
        &mut self,
        chunk: &[u8],
        mut on_frame: impl FnMut(Frame<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        // From where on the bytes belong to the event at hand, and where the line at hand begins.
        let (mut rest, mut at) = (self.without_second_half_of_crlf(chunk), 0);
        while let Some(len) = memchr2(b'\n', b'\r', &rest[at..]) {
            self.count(len)?;
            let is_blank = !std::mem::take(&mut self.in_line) && len == 0;
            let next = self.after_line_end(rest, at + len);
            if is_blank {
                self.dispatch(&rest[..at], &mut on_frame)?;
                (rest, at) = (&rest[next..], 0);
            } else {
                at = next;
            }
        }
        self.count(rest.len() - at)?;
        self.in_line |= at < rest.len();
        self.begun.extend_from_slice(rest);
        Ok(())
    }

    fn without_second_half_of_crlf<'c>(&mut self, chunk: &'c [u8]) -> &'c [u8] {
        let Some(first) = chunk.first() else {
            return chunk;
        };
        let skip = std::mem::take(&mut self.after_cr) && *first == b'\n';
        if skip { &chunk[1..] } else { chunk }
    }

    /// Where the next line begins.
    fn after_line_end(&mut self, rest: &[u8], end: usize) -> usize {
        let (is_cr, next) = (rest[end] == b'\r', rest.get(end + 1));
        self.after_cr = is_cr && next.is_none();
        end + if is_cr && next == Some(&b'\n') { 2 } else { 1 }
    }

    fn count(&mut self, bytes: usize) -> Result<(), TooLarge> {
        self.size += bytes;
        if self.size > self.limit { Err(TooLarge { limit: self.limit }) } else { Ok(()) }
    }

    /// A blank line ends an event, whose last lines are these.
    fn dispatch<E>(
        &mut self,
        lines: &[u8],
        on_frame: &mut impl FnMut(Frame<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.size = 0;
        let is_first = std::mem::take(&mut self.is_first);
        if self.begun.is_empty() {
            return hand_on(lines, is_first, on_frame);
        }
        let mut begun = std::mem::take(&mut self.begun);
        begun.extend_from_slice(lines);
        let result = hand_on(&begun, is_first, on_frame);
        if begun.capacity() <= KEEP {
            begun.clear();
            self.begun = begun;
        }
        result
    }
}

/// Reads the lines of one event. One without a data line is none.
fn hand_on<E>(
    lines: &[u8],
    is_first: bool,
    on_frame: &mut impl FnMut(Frame<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let marked = lines.strip_prefix(b"\xef\xbb\xbf").filter(|_| is_first);
    let mut rest = marked.unwrap_or(lines);
    let (mut event, mut data): (&[u8], Option<Cow<'_, [u8]>>) = (b"", None);
    while !rest.is_empty() {
        // Between the two halves of a line's end lies an empty line, which is no field.
        let end = memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        let line = &rest[..end];
        rest = rest.get(end + 1..).unwrap_or_default();
        let (name, value) = match memchr(b':', line) {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"event" => event = value,
            b"data" => {
                data = Some(match data {
                    Some(before) => {
                        let mut all = before.into_owned();
                        all.push(b'\n');
                        all.extend_from_slice(value);
                        Cow::Owned(all)
                    }
                    None => Cow::Borrowed(value),
                });
            }
            _ => {}
        }
    }
    data.map_or(Ok(()), |data| on_frame(Frame { event, data: &data }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Frames = Vec<(String, String)>;

    fn decode(chunks: &[&[u8]], limit: usize) -> (Frames, Option<TooLarge>) {
        let mut decoder = Decoder::new(limit);
        let mut frames = Vec::new();
        for chunk in chunks {
            let fed = decoder.feed(chunk, |frame| {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                frames.push((text(frame.event), text(frame.data)));
                Ok::<_, TooLarge>(())
            });
            if let Err(error) = fed {
                return (frames, Some(error));
            }
        }
        (frames, None)
    }

    fn whole(stream: &[u8]) -> Frames {
        decode(&[stream], 1 << 20).0
    }

    #[test]
    fn the_format_is_read_as_the_standard_says() {
        let rows: &[(&str, &[(&str, &str)])] = &[
            ("data: a\n\n", &[("", "a")]),
            ("data:a\r\rdata: b\r\n\r\n", &[("", "a"), ("", "b")]),
            ("event: x\ndata:  a\n\n", &[("x", " a")]),
            ("data: a\ndata: b\ndata\n\n", &[("", "a\nb\n")]),
            ("data:\n\n", &[("", "")]),
            ("event: x\n\ndata: a\n\n", &[("", "a")]),
            ("event: x\nevent: y\ndata: a\n\ndata: b\n\n", &[("y", "a"), ("", "b")]),
            (": hi\nid: 7\nretry: 1\nfoo: x\ndatax: y\ndata: a\n\n", &[("", "a")]),
            ("\u{feff}data: a\n\n\u{feff}data: b\n\n", &[("", "a")]),
            ("\u{feff}\ndata: a\n\n", &[("", "a")]),
            ("data: a\n\ndata: unterminated\n", &[("", "a")]),
            ("data: a\n\ndata: unterminated", &[("", "a")]),
            ("id:one\r\ndata:известни\r\n\ndata:two\n\rdata:unfinished", &[("", "известни"), ("", "two")]),
        ];
        for (stream, frames) in rows {
            let expected: Frames = frames.iter().map(|(e, d)| ((*e).to_owned(), (*d).to_owned())).collect();
            assert_eq!(whole(stream.as_bytes()), expected, "{stream:?}");
            for split in 0..=stream.len() {
                let (a, b) = stream.as_bytes().split_at(split);
                assert_eq!(decode(&[a, b"", b], 1 << 20).0, expected, "{stream:?} at {split}");
            }
            let bytes: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
            assert_eq!(decode(&bytes, 1 << 20).0, expected, "{stream:?} bytewise");
        }
    }

    #[test]
    fn an_event_beyond_the_limit_is_an_error_however_it_is_cut() {
        let rows = [
            ("data: 12345\n\n", 11, 1, false),
            ("data: 123456\n\n", 11, 0, true),
            ("data: 1\n\ndata: 123456\n\n", 11, 1, true),
            ("data: 1\ndata: 2\n\n", 13, 0, true),
            ("data: 123456", 11, 0, true),
            (": a long comment\n\n", 11, 0, true),
        ];
        for (stream, limit, frames, fails) in rows {
            let chunks: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
            for cut in [vec![stream.as_bytes()], chunks] {
                let (got, error) = decode(&cut, limit);
                assert_eq!((got.len(), error.is_some()), (frames, fails), "{stream:?}");
            }
        }
    }

    #[test]
    fn a_frame_inside_one_chunk_is_lent_out_of_it() {
        let chunk = b"event: x\ndata: abc\n\n";
        let mut decoder = Decoder::new(1024);
        decoder
            .feed(chunk, |frame| {
                assert!(chunk.as_ptr_range().contains(&frame.data.as_ptr()));
                assert!(chunk.as_ptr_range().contains(&frame.event.as_ptr()));
                Ok::<_, TooLarge>(())
            })
            .unwrap();
    }

    /// What the crate sse-stream makes of the same chunks.
    fn by_sse_stream(chunks: Vec<Vec<u8>>) -> Frames {
        use futures_util::StreamExt;
        let body = futures_util::stream::iter(
            chunks.into_iter().map(|c| Ok::<_, std::io::Error>(bytes::Bytes::from(c))),
        );
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut events = sse_stream::SseStream::from_bytes_stream(body);
        let mut frames = Vec::new();
        runtime.block_on(async {
            while let Some(event) = events.next().await {
                let Ok(event) = event else { break };
                if let Some(data) = event.data {
                    frames.push((event.event.unwrap_or_default(), data));
                }
            }
        });
        frames
    }

    fn lines() -> impl Strategy<Value = Vec<String>> {
        let text = "[a-z{}\" :é漢🙂]{0,12}";
        let line = prop_oneof![
            4 => text.prop_map(|t| format!("data: {t}")),
            1 => text.prop_map(|t| format!("data:{t}")),
            2 => "[a-z_.]{1,8}".prop_map(|t| format!("event: {t}")),
            1 => text.prop_map(|t| format!(": {t}")),
            4 => Just(String::new()),
        ];
        prop::collection::vec(line, 0..24)
    }

    fn cut(stream: &[u8], sizes: &[usize]) -> Vec<Vec<u8>> {
        let mut rest = stream;
        let mut chunks = Vec::new();
        for size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (chunk, tail) = rest.split_at((*size).min(rest.len()));
            chunks.push(chunk.to_vec());
            rest = tail;
        }
        chunks
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_chunking_gives_the_same_frames(
            lines in lines(),
            ends in prop::collection::vec(prop_oneof![Just("\n"), Just("\r"), Just("\r\n")], 1..5),
            sizes in prop::collection::vec(1usize..9, 1..6),
        ) {
            let stream: String =
                lines.iter().zip(ends.iter().cycle()).map(|(l, e)| format!("{l}{e}")).collect();
            let chunks = cut(stream.as_bytes(), &sizes);
            let parts: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
            prop_assert_eq!(decode(&parts, 1 << 20).0, whole(stream.as_bytes()));
        }

        #[test]
        fn sse_stream_reads_the_same_frames(
            lines in lines(),
            sizes in prop::collection::vec(1usize..40, 1..6),
        ) {
            let stream: String = lines.iter().map(|l| format!("{l}\n")).collect::<String>() + "\n";
            let chunks = cut(stream.as_bytes(), &sizes);
            prop_assert_eq!(by_sse_stream(chunks), whole(stream.as_bytes()));
        }

        #[test]
        fn no_bytes_make_it_panic(
            stream in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b':'), any::<u8>()], 0..200),
            sizes in prop::collection::vec(1usize..9, 1..6),
        ) {
            let chunks = cut(&stream, &sizes);
            let parts: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
            prop_assert_eq!(decode(&parts, 64), decode(&[&stream], 64));
        }
    }
}
