//! What is to be done besides drawing, and what came of it. Deciding that something is done and doing it
//! are two things: [`update`](crate::update) returns these, and `perform` does them.

use midturn_client::{Said, Trouble};
use midturn_core::rules::event::Event;
use midturn_core::rules::id::{AgentName, CallId, MessageId};
use midturn_core::rules::mail::Urgency;
use midturn_core::rules::settings::LimitsPatch;
use midturn_core::rules::time::Micros;
use midturn_view::inbox::Need;
use midturn_wire::agent::Agent;
use midturn_wire::work::{Diff, Started};

use crate::composer::drafts::Saved;
use crate::what_if::{Played, Shift};

/// Something to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// A message goes out.
    Send(Outgoing),
    /// An agent is stopped, and begins anew with this.
    Instead(Outgoing),
    /// A message is taken back.
    Withdraw {
        /// Whose mailbox it waits in.
        to: AgentName,
        /// It.
        id: MessageId,
        /// What it says.
        text: String,
        /// Whether it is to be edited then.
        edit: bool,
    },
    /// An agent is stopped; those of our messages that wait for it come back.
    Stop {
        /// The agent.
        agent: AgentName,
        /// Our messages, with what they say.
        ours: Vec<(MessageId, String)>,
    },
    /// A person's word on a call.
    Answer {
        /// Whose call it is.
        agent: AgentName,
        /// The call.
        call: CallId,
        /// Which request about it.
        since: Micros,
        /// The word.
        said: Said,
    },
    /// A limit is set, of one agent or of all together.
    Limit(Option<AgentName>, LimitsPatch),
    /// A stopped agent is sent on.
    Resume(AgentName),
    /// What an agent changed is asked for.
    Diff(AgentName),
    /// Who is there is asked for: what events don't say.
    Agents,
    /// The events of an agent before this one are asked for.
    Older(AgentName, u64),
    /// The session is played again with a message moved.
    Replay(Shift),
    /// A text is edited in the person's editor.
    Editor(String),
    /// A text goes to the clipboard.
    Copy(String),
    /// Nobody looks, and is told what waits for them now.
    Tell(Vec<Need>),
    /// The window's title is this.
    Title(String),
    /// The terminal goes back to the shell for a while.
    Suspend,
    /// The screen is drawn anew, whatever another program wrote on it.
    Redraw,
    /// Drafts are kept.
    Save(Saved),
}

/// A message on its way out.
#[derive(Debug, Clone, PartialEq)]
pub struct Outgoing {
    /// The receiver.
    pub to: AgentName,
    /// Our id for it: sent again under the same id it is the same message.
    pub id: MessageId,
    /// What it says.
    pub text: String,
    /// How soon it acts; the receiver's default without it.
    pub urgency: Option<Urgency>,
    /// A message of ours that it takes the place of, if that still waits.
    pub replaces: Option<MessageId>,
}

/// What came of an effect.
#[derive(Debug, Clone)]
pub enum Done {
    /// Of a message, whether it was accepted.
    Sent(Outgoing, Result<(), Trouble>),
    /// Of a withdrawal.
    Withdrawn {
        /// Whose mailbox it waited in.
        to: AgentName,
        /// The message.
        id: MessageId,
        /// What the message says.
        text: String,
        /// Whether it is to be edited.
        edit: bool,
        /// Whether it came back.
        result: Result<(), Trouble>,
    },
    /// Of a stop: what was stopped, and which of our messages came back.
    Stopped {
        /// The agent.
        agent: AgentName,
        /// Whether there was anything to stop.
        result: Result<bool, Trouble>,
        /// The texts that came back, in their order.
        back: Vec<String>,
    },
    /// Of a word.
    Answered(Result<(), Trouble>),
    /// Of a limit.
    Limited(Option<AgentName>, LimitsPatch, Result<(), Trouble>),
    /// Of sending an agent on.
    Resumed(AgentName, Result<Started, Trouble>),
    /// What an agent changed.
    Diff(AgentName, Result<Diff, Trouble>),
    /// The events of an agent before one, and before which one there are more.
    Older(AgentName, Result<(Vec<Event>, Option<u64>), Trouble>),
    /// Who is there.
    Agents(Result<Vec<Agent>, Trouble>),
    /// What came of playing again, or why nothing did.
    Replayed(Shift, Result<Box<Played>, String>),
    /// What came back from the editor.
    Edited(Result<String, String>),
    /// Whether a text is in the clipboard.
    Copied(Result<(), String>),
}
