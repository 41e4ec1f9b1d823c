//! Numbers as people read them at a glance. What is left out is cut off, not rounded: nothing is
//! said to be more than it is.

use midturn_core::rules::time::Span;

/// What stands behind a number that was divided by a thousand so often.
const THOUSANDS: [&str; 6] = ["k", "M", "G", "T", "P", "E"];

/// How many: `812`, `8.1k`, `12.0k`, `1.2M`.
pub fn count(number: u64) -> String {
    thousands(number).unwrap_or_else(|| number.to_string())
}

/// How many bytes: `812 B`, `3.1 kB`, `2.0 MB`.
pub fn bytes(number: u64) -> String {
    match thousands(number) {
        Some(mut text) => {
            let unit = text.pop().unwrap_or_default();
            format!("{text} {unit}B")
        }
        None => format!("{number} B"),
    }
}

/// A number of a thousand or more, with one decimal.
fn thousands(number: u64) -> Option<String> {
    let power = number.checked_ilog10()? / 3;
    let unit = THOUSANDS.get(usize::try_from(power).ok()?.checked_sub(1)?)?;
    let tenths = number / 10_u64.pow(3 * power - 1);
    Some(format!("{}.{}{unit}", tenths / 10, tenths % 10))
}

/// How long something has run, as a clock that goes on: `0:12`, `1:04`, `1:02:03`, `3d 4h`.
pub fn clock(span: Span) -> String {
    let seconds = span.0 / 1_000_000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match (days, hours) {
        (0, 0) => format!("{minutes}:{:02}", seconds % 60),
        (0, _) => format!("{hours}:{:02}:{:02}", minutes % 60, seconds % 60),
        _ => format!("{days}d {}h", hours % 24),
    }
}

/// How long something took: `34 ms`, `1.2 s`, `2 min`, `5 h`, `3 d`.
pub fn short(span: Span) -> String {
    let seconds = span.0 / 1_000_000;
    match seconds {
        0 => format!("{} ms", span.0 / 1_000),
        1..60 => format!("{} s", span.tenths()),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_at_most_one_decimal_and_never_say_more_than_there_is() {
        for (number, expected) in [
            (0, "0"),
            (812, "812"),
            (999, "999"),
            (1_000, "1.0k"),
            (8_199, "8.1k"),
            (12_000, "12.0k"),
            (999_999, "999.9k"),
            (1_000_000, "1.0M"),
            (1_250_000, "1.2M"),
            (3_000_000_000, "3.0G"),
            (u64::MAX, "18.4E"),
        ] {
            assert_eq!(count(number), expected);
        }
    }

    #[test]
    fn bytes_have_their_unit_apart() {
        for (number, expected) in
            [(0, "0 B"), (812, "812 B"), (3_100, "3.1 kB"), (2_000_000, "2.0 MB"), (u64::MAX, "18.4 EB")]
        {
            assert_eq!(bytes(number), expected);
        }
    }

    #[test]
    fn a_clock_shows_seconds_until_there_are_days() {
        for (seconds, expected) in [
            (0, "0:00"),
            (12, "0:12"),
            (64, "1:04"),
            (3_599, "59:59"),
            (3_723, "1:02:03"),
            (86_399, "23:59:59"),
            (273_700, "3d 4h"),
        ] {
            assert_eq!(clock(Span::secs(seconds)), expected);
        }
        assert_eq!(clock(Span::millis(999)), "0:00");
    }

    #[test]
    fn what_something_took_has_one_unit() {
        for (millis, expected) in [
            (0, "0 ms"),
            (34, "34 ms"),
            (999, "999 ms"),
            (1_290, "1.2 s"),
            (59_999, "59.9 s"),
            (150_000, "2 min"),
            (3_600_000, "1 h"),
            (260_000_000, "3 d"),
        ] {
            assert_eq!(short(Span::millis(millis)), expected);
        }
    }
}
