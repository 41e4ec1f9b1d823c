//! How a turn's calls are cut into batches and segments (semantics.md, section 1).

use std::ops::Range;
use std::sync::Arc;

use super::id::CallId;
use super::settings::{Concurrency, Settings};

/// A call, and what its tool says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedCall {
    /// The call.
    pub id: CallId,
    /// The tool.
    pub name: Arc<str>,
    /// Whether it may run beside others.
    pub safe: bool,
    /// Whether it can be aborted.
    pub abortable: bool,
    /// The file it edits, if it edits one.
    pub edits: Option<Arc<str>>,
}

impl PlannedCall {
    /// A call that changes things and can be aborted.
    pub fn serial(id: CallId, name: Arc<str>) -> Self {
        Self { id, name, safe: false, abortable: true, edits: None }
    }

    fn is_edit(&self) -> bool {
        matches!(&*self.name, "edit" | "write")
    }
}

/// What runs between two boundaries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The number of its batch in the turn, from 1.
    pub batch: u32,
    /// Its calls.
    pub calls: Range<usize>,
    /// Whether only `urgent` tears it from the segment before it (`keep_edits_together`).
    pub glued: bool,
}

/// The segments of a turn: a whole concurrent batch each, or one call of a serial batch.
pub fn segments(calls: &[PlannedCall], settings: &Settings) -> Vec<Segment> {
    if settings.concurrency == Concurrency::All && !calls.is_empty() {
        return vec![Segment { batch: 1, calls: 0..calls.len(), glued: false }];
    }
    let mut segments: Vec<Segment> = Vec::new();
    for (i, call) in calls.iter().enumerate() {
        let previous = i.checked_sub(1).map(|p| &calls[p]);
        match (previous, segments.last_mut()) {
            (Some(p), Some(last)) if p.safe && call.safe => last.calls.end = i + 1,
            (Some(p), Some(last)) if !p.safe && !call.safe => {
                let glued = settings.keep_edits_together && p.is_edit() && call.is_edit();
                let batch = last.batch;
                segments.push(Segment { batch, calls: i..i + 1, glued });
            }
            (_, last) => {
                let batch = last.map_or(1, |last| last.batch + 1);
                segments.push(Segment { batch, calls: i..i + 1, glued: false });
            }
        }
    }
    segments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(layout: &str) -> Vec<PlannedCall> {
        let name = |c| match c {
            'r' => "read",
            'e' => "edit",
            _ => "bash",
        };
        let call = |(i, c): (usize, char)| PlannedCall {
            id: CallId::new(format!("c{i}")),
            name: name(c).into(),
            safe: c == 'r',
            abortable: true,
            edits: None,
        };
        layout.chars().enumerate().map(call).collect()
    }

    fn shape(layout: &str, settings: &Settings) -> String {
        let parts: Vec<String> = segments(&calls(layout), settings)
            .iter()
            .map(|s| format!("{}{}{}", if s.glued { "+" } else { "" }, s.batch, &layout[s.calls.clone()]))
            .collect();
        parts.join(" ")
    }

    #[test]
    fn batches_are_maximal_and_serial_ones_have_a_boundary_between_calls() {
        let settings = Settings::default();
        for (layout, expected) in
            [("", ""), ("rrreeb", "1rrr 2e 2e 2b"), ("brre", "1b 2rr 3e"), ("rer", "1r 2e 3r")]
        {
            assert_eq!(shape(layout, &settings), expected);
        }
    }

    #[test]
    fn settings_glue_edits_or_make_one_segment() {
        let keep = Settings { keep_edits_together: true, ..Settings::default() };
        assert_eq!(shape("eebee", &keep), "1e +1e 1b 1e +1e");
        assert_eq!(shape("ere", &keep), "1e 2r 3e");
        let all = Settings { concurrency: Concurrency::All, ..Settings::default() };
        assert_eq!(shape("reb", &all), "1reb");
    }
}
