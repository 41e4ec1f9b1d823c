//! What a person says to lines of an agent's diff: the message that it becomes, and where it stands once the diff is
//! another one. Whoever shows a diff reads what was said to it back out of the messages, so that there is no second
//! account of it, and what was said on one face stands on every other. The page has the same
//! (crates/server/page/review.js); both are held to `tests/fold/review.json`.

use std::collections::HashMap;

use midturn_core::rules::view::Agent;
use serde::{Deserialize, Serialize};

use crate::clean::clean;
use crate::fold::{Conversation, Entry, EntryKind};
use crate::mail;
use crate::patch::{Patch, Place, Side, shortened};
use crate::words::short;

/// So many comments go as one message. With what each may have they fit into the longest one (semantics.md, section 4).
pub const COMMENTS_MAX: usize = 24;

/// How many characters a comment has at most.
pub const TEXT_MAX: usize = 2_000;

/// How many characters of its line a comment quotes.
const CODE_MAX: usize = 200;

/// How many comments that were sent are shown: the newest.
const SENT_MAX: usize = 96;

/// What stands before each line of a comment: nothing in it is taken for the beginning of another.
const INDENT: &str = "   ";

/// Said behind the number of a line that is not in the new file.
const REMOVED: &str = " (taken out)";

/// What a person says to a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comment {
    /// The file.
    pub file: String,
    /// The number of the line.
    pub line: u64,
    /// In which of both files.
    pub side: Side,
    /// What the line says, at most 200 characters of it.
    pub code: String,
    /// What is said to it.
    pub text: String,
}

impl Comment {
    /// A comment on this line.
    pub fn on(place: &Place<'_>, text: &str) -> Self {
        let Place { file, side, line, code } = place;
        let (code, text) = (shortened(code, CODE_MAX), clean(text.trim()));
        Self { file: (*file).to_owned(), line: *line, side: *side, code, text: text.trim().to_owned() }
    }

    /// Whether both are on the same line.
    pub fn is_beside(&self, other: &Self) -> bool {
        (&self.file, self.line, self.side, &self.code) == (&other.file, other.line, other.side, &other.code)
    }

    /// Where it is, for people: `src/a.rs:12`.
    pub fn whereabouts(&self) -> String {
        let side = if self.side == Side::Old { REMOVED } else { "" };
        format!("{}:{}{side}", self.file, self.line)
    }
}

/// Why a text is no comment, and what to do.
pub fn too_long(text: &str) -> Option<String> {
    let characters = text.chars().count();
    (characters > TEXT_MAX).then(|| {
        format!("a comment has at most {TEXT_MAX} characters, and this one has {characters}: shorten it")
    })
}

/// Said where no more comments fit.
pub fn full() -> String {
    format!("at most {COMMENTS_MAX} comments go as one: send these first")
}

/// The message that these comments make.
pub fn message(comments: &[Comment]) -> String {
    let mut text = match comments.len() {
        1 => "1 comment on your diff:\n".to_owned(),
        many => format!("{many} comments on your diff:\n"),
    };
    for (n, comment) in comments.iter().enumerate() {
        text.push_str(&format!("\n{}. {}\n{INDENT}> {}\n", n + 1, comment.whereabouts(), comment.code));
        comment.text.split('\n').for_each(|line| text.push_str(&format!("{INDENT}{line}\n")));
    }
    text.pop();
    text
}

/// The comments that a message is made of. `None`: it is another one.
pub fn read(text: &str) -> Option<Vec<Comment>> {
    let (head, rest) = text.split_once("\n\n")?;
    let count =
        head.strip_suffix(" comments on your diff:").or(head.strip_suffix(" comment on your diff:"))?;
    let count: usize = count.parse().ok().filter(|count| (1..=COMMENTS_MAX).contains(count))?;
    let mut lines = rest.split('\n').peekable();
    let mut comments = Vec::new();
    for n in 1..=count {
        let (file, line, side) = whereabouts(lines.next()?.strip_prefix(&format!("{n}. "))?)?;
        let code = lines.next()?.strip_prefix(INDENT)?.strip_prefix("> ")?.to_owned();
        let mut said = Vec::new();
        while let Some(line) = lines.next_if(|line| line.starts_with(INDENT)) {
            said.push(&line[INDENT.len()..]);
        }
        comments.push(Comment { file: file.to_owned(), line, side, code, text: said.join("\n") });
        // An empty line stands between two, and none behind the last.
        if lines.next().is_some_and(|line| !line.is_empty() || n == count) {
            return None;
        }
    }
    Some(comments)
}

