//! Tables of text: columns as wide as their widest cell, and none that is empty throughout.

use midturn_core::rules::time::Span;

/// On which side a column's cells are filled up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Text.
    Left,
    /// Figures.
    Right,
}

/// A column: its title, and its side.
pub(crate) type Column = (&'static str, Side);

/// The table as lines, the titles first. Every row has a cell for each column.
pub(crate) fn table(columns: &[Column], rows: &[Vec<String>]) -> String {
    let width = |index: usize| -> usize {
        let cells = rows.iter().filter_map(|row| row.get(index));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let kept: Vec<(usize, Column, usize)> = columns
        .iter()
        .enumerate()
        .filter(|(index, _)| width(*index) > 0)
        .map(|(index, column)| (index, *column, width(index).max(column.0.chars().count())))
        .collect();
    let titles: Vec<String> = columns.iter().map(|(title, _)| (*title).to_owned()).collect();
    let lines = std::iter::once(&titles).chain(rows).map(|row| line(row, &kept));
    lines.collect()
}

fn line(row: &[String], kept: &[(usize, Column, usize)]) -> String {
    let mut line = String::new();
    for (index, (_, side), width) in kept {
        let cell = row.get(*index).map(String::as_str).unwrap_or_default();
        line.push_str(&match side {
            Side::Left => format!("{cell:<width$}  "),
            Side::Right => format!("{cell:>width$}  "),
        });
    }
    line.truncate(line.trim_end().len());
    line.push('\n');
    line
}

/// A duration for people: `40 ms`, `4.2 s`, `12 s`, `3 min 05 s`, `2 h 07 min`, `3 d 4 h`.
pub(crate) fn duration(span: Span) -> String {
    // Cut off, not rounded.
    let millis = span.0 / 1_000;
    let whole = millis / 1_000;
    match whole {
        0 => format!("{millis} ms"),
        1..10 => format!("{whole}.{} s", millis / 100 % 10),
        10..60 => format!("{whole} s"),
        60..3_600 => format!("{} min {:02} s", whole / 60, whole % 60),
        3_600..86_400 => format!("{} h {:02} min", whole / 3_600, whole / 60 % 60),
        _ => format!("{} d {} h", whole / 86_400, whole / 3_600 % 24),
    }
}

/// A figure for people: `950`, `12.3k`, `4.5M`.
pub(crate) fn count(figure: u64) -> String {
    let tenths = |unit: u64, letter: char| format!("{}.{}{letter}", figure / unit, figure / (unit / 10) % 10);
    match figure {
        0..1_000 => figure.to_string(),
        1_000..1_000_000 => tenths(1_000, 'k'),
        _ => tenths(1_000_000, 'M'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_they_must_and_empty_ones_are_left_out() {
        let columns = [("A", Side::Left), ("NONE", Side::Left), ("N", Side::Right), ("LAST", Side::Left)];
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        let rows = [row(["é", "", "1", "x"]), row(["long", "", "200", ""])];
        assert_eq!(table(&columns, &rows), "A       N  LAST\né       1  x\nlong  200\n");
        assert_eq!(table(&columns, &[]), "\n");
    }

    #[test]
    fn durations_and_figures_are_short() {
        for (seconds, expected) in [
            (0.0, "0 ms"),
            (0.049, "49 ms"),
            (9.99, "9.9 s"),
            (59.9, "59 s"),
            (185.0, "3 min 05 s"),
            (7_620.0, "2 h 07 min"),
            (273_600.0, "3 d 4 h"),
        ] {
            let span = Span::from(std::time::Duration::from_secs_f64(seconds));
            assert_eq!(duration(span), expected);
        }
        for (figure, expected) in [(0, "0"), (999, "999"), (12_345, "12.3k"), (4_567_890, "4.5M")] {
            assert_eq!(count(figure), expected);
        }
    }
}
