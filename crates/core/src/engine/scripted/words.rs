//! A scripted reply while it is said, word by word (scenarios.md, section 2): the n-th of its
//! k words is out at `takes` · n / k, those of the thinking before those of the text.

use super::ScriptedReply;
use crate::engine::ports::Progress;
use crate::rules::time::{Micros, Span};

/// What of a reply is out, and who hears it.
pub(super) struct Words<'a> {
    entry: &'a ScriptedReply,
    progress: &'a dyn Progress,
    /// How many words it has.
    all: u64,
    /// How many of them are out.
    out: u64,
    /// How far the thinking and the text were told, in bytes.
    thought: usize,
    told: usize,
}

impl<'a> Words<'a> {
    pub(super) fn new(entry: &'a ScriptedReply, progress: &'a dyn Progress) -> Self {
        let count = |text: &str| text.split_whitespace().count() as u64;
        let all = count(&entry.thinking) + count(&entry.text);
        Self { entry, progress, all, out: 0, thought: 0, told: 0 }
    }

    /// When the next word is out, of a reply that began then. `None`: not before the end.
    pub(super) fn next(&self, begun: Micros) -> Option<Micros> {
        let timed = self.entry.ends_after.is_none() && self.out < self.all;
        let takes = u128::from(self.entry.takes.0);
        let due = (takes * u128::from(self.out + 1)).div_ceil(u128::from(self.all.max(1)));
        timed.then(|| begun.after(Span(u64::try_from(due).unwrap_or(u64::MAX))))
    }

    /// Says what is out after so long.
    pub(super) fn say(&mut self, elapsed: Span) {
        let out = match (&self.entry.ends_after, self.entry.takes.0) {
            (Some(_), _) => 0,
            (None, 0) => self.all,
            (None, takes) => {
                let out = u128::from(elapsed.0) * u128::from(self.all) / u128::from(takes);
                u64::try_from(out).unwrap_or(u64::MAX).min(self.all)
            }
        };
        self.say_words(out);
    }

    /// Says every word.
    pub(super) fn say_all(&mut self) {
        self.say_words(self.all);
    }

    /// Says the white space behind the last word of the text: the reply is whole.
    pub(super) fn end(&mut self) {
        self.say_all();
        let rest = &self.entry.text[self.told..];
        if !rest.is_empty() {
            self.progress.text(rest);
            self.told = self.entry.text.len();
        }
    }

    /// One piece of each kind at most, up to the end of its last word, white space kept.
    fn say_words(&mut self, out: u64) {
        let (thinking, text) = (self.entry.thinking.as_str(), self.entry.text.as_str());
        let (mut thought, mut told) = (self.thought, self.told);
        while self.out < out {
            match end_of_word(thinking, thought) {
                Some(end) => thought = end,
                None => told = end_of_word(text, told).unwrap_or(text.len()),
            }
            self.out += 1;
        }
        if thought > self.thought {
            self.progress.thinking(&thinking[self.thought..thought]);
            if end_of_word(thinking, thought).is_none() {
                self.progress.thinking_done();
            }
        }
        if told > self.told {
            self.progress.text(&text[self.told..told]);
        }
        (self.thought, self.told) = (thought, told);
    }
}

/// Where the next word ends.
fn end_of_word(text: &str, from: usize) -> Option<usize> {
    let begin = from + text[from..].find(|c: char| !c.is_whitespace())?;
    let len = text[begin..].find(char::is_whitespace).unwrap_or(text.len() - begin);
    Some(begin + len)
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;

    /// What was heard: each piece with the kind it is of.
    #[derive(Default)]
    struct Heard(Mutex<Vec<String>>);

    impl Progress for Heard {
        fn sent(&self) {}
        fn text(&self, delta: &str) {
            self.0.lock().push(format!("text {delta:?}"));
        }
        fn thinking(&self, delta: &str) {
            self.0.lock().push(format!("thinking {delta:?}"));
        }
        fn thinking_done(&self) {
            self.0.lock().push("thought".to_owned());
        }
        fn tokens(&self, _: u64) {}
    }

    #[test]
    fn each_word_is_out_at_its_time_and_white_space_is_kept() {
        let (thinking, text, takes) = (" Well,\n then ".into(), "\tone  two\nthree ".into(), Span(10));
        let entry = ScriptedReply { thinking, text, takes, ..ScriptedReply::default() };
        let heard = Heard::default();
        let mut words = Words::new(&entry, &heard);
        let mut due = Vec::new();
        while let Some(at) = words.next(Micros(100)) {
            due.push(at.0);
            words.say(Span(at.0 - 1 - 100));
            words.say(Span(at.0 - 100));
        }
        words.end();
        assert_eq!(due, [102, 104, 106, 108, 110]);
        let told = heard.0.lock().join(" ");
        let expected = r#"thinking " Well," thinking "\n then" thought text "\tone" text "  two" text "\nthree" text " ""#;
        assert_eq!(told, expected);
    }

    #[test]
    fn words_that_are_out_at_once_are_one_piece_and_without_a_duration_all_are_out_at_the_end() {
        let text = "one two three".to_owned();
        for (takes, elapsed, told) in
            [(9, 7, &["text \"one two\""][..]), (0, 0, &["text \"one two three\""]), (9, 2, &[])]
        {
            let entry = ScriptedReply { text: text.clone(), takes: Span(takes), ..ScriptedReply::default() };
            let heard = Heard::default();
            Words::new(&entry, &heard).say(Span(elapsed));
            assert_eq!(*heard.0.lock(), told, "{takes} {elapsed}");
        }
    }
}