fn whereabouts(text: &str) -> Option<(&str, u64, Side)> {
    let (text, side) = match text.strip_suffix(REMOVED) {
        Some(text) => (text, Side::Old),
        None => (text, Side::New),
    };
    let (file, line) = text.rsplit_once(':')?;
    Some((file, line.parse::<u32>().ok()?.into(), side))
}

/// Where the lines of a diff are, by what they say: each comment on it is found without a look at all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// By file and side.
    files: HashMap<String, [Codes; 2]>,
}

/// By what a line says: its numbers and rows, in this order.
type Codes = HashMap<String, Vec<(u64, usize)>>;

impl Lines {
    /// Those of this diff.
    pub fn of(patch: &Patch) -> Self {
        let mut files: HashMap<String, [Codes; 2]> = HashMap::new();
        for (row, place) in (0..patch.rows.len()).filter_map(|row| Some((row, patch.place(row)?))) {
            if !files.contains_key(place.file) {
                files.insert(place.file.to_owned(), Default::default());
            }
            let sides = files.get_mut(place.file);
            let Some(codes) = sides.and_then(|sides| sides.get_mut(place.side as usize)) else { continue };
            codes.entry(shortened(place.code, CODE_MAX)).or_default().push((place.line, row));
        }
        files.values_mut().flatten().flat_map(HashMap::values_mut).for_each(|places| places.sort_unstable());
        Self { files }
    }

    /// The row that a comment stands at: its line, also where that has moved. `None`: the line has changed, or is no part of
    /// the diff any more.
    pub fn row_of(&self, comment: &Comment) -> Option<usize> {
        let places = self.files.get(&comment.file)?.get(comment.side as usize)?.get(&comment.code)?;
        let first_from = |line: u64| places.partition_point(|(known, _)| *known < line);
        let behind = first_from(comment.line);
        let before = behind.checked_sub(1).and_then(|last| places.get(first_from(places.get(last)?.0)));
        let nearest = before.into_iter().chain(places.get(behind));
        let (line, row) = nearest.min_by_key(|(line, row)| (line.abs_diff(comment.line), *row))?;
        // A brace is everywhere: one that has moved is as well another.
        let is_known = comment.code.chars().any(char::is_alphanumeric) || *line == comment.line;
        is_known.then_some(*row)
    }
}

/// A comment that was sent, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// It.
    pub comment: Comment,
    /// What became of its message.
    pub says: String,
    /// What the agent said then.
    pub reply: Option<String>,
}

/// The comments that were sent to an agent, the oldest first, as far as its conversation is known.
pub fn sent(agent: &Agent, conversation: Option<&Conversation>) -> Vec<Sent> {
    let entries: Vec<&Entry> =
        conversation.into_iter().flat_map(|all| all.entries().map(|(_, it)| it)).collect();
    let mut all = Vec::new();
    let mut add = |from: &str, text: &str, says: String, reply: Option<String>| {
        let comments = if from == "user" { read(text) } else { None }.unwrap_or_default();
        all.extend(comments.into_iter().map(|comment| Sent {
            comment,
            says: says.clone(),
            reply: reply.clone(),
        }));
    };
    for (at, entry) in entries.iter().enumerate() {
        match &entry.kind {
            EntryKind::Injected(mail) => mail.letters.iter().for_each(|letter| {
                add(&letter.from, &letter.text, mail::injected(mail), reply(&entries[at + 1..]));
            }),
            EntryKind::Returned { letter, reason } => {
                add(&letter.from, &letter.text, mail::returned(*reason).to_owned(), None);
            }
            _ => {}
        }
    }
    for message in &agent.queue {
        add(&message.from, &message.text, mail::waits(message.urgency, agent).to_owned(), None);
    }
    all.split_off(all.len().saturating_sub(SENT_MAX))
}

