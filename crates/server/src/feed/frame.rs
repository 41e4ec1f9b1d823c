//! Server-sent events as bytes: each is made once and shared by all who are sent it.

use std::fmt::Write;

use bytes::Bytes;

/// What separates the head of a frame from its data.
const DATA: &str = "data: ";

/// A frame of a recorded event; its `id` is its number.
pub(crate) fn stored(seq: u64, name: &str, json: &str) -> Bytes {
    let mut text = String::with_capacity(json.len() + name.len() + 48);
    // Writing to a string can't fail.
    let _ = write!(text, "id: {seq}\nevent: {name}\n{DATA}{json}\n\n");
    Bytes::from(text)
}

/// A frame of what is only told while it happens: it has no `id`.
pub(crate) fn live(name: &str, json: &str) -> Bytes {
    // In as much room as it takes: it is kept.
    Bytes::from(["event: ", name, "\n", DATA, json, "\n\n"].concat())
}

/// Moves a client's `Last-Event-ID` on and tells it nothing.
pub(crate) fn silent(seq: u64) -> Bytes {
    Bytes::from(format!("id: {seq}\n\n"))
}

/// The last frame of a client that can't be told what it missed here.
pub(crate) fn resync(last: u64) -> Bytes {
    live("resync", &format!("{{\"last\":{last}}}"))
}

/// Keeps the connection known to whoever is between.
pub(crate) fn comment() -> Bytes {
    Bytes::from_static(b":\n\n")
}

/// The JSON of a frame.
pub(crate) fn json(frame: &[u8]) -> &[u8] {
    let at = frame.windows(DATA.len()).position(|part| part == DATA.as_bytes());
    let data = at.map_or(&frame[..0], |at| &frame[at + DATA.len()..]);
    data.strip_suffix(b"\n\n").unwrap_or(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_gives_its_json_back() {
        for json_text in ["{}", r#"{"text":"data: id: 3\\n"}"#] {
            assert_eq!(json(&stored(7, "run_started", json_text)), json_text.as_bytes());
            assert_eq!(json(&live("text_delta", json_text)), json_text.as_bytes());
        }
        assert_eq!(json(b":\n\n"), b"");
        assert_eq!(&stored(7, "a", "{}")[..], b"id: 7\nevent: a\ndata: {}\n\n");
    }
}
