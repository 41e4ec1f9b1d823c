//! All that the terminal knows. One owner: [`update`](crate::update) changes it, [`draw`](crate::draw) reads it.

mod ours;

use std::collections::BTreeMap;

use midturn_core::rules::id::{AgentName, CallId, MessageId};
use midturn_core::rules::limits::Money;
use midturn_core::rules::mail::Urgency;
use midturn_core::rules::time::{Micros, Span};
use midturn_core::rules::view::{Agent, Ask};
use midturn_view::agents::{Class, Order};
use midturn_view::fold::Session;
use midturn_view::inbox::{Need, Told};
use midturn_view::review;
use midturn_wire::{agent::Context, work::Conflict};
use ratatui::layout::Size;

pub use self::ours::Ours;
use crate::changes::{Changes, Remark, Remarks};
use crate::composer::Composer;
use crate::composer::drafts::Saved;
use crate::effect::Outgoing;
use crate::layouts::Layouts;
use crate::look::{Tone, dollars};
use crate::older::Older;
use crate::player::Player;
use crate::settings::Settings;
use crate::what_if::WhatIf;

/// So long a request rests after it was drawn before a key answers it: who was typing has not read it.
pub const REST: Span = Span::millis(400);

/// How long a notice stays.
pub const NOTICE: Span = Span::secs(12);

/// How long after a key the drafts are kept on disk.
pub const SAVE_AFTER: Span = Span::millis(300);

/// So long after its process is there again a session may not have been taken up yet.
pub const TAKE_UP: Span = Span::secs(30);

/// How many messages are on their way at once: a text that a terminal gives as keys, not as a paste, is many.
pub const SENDING_MAX: usize = 16;

/// What the terminal is opened on.
#[derive(Debug, Clone)]
pub struct Opening {
    /// The session's id.
    pub id: String,
    /// Its task.
    pub title: String,
    /// Whom one talks to.
    pub lead: AgentName,
    /// When it began: since 1970.
    pub began_at: Micros,
    /// The number of its last event: until that is told it is loading.
    pub last_seq: u64,
    /// Whether anybody can be spoken to.
    pub standing: Standing,
    /// Whether a process can be asked for what is not held here.
    pub can_ask: bool,
    /// What makes our messages' ids unlike every other terminal's.
    pub seed: String,
    /// What a person has to know before anything else.
    pub notes: Vec<String>,
}

/// Whether there is anybody to speak to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// The session lives in this process: it ends when the terminal is left.
    Ours,
    /// It lives in another process.
    Theirs,
    /// It is only read; a sentence says why.
    Stored(String),
    /// The way to it was lost; a sentence says how.
    Lost(String),
}

/// What events don't say of an agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// What it cost, where prices are known.
    pub cost: Option<Money>,
    /// Whether that is counted with the table of prices, so that it is about so much (docs/decisions/0042).
    pub is_about: bool,
    /// How full its model's context is.
    pub context: Context,
    /// Its branch.
    pub branch: Option<String>,
    /// The limit that it has reached.
    pub limit: Option<String>,
    /// The merge of its branch that would not go.
    pub conflict: Option<Conflict>,
}

impl Facts {
    /// What it cost, for people.
    pub(crate) fn money(&self) -> Option<String> {
        self.cost.map(|cost| dollars(cost, self.is_about))
    }
}

/// A sentence for the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// How it looks.
    pub tone: Tone,
    /// What it says.
    pub text: String,
    /// When it came.
    pub since: Micros,
}

/// What stands where the conversation does.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Pane {
    /// The conversation.
    #[default]
    Talk,
    /// The plan.
    Plan,
    /// What was changed: `None` until it came.
    Diff(Option<Result<Box<Changes>, String>>),
    /// The request for a person's word, whole.
    Ask,
    /// What waits for the person.
    Inbox,
    /// Keys and actions.
    Help,
    /// Who did what when.
    Timeline,
}

/// Where one looks in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scroll {
    /// At its end.
    #[default]
    End,
    /// With this line of this entry at the top: what comes below never moves it.
    At {
        /// The entry.
        entry: u64,
        /// The line of it.
        line: usize,
        /// The last entry there was when one began to look: what came since is counted.
        seen: u64,
    },
}

/// Whether anybody looks at the terminal, as far as it has said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Looked {
    /// It has never said: some can't.
    #[default]
    Unsure,
    /// It is looked at.
    Yes,
    /// It is not.
    No,
}

/// How one looks at an agent.
#[derive(Debug, Clone, Default)]
pub struct Looking {
    /// Where.
    pub scroll: Scroll,
    /// The calls that are opened.
    pub open: std::collections::BTreeSet<u64>,
}

