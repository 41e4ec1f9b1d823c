//! The mail of one agent, as far as its events have told of it.

use std::io;

use midturn_core::rules::mail::ReturnReason;

use crate::spool::{Joined, Listed, Mailbox, Message, State};

/// As many of an agent's messages are followed that nothing more happens to; the newest.
const MOST_SETTLED: usize = 512;

/// For so many looks a line that shows it may still come.
const PATIENCE: u32 = 8;

/// A message that its agent's events have told of.
pub(super) struct Letter {
    order: u64,
    key: u64,
    pub(super) message: Message,
    /// Whether its end has been told, too.
    pub(super) is_settled: bool,
    /// How often it was found read though no line of the transcript shows it.
    unseen: u32,
}

/// All of them, in order of arrival.
#[derive(Default)]
pub(super) struct Letters(Vec<Letter>);

/// What has become of letters since the last look.
#[derive(Default)]
pub(super) struct Moved {
    /// They came: their places.
    pub(super) came: Vec<usize>,
    /// They will never be read: when, which, and why.
    pub(super) returned: Vec<(u64, usize, ReturnReason)>,
}

impl Letters {
    /// Looks into the mailbox.
    ///
    /// # Errors
    /// The spool can't be read.
    pub(super) fn look(&mut self, joined: &Joined, agent: &str) -> io::Result<Moved> {
        let mut moved = Moved::default();
        let Some(mailbox) = joined.mailbox(agent) else { return Ok(moved) };
        self.forget();
        for listed in mailbox.listed()? {
            let Some(place) = self.place_of(&mailbox, &listed, &mut moved)? else { continue };
            let letter = &mut self.0[place];
            if letter.is_settled {
                continue;
            }
            match listed.state {
                State::Queued => {}
                State::Injected => letter.unseen += 1,
                State::Returned(reason) => {
                    letter.is_settled = true;
                    moved.returned.push((mailbox.came(&listed), place, reason));
                }
            }
        }
        Ok(moved)
    }

    fn place_of(
        &mut self,
        mailbox: &Mailbox,
        listed: &Listed,
        moved: &mut Moved,
    ) -> io::Result<Option<usize>> {
        let (order, key) = (listed.name.order, listed.name.key);
        if let Some(place) = self.0.iter().position(|known| known.order == order && known.key == key) {
            return Ok(Some(place));
        }
        let Some(message) = mailbox.message(listed)?.filter(|message| message.sender().is_some()) else {
            return Ok(None);
        };
        moved.came.push(self.0.len());
        self.0.push(Letter { order, key, message, is_settled: false, unseen: 0 });
        Ok(Some(self.0.len() - 1))
    }

    pub(super) fn at(&self, place: usize) -> &Letter {
        &self.0[place]
    }

    /// Those that wait and fit, which have been read by that.
    pub(super) fn read(&mut self, fits: impl Fn(&Message) -> bool) -> Vec<&Message> {
        self.settled(|letter| fits(&letter.message))
    }

    /// Those that the mailbox has as read, and no line that was looked at shows: a transcript that is read from its
    /// middle, or what the program has delivered in words of its own.
    pub(super) fn read_unseen(&mut self) -> Vec<&Message> {
        self.settled(|letter| letter.unseen > PATIENCE)
    }

    /// Those that wait and are so; from now on they don't.
    fn settled(&mut self, are: impl Fn(&Letter) -> bool) -> Vec<&Message> {
        let waiting = self.0.iter_mut().filter(|letter| !letter.is_settled && are(letter));
        let settled = waiting.map(|letter| {
            letter.is_settled = true;
            &letter.message
        });
        settled.collect()
    }

    /// Between two looks: no place is remembered then.
    fn forget(&mut self) {
        let settled = self.0.iter().filter(|letter| letter.is_settled).count();
        let mut too_many = settled.saturating_sub(2 * MOST_SETTLED);
        if too_many > 0 {
            too_many += MOST_SETTLED;
            self.0.retain(|letter| {
                let goes = letter.is_settled && too_many > 0;
                too_many -= usize::from(goes);
                !goes
            });
        }
    }
}
