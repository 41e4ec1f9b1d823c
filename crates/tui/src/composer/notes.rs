//! What is said to lines of diffs and not sent: a list for each agent, which nothing but its person overwrites, and the
//! one that is being written, whose text is a draft of its own before the agent's.

use midturn_core::rules::id::AgentName;
use midturn_view::review::{COMMENTS_MAX, Comment, full, read, too_long};

use super::{Composer, Draft};

/// A comment that is being written.
#[derive(Debug)]
pub(super) struct Note {
    /// The line that it is on, and what it said when it was begun.
    comment: Comment,
    pub(super) draft: Draft,
}

impl Composer {
    /// The comment that is being written, as it was begun.
    pub fn noting(&self) -> Option<&Comment> {
        self.note.as_ref().map(|note| &note.comment)
    }

    /// What was said to lines of the chosen agent's diff and not sent, but for what is being written.
    pub fn comments(&self) -> impl Iterator<Item = &Comment> {
        let noting = self.noting();
        let all = self.comments.get(&self.chosen).into_iter().flatten();
        all.filter(move |comment| !noting.is_some_and(|noting| noting.is_beside(comment)))
    }

    /// Begins a comment on a line, or goes on with what is written there.
    ///
    /// # Errors
    /// There are too many; nothing has begun.
    pub fn note(&mut self, comment: Comment) -> Result<(), String> {
        self.keep_note()?;
        let known = self.comments().find(|known| known.is_beside(&comment)).cloned();
        if known.is_none() && self.comments().count() >= COMMENTS_MAX {
            return Err(full());
        }
        let mut draft = Draft::default();
        let comment = known.unwrap_or(comment);
        draft.insert(&comment.text);
        self.note = Some(Note { comment, draft });
        Ok(())
    }

    /// What is being written stands at its line from now on; nothing that is written is no comment any more.
    ///
    /// # Errors
    /// It is too long, and goes on being written.
    pub fn keep_note(&mut self) -> Result<(), String> {
        let Some(comment) = self.written() else { return Ok(()) };
        if let Some(why) = too_long(&comment.text) {
            return Err(why);
        }
        self.note = None;
        let all = self.comments.entry(self.chosen.clone()).or_default();
        all.retain(|known| !known.is_beside(&comment));
        if !comment.text.is_empty() {
            all.push(comment);
        }
        self.unsaved = true;
        Ok(())
    }

    /// Somebody looks elsewhere: what is being written is kept; what is too long for that is in the history.
    pub(crate) fn leave_note(&mut self) {
        if self.keep_note().is_err() {
            let text = self.text();
            self.note = None;
            self.history.add(text);
        }
    }

    /// The comment that is being written, with what is written.
    fn written(&self) -> Option<Comment> {
        let note = self.note.as_ref()?;
        let mut comment = note.comment.clone();
        comment.text = note.draft.text().trim().to_owned();
        Some(comment)
    }

    /// What is to go out as one message: it is sent from now on.
    pub fn take_comments(&mut self) -> Vec<Comment> {
        let all = self.comments.entry(self.chosen.clone()).or_default();
        let rest = all.split_off(all.len().min(COMMENTS_MAX));
        self.unsaved = true;
        std::mem::replace(all, rest)
    }

    /// A message that came back: one of comments is comments again, beside what was said to other lines since.
    /// `false`: it is another one.
    pub(super) fn comments_back(&mut self, agent: &AgentName, text: &str) -> bool {
        let Some(back) = read(text) else { return false };
        let all = self.comments.entry(agent.clone()).or_default();
        let mut back: Vec<Comment> =
            back.into_iter().filter(|one| !all.iter().any(|known| known.is_beside(one))).collect();
        back.append(all);
        *all = back;
        self.unsaved = true;
        true
    }

    /// All that was said to lines and not sent, by agent.
    pub(super) fn all_comments(&self) -> Vec<(AgentName, Vec<Comment>)> {
        let mut all = self.comments.clone();
        if let Some(comment) = self.written().filter(|comment| !comment.text.is_empty()) {
            let its = all.entry(self.chosen.clone()).or_default();
            its.retain(|known| !known.is_beside(&comment));
            its.push(comment);
        }
        all.into_iter().filter(|(_, comments)| !comments.is_empty()).collect()
    }
}