/// The completion that is open: made anew with each key, but for these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Completing {
    /// Which word is chosen.
    pub chosen: usize,
    /// Somebody went through the list: Enter takes what is chosen, and sends nothing.
    pub moved: bool,
    /// It offers what was sent before and has in it what is typed.
    pub searching: bool,
    /// Nobody wants one until the next key.
    pub closed: bool,
}

/// The request for a person's word that is drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drawn {
    /// Whose call it is.
    pub agent: AgentName,
    /// The call.
    pub call: CallId,
    /// Which request about it.
    pub since: Micros,
    /// Since when it is drawn.
    pub drawn: Micros,
}

/// All that the terminal knows.
#[derive(Debug)]
pub struct State {
    /// What it was opened on.
    pub opening: Opening,
    /// Whether there is anybody to speak to.
    pub standing: Standing,
    /// The session, as far as it was told.
    pub session: Session,
    /// What events don't say.
    pub facts: BTreeMap<AgentName, Facts>,
    /// When that was asked for last, and whether anything happened since.
    pub asked: (Micros, bool),
    /// The rows of the roster, from the most needy one.
    pub order: Order,
    /// Whom one looks at and writes to; nobody before there is anybody.
    pub chosen: Option<AgentName>,
    /// What is typed.
    pub composer: Composer,
    /// How soon what is typed acts; the receiver's default without it.
    pub level: Option<Urgency>,
    /// What stands where the conversation does.
    pub pane: Pane,
    /// How far that is scrolled, if it is not the conversation.
    pub pane_top: usize,
    /// Nothing but the conversation, so that a mouse can mark it.
    pub bare: bool,
    /// How one looks at each agent.
    pub looking: BTreeMap<AgentName, Looking>,
    /// What was read back of a conversation that is longer than what is held.
    pub older: Option<Older>,
    /// The messages of this terminal.
    pub ours: Vec<Ours>,
    /// The messages that are on their way: nothing is known of them yet.
    pub sending: Vec<Outgoing>,
    /// Those of which it will never be known whether they arrived: sent once more each has its old id.
    pub unsure: Vec<Outgoing>,
    /// How many messages there were: a part of the next one's id.
    pub sent: u64,
    /// The message whose fate the status line tells: the last one of ours to each agent.
    pub last: BTreeMap<AgentName, MessageId>,
    /// What waits for the person, the newest first.
    pub inbox: Vec<Need>,
    /// After which event that was made.
    pub inbox_seq: u64,
    /// What of it is chosen; the first without it.
    pub inbox_chosen: Option<String>,
    /// What of it was told, or seen.
    pub told: Told,
    /// Whether anybody looks at the terminal.
    pub looked: Looked,
    /// The window's title, once it was set.
    pub title: Option<String>,
    /// What is to be said.
    pub notice: Option<Notice>,
    /// The request that is drawn.
    pub drawn: Option<Drawn>,
    /// When Ctrl+C was pressed over an empty draft.
    pub leave_asked: Option<Micros>,
    /// When the process of a session that was lost was there again, until it tells something of it.
    pub found: Option<Micros>,
    /// Whether it was said what Shift+Enter does: its first press sends nothing.
    pub shift_enter_told: bool,
    /// The completion that is open.
    pub completing: Completing,
    /// What is over and can be played back.
    pub player: Option<Player>,
    /// Which message of the timeline is moved, and what came of that.
    pub what_if: WhatIf,
    /// When the drafts are to be kept on disk.
    pub save_at: Option<Micros>,
    /// The terminal is to be left.
    pub leaves: bool,
    /// How large the terminal is.
    pub size: Size,
    /// What is configured.
    pub settings: Settings,
    /// What time it is: since 1970.
    pub now: Micros,
    /// What was laid out already.
    pub layouts: Layouts,
}

impl State {
    /// Nothing is known yet.
    pub fn new(opening: Opening, settings: Settings, drafts: Saved, size: Size, now: Micros) -> Self {
        Self {
            composer: Composer::new(opening.lead.clone(), drafts),
            standing: opening.standing.clone(),
            opening,
            session: Session::default(),
            facts: BTreeMap::new(),
            asked: (Micros::default(), false),
            order: Order::default(),
            chosen: None,
            level: settings.queue_mode.then_some(Urgency::FollowUp),
            pane: Pane::default(),
            pane_top: 0,
            bare: false,
            looking: BTreeMap::new(),
            older: None,
            ours: Vec::new(),
            sending: Vec::new(),
            unsure: Vec::new(),
            sent: 0,
            last: BTreeMap::new(),
            inbox: Vec::new(),
            inbox_seq: 0,
            inbox_chosen: None,
            told: Told::default(),
            looked: Looked::default(),
            title: None,
            notice: None,
            drawn: None,
            leave_asked: None,
            found: None,
            shift_enter_told: false,
            completing: Completing::default(),
            player: None,
            what_if: WhatIf::default(),
            save_at: None,
            leaves: false,
            size,
            settings,
            now,
            layouts: Layouts::default(),
        }
    }

