//! What a person says to lines of a diff: a key begins a comment on the line one is at, what is typed then is the
//! comment, and another key sends all of them as one message.

use crossterm::event::{KeyCode, KeyEvent};
use midturn_core::rules::mail::Urgency;
use midturn_view::review::{Comment, message};

use super::action::not_live;
use super::send;
use crate::changes::Changes;
use crate::draw;
use crate::effect::Effect;
use crate::keys::Action;
use crate::look::Tone;
use crate::state::{Pane, SENDING_MAX, State};

/// What an action does while a comment is being written. `None`: what it always does.
pub(super) fn act(state: &mut State, action: Action, key: KeyEvent) -> Option<Vec<Effect>> {
    state.composer.noting()?;
    match action {
        Action::Send | Action::Comment => keep(state),
        Action::SendComments => return Some(send_all(state, state.level)),
        Action::Sooner if key.code != KeyCode::Enter => {
            return Some(send_all(state, Some(Urgency::NextBoundary)));
        }
        Action::Now => return Some(send_all(state, Some(Urgency::Urgent))),
        Action::Later => return Some(send_all(state, Some(Urgency::FollowUp))),
        Action::Stop => keep(state),
        Action::Instead | Action::History | Action::EditQueued => {
            state.say(Tone::Asks, "not while a comment is written: Enter keeps it at its line");
        }
        Action::Leave if state.composer.is_empty() => keep(state),
        // A letter of the comment, or a move in it.
        Action::Help | Action::Palette if super::action::types(key) => super::edit(state, key),
        Action::End if key.code == KeyCode::End && key.modifiers.is_empty() => super::edit(state, key),
        _ => return None,
    }
    Some(Vec::new())
}

fn keep(state: &mut State) {
    match state.composer.keep_note() {
        Ok(()) => {
            state.notice = None;
            state.keep_drafts();
        }
        Err(why) => state.say(Tone::Bad, why),
    }
}

/// Begins a comment on the line one is at, or says these words to it.
pub(super) fn comment(state: &mut State, words: &str) -> Vec<Effect> {
    if !state.is_live() {
        return not_live(state);
    }
    let comment = match &state.pane {
        Pane::Diff(Some(Ok(changes))) => at_cursor(state, changes),
        Pane::Diff(_) => Err("there is no diff here to comment on"),
        _ => Err("a comment goes on a line of a diff: open it first (/diff), and go to the line"),
    };
    let begun = comment.map_err(str::to_owned).and_then(|comment| state.composer.note(comment));
    let kept = begun.and_then(|()| match words {
        "" => Ok(()),
        words => state
            .composer
            .editor(words)
            .map_err(|why| why.to_string())
            .and_then(|()| state.composer.keep_note()),
    });
    match kept {
        Ok(()) => state.notice = None,
        Err(why) => state.say(Tone::Bad, why),
    }
    state.keep_drafts();
    Vec::new()
}

fn at_cursor(state: &State, changes: &Changes) -> Result<Comment, &'static str> {
    let remarks = state.remarks(changes);
    let at = changes.within(changes.cursor, &remarks);
    match usize::try_from(at) {
        Ok(row) => {
            let place = changes
                .patch
                .place(row)
                .ok_or("a comment goes on a line of code: go to one with the arrows")?;
            Ok(Comment::on(&place, ""))
        }
        Err(_) => {
            let gone = remarks.gone_at(at).filter(|remark| remark.says.is_none());
            gone.map(|remark| remark.comment.clone())
                .ok_or("this line has changed: comment on the one that is there now")
        }
    }
}

/// Sends all comments on the chosen agent's diff as one message.
pub(super) fn send_all(state: &mut State, urgency: Option<Urgency>) -> Vec<Effect> {
    if !state.is_live() {
        return not_live(state);
    }
    let Some(to) = state.chosen.clone() else { return Vec::new() };
    if let Err(why) = state.composer.keep_note() {
        state.say(Tone::Bad, why);
        return Vec::new();
    }
    if state.sending.len() >= SENDING_MAX {
        state.say(Tone::Bad, "not sent: too many messages are on their way; the comments are kept");
        return Vec::new();
    }
    let comments = state.composer.take_comments();
    if comments.is_empty() {
        state.say(Tone::Quiet, "there are no comments to send yet");
        return Vec::new();
    }
    state.keep_drafts();
    vec![Effect::Send(send::goes_out(state, to, message(&comments), urgency))]
}

impl State {
    /// Goes so many lines on in the diff that is looked at. `false`: none is.
    pub(super) fn goes(&mut self, lines: isize) -> bool {
        let Pane::Diff(Some(Ok(changes))) = &self.pane else { return false };
        let remarks = self.remarks(changes);
        let cursor = changes.within(changes.within(changes.cursor, &remarks).saturating_add(lines), &remarks);
        let top = draw::diff::top(self, changes, &remarks, cursor, draw::areas(self).pane);
        if let Pane::Diff(Some(Ok(changes))) = &mut self.pane {
            (changes.cursor, changes.top) = (cursor, top);
        }
        true
    }
}