/// The next thing that is said, on a line.
fn reply(behind: &[&Entry]) -> Option<String> {
    behind.iter().find_map(|entry| match &entry.kind {
        EntryKind::Reply { text, .. } => Some(short(text)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn comment(file: &str, line: u64, code: &str, text: &str) -> Comment {
        let side = if line.is_multiple_of(2) { Side::Old } else { Side::New };
        Comment::on(&Place { file, side, line, code }, text)
    }

    #[test]
    fn all_that_a_message_of_comments_may_have_fits_into_one() {
        let file = "😀".repeat(301);
        for text in ["😀".repeat(TEXT_MAX), format!("a{}b", "\n".repeat(TEXT_MAX - 2))] {
            let one = comment(&file, u64::from(u32::MAX - 1), &"😀".repeat(400), &text);
            assert_eq!((too_long(&text), one.code.chars().count()), (None, CODE_MAX + 1));
            let all = vec![one; COMMENTS_MAX];
            let text = message(&all);
            assert!(text.len() <= 256 << 10, "{} bytes", text.len());
            assert_eq!(read(&text), Some(all));
        }
        assert_eq!(too_long(&"x".repeat(TEXT_MAX + 1)).unwrap().split(':').count(), 2);
    }

    /// The row of a comment, by a look at all lines.
    fn looked_for(comment: &Comment, patch: &Patch) -> Option<usize> {
        let all = (0..patch.rows.len()).filter_map(|row| Some((row, patch.place(row)?)));
        let its = all.filter(|(_, place)| Comment::on(place, &comment.text).code == comment.code);
        let its = its.filter(|(_, place)| place.file == comment.file && place.side == comment.side);
        let nearest = its.min_by_key(|(_, place)| place.line.abs_diff(comment.line))?;
        let is_known = comment.code.chars().any(char::is_alphanumeric) || nearest.1.line == comment.line;
        is_known.then_some(nearest.0)
    }

    proptest! {
        /// Also where hunks come in any order, and the same file twice.
        #[test]
        fn a_comment_is_found_where_a_look_at_all_lines_finds_it(
            hunks in prop::collection::vec((prop::bool::ANY, 0..30_u64, "([ +-][}a]\n){1,8}"), 1..5),
            line in 0..40_u64, code in "[}a]", old in prop::bool::ANY, a in prop::bool::ANY,
        ) {
            let name = |a| if a { "a" } else { "b" };
            let text: String = hunks.iter().map(|(a, at, lines)| {
                let name = name(*a);
                format!("diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -{at},8 +{at},8 @@\n{lines}")
            }).collect();
            let patch = Patch::read(&text);
            let side = if old { Side::Old } else { Side::New };
            let comment = Comment::on(&Place { file: name(a), side, line, code: &code }, "Why?");
            prop_assert_eq!(Lines::of(&patch).row_of(&comment), looked_for(&comment, &patch));
        }

        /// Whatever is said to whatever line, it is read as it was said, and no part of it as something else.
        #[test]
        fn what_is_sent_is_read_back(
            said in prop::collection::vec(("[a-z:. ()]{1,9}", 0..99_u64, "[ >a1.:\t]{0,9}", "[ 12.>a:\n\u{1b}]{0,20}"), 1..5),
        ) {
            let all: Vec<_> = said.iter().map(|(file, line, code, text)| comment(file, *line, code, text)).collect();
            prop_assert_eq!(read(&message(&all)), Some(all));
        }

        #[test]
        fn what_is_no_such_message_is_none(text in "([0-9]{1,3} comments? on your diff:)?[ \n>a1.:]{0,40}") {
            if let Some(all) = read(&text) {
                prop_assert_eq!(message(&all).matches('\n').count(), text.matches('\n').count());
            }
        }
    }
}