    /// What time it is in the session.
    pub fn t(&self) -> Micros {
        let told = self.session.view().t();
        match self.standing {
            // A clock that was set back must not let time run backwards.
            Standing::Ours | Standing::Theirs => Micros(self.now.since(self.opening.began_at).0).max(told),
            Standing::Stored(_) | Standing::Lost(_) => told,
        }
    }

    /// Whether what happened before it was opened is still being told.
    pub fn is_loading(&self) -> bool {
        let is_shown = self.player.as_ref().is_none_or(Player::is_at_end);
        is_shown && self.session.view().seq() < self.opening.last_seq
    }

    /// Whether anybody can be spoken to.
    pub fn is_live(&self) -> bool {
        matches!(self.standing, Standing::Ours | Standing::Theirs)
    }

    /// The agent that one looks at.
    pub fn agent(&self) -> Option<(&AgentName, &Agent)> {
        let name = self.chosen.as_ref()?;
        Some((name, self.session.view().agent(name)?))
    }

    /// What an agent asks first.
    pub fn ask_of(&self, agent: &AgentName) -> Option<&Ask> {
        self.session.view().open_asks().iter().find(|ask| ask.agent == *agent)
    }

    /// The request that is drawn: the chosen agent's first, else the oldest.
    pub fn ask(&self) -> Option<&Ask> {
        let of_chosen = self.chosen.as_ref().and_then(|chosen| self.ask_of(chosen));
        of_chosen.or_else(|| self.session.view().open_asks().first())
    }

    /// What an agent is to whoever looks at all of them.
    pub fn class_of(&self, name: &AgentName, agent: &Agent) -> Class {
        Class::of(agent, self.ask_of(name).is_some())
    }

    /// Says something.
    pub fn say(&mut self, tone: Tone, text: impl Into<String>) {
        self.notice = Some(Notice { tone, text: text.into(), since: self.now });
    }

    /// How one looks at the chosen agent.
    pub fn looking(&self) -> Looking {
        self.chosen.as_ref().and_then(|name| self.looking.get(name)).cloned().unwrap_or_default()
    }

    /// The same, to be changed; nothing before there is anybody.
    pub fn looking_mut(&mut self) -> Option<&mut Looking> {
        Some(self.looking.entry(self.chosen.clone()?).or_default())
    }

    /// What was read back of this agent's conversation, if nothing is missing behind it.
    pub fn older_of(&self, agent: &AgentName) -> Option<&Older> {
        let forgotten = self.session.conversation(agent)?.dropped();
        self.older.as_ref().filter(|older| older.agent == *agent && older.forgotten == forgotten)
    }

    /// What is said to the chosen agent's diff.
    pub fn remarks(&self, changes: &Changes) -> Remarks {
        let Some((name, agent)) = self.agent() else { return Remarks::default() };
        let sent = review::sent(agent, self.session.conversation(name)).into_iter().map(|sent| Remark {
            comment: sent.comment,
            says: Some(sent.says),
            reply: sent.reply,
        });
        let unsent = self.composer.comments().map(|comment| Remark {
            comment: comment.clone(),
            says: None,
            reply: None,
        });
        let sending = self.sending.iter().filter(|message| message.to == *name);
        let told = |id| agent.queue.iter().any(|message| message.id == id);
        let sending = sending.filter(|message| !told(message.id.clone())).flat_map(|message| {
            review::read(&message.text).unwrap_or_default().into_iter().map(|comment| Remark {
                comment,
                says: Some("is being sent".to_owned()),
                reply: None,
            })
        });
        let mut remarks = Remarks::default();
        for remark in sent.chain(sending).chain(unsent) {
            match changes.lines.row_of(&remark.comment) {
                Some(row) => remarks.at.entry(row).or_default().push(remark),
                None => remarks.gone.push(remark),
            }
        }
        remarks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_that_is_counted_with_the_table_is_about_so_much() {
        let cost: Option<Money> = Some("1.23".parse().unwrap());
        for (cost, is_about, shown) in
            [(cost, false, Some("$1.23")), (cost, true, Some("~$1.23")), (None, true, None)]
        {
            let facts = Facts { cost, is_about, ..Facts::default() };
            assert_eq!(facts.money().as_deref(), shown);
        }
    }
}
