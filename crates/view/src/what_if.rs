//! What people read of a session that was played again with a message moved. The page says the same
//! (crates/server/page/parts/timeline.js).

use midturn_core::rules::time::Span;

use crate::clean::one_line;
use crate::figures;

/// Said while it is played.
pub const PLAYING: &str = "Playing it again …";

/// Over what happened.
pub const AS_IT_WAS: &str = "As it was";

/// So far a message is moved, in microseconds: `+1.2s`, `-500ms`.
pub fn words(by: i64) -> String {
    format!("{}{}", if by < 0 { '-' } else { '+' }, Span(by.unsigned_abs()))
}

/// Over what would have happened.
pub fn moved(by: i64) -> String {
    format!("With the message {}", words(by))
}

/// What would have come out otherwise, call by call and message by message.
pub fn changes(changes: &[String]) -> Vec<String> {
    match changes {
        [] => vec!["No call and no message would have come out otherwise.".to_owned()],
        changes => changes.iter().map(|change| one_line(change)).collect(),
    }
}

/// What would not have been done: how many calls and tokens, and which files.
pub fn spared(calls: u64, files: &[String], tokens: i64) -> Vec<String> {
    let word = if tokens < 0 { "more" } else { "spared" };
    let first = match (calls, tokens) {
        (0, 0) => "As many calls, and as many tokens".to_owned(),
        _ => {
            format!("{} spared, {} {word}", many(calls, "call"), many(tokens.unsigned_abs(), "token"))
        }
    };
    let files = files.iter().map(|file| format!("Not written: {}", one_line(file)));
    std::iter::once(first).chain(files).collect()
}

fn many(number: u64, one: &str) -> String {
    format!("{} {one}{}", figures::count(number), if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spared_is_counted_and_files_are_named() {
        for (calls, tokens, expected) in [
            (0, 0, "As many calls, and as many tokens"),
            (1, 1, "1 call spared, 1 token spared"),
            (2, -1_250, "2 calls spared, 1.2k tokens more"),
            (0, 812, "0 calls spared, 812 tokens spared"),
        ] {
            assert_eq!(spared(calls, &[], tokens), [expected]);
        }
        assert_eq!(spared(1, &["a\u{1b}[1m.rs".to_owned()], 0)[1], "Not written: a‹U+001B›[1m.rs");
    }

    #[test]
    fn a_shift_has_its_sign_and_is_written_as_durations_are() {
        for (by, expected) in [(0, "+0"), (500_000, "+500ms"), (-1_200_000, "-1.2s"), (3_600_000_000, "+1h")]
        {
            assert_eq!(words(by), expected);
        }
        assert_eq!(moved(-100_000), "With the message -100ms");
    }
}
