//! Any bytes, cut anywhere: the same frames and the same reply, and never a panic.
//!
//! `cargo fuzz run decoder` in crates/providers. The first byte says how the rest is cut, the
//! second which dialect it is read as.
#![no_main]

use libfuzzer_sys::fuzz_target;
use midturn_core::sse::{Decoder, TooLarge};
use midturn_providers::{Dialect, Silent, decode};

const LIMIT: usize = 4_096;

type Frames = Vec<(Vec<u8>, Vec<u8>)>;

fn frames(stream: &[u8], size: usize) -> (Frames, bool) {
    let mut decoder = Decoder::new(LIMIT);
    let mut frames = Vec::new();
    let failed = stream.chunks(size).any(|chunk| {
        let fed = decoder.feed(chunk, |frame| {
            frames.push((frame.event.to_vec(), frame.data.to_vec()));
            Ok::<_, TooLarge>(())
        });
        fed.is_err()
    });
    (frames, failed)
}

fuzz_target!(|bytes: &[u8]| {
    let [cut, dialect, stream @ ..] = bytes else { return };
    let size = usize::from(*cut) + 1;
    assert_eq!(frames(stream, size), frames(stream, usize::MAX));
    let dialect = Dialect::ALL[usize::from(*dialect) % Dialect::ALL.len()];
    let whole = decode(dialect, [stream], LIMIT, &Silent);
    assert_eq!(decode(dialect, stream.chunks(size), LIMIT, &Silent), whole);
});
