//! The table of actions: the one place that says what can be done here, by which key, and by which word.

use crossterm::event::{KeyCode, KeyModifiers};

use super::key::Key;

/// What a person can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Send the draft as the receiver's default has it.
    Send,
    /// Send it as `next_boundary`.
    Sooner,
    /// Send it as `urgent`.
    Now,
    /// Send it as `follow_up`.
    Later,
    /// Stop the agent and send the draft.
    Instead,
    /// Allow the request that is drawn.
    Once,
    /// Allow it, and its like, for as long as the session lives.
    Always,
    /// Deny it.
    No,
    /// Switch how soon Enter's message acts.
    Level,
    /// A line's end in the draft.
    Newline,
    /// Close what is open, else stop the agent.
    Stop,
    /// Make the last queued message a draft again.
    EditQueued,
    /// Let the last queued message act sooner.
    SoonerQueued,
    /// Take the last queued message back.
    Withdraw,
    /// Set a stopped agent to work again.
    Resume,
    /// Set a limit.
    Limit,
    /// Show the agent of this name.
    Agent,
    /// Show the agent in this place of the roster, from 1.
    AgentAt(u8),
    /// Show the next agent.
    NextAgent,
    /// Show the one before.
    PreviousAgent,
    /// Open the last call, or close it.
    OpenCall,
    /// Scroll back.
    PageUp,
    /// Scroll on.
    PageDown,
    /// Go to the beginning.
    Top,
    /// Go to the end and follow it.
    End,
    /// Show the plan.
    Plan,
    /// Show who did what when.
    Timeline,
    /// Go to the next message of the timeline.
    NextMessage,
    /// Go to the message before.
    PreviousMessage,
    /// Play what is over again, with that message moved.
    Shift,
    /// Play back what is over, or wait.
    Play,
    /// Show the next thing that happened.
    Step,
    /// Go one thing back.
    Back,
    /// Play faster.
    Faster,
    /// Play more slowly.
    Slower,
    /// Go to a moment.
    To,
    /// Show what waits for the person, or go to one of it.
    Inbox,
    /// Show what the agent changed.
    Diff,
    /// Comment on the line of the diff that one is at.
    Comment,
    /// Send the comments as one message.
    SendComments,
    /// One pane without borders, for the terminal's own selection.
    Bare,
    /// Copy the last answer.
    Copy,
    /// Write the draft in an editor.
    Editor,
    /// Search what was sent before.
    History,
    /// Draw the screen anew.
    Redraw,
    /// Give the terminal back for a while.
    Suspend,
    /// Clear the draft; leave when there is none.
    Leave,
    /// Leave at once.
    Quit,
    /// Show all keys.
    Help,
    /// Show all actions.
    Palette,
}

/// What stands behind an action's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Words {
    /// Nothing.
    None,
    /// What this names, or nothing.
    Some(&'static str),
    /// What this names.
    Needed(&'static str),
}

/// An action with all that is said of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// What it does.
    pub action: Action,
    /// Its name in the configuration, and behind `/`.
    pub name: &'static str,
    /// The keys it has when nobody says otherwise.
    pub keys: &'static [Key],
    /// What it does, for people.
    pub help: &'static str,
    /// What stands behind its word.
    pub words: Words,
}

impl Row {
    /// How it is written as words: `/no [REASON]`.
    pub fn written(&self) -> String {
        match self.words {
            Words::None => format!("/{}", self.name),
            Words::Some(what) => format!("/{} [{what}]", self.name),
            Words::Needed(what) => format!("/{} {what}", self.name),
        }
    }
}

const fn row(
    action: Action,
    name: &'static str,
    keys: &'static [Key],
    words: Words,
    help: &'static str,
) -> Row {
    Row { action, name, keys, help, words }
}

const fn plain(code: KeyCode) -> Key {
    Key::plain(code)
}

const fn ctrl(character: char) -> Key {
    Key::ctrl(character)
}

const fn alt(character: char) -> Key {
    Key::alt(character)
}

const SHIFT_ENTER: Key = Key::new(KeyCode::Enter, KeyModifiers::SHIFT);
const ALT_ENTER: Key = Key::new(KeyCode::Enter, KeyModifiers::ALT);
const ALT_UP: Key = Key::new(KeyCode::Up, KeyModifiers::ALT);
const ALT_BACKSPACE: Key = Key::new(KeyCode::Backspace, KeyModifiers::ALT);
const SHIFT_TAB: Key = Key::new(KeyCode::Tab, KeyModifiers::SHIFT);
const CTRL_HOME: Key = Key::new(KeyCode::Home, KeyModifiers::CONTROL);
const CTRL_END: Key = Key::new(KeyCode::End, KeyModifiers::CONTROL);
const TEXT: Words = Words::Some("TEXT");
const NUMBER: Words = Words::Some("NUMBER");
const NONE: Words = Words::None;

/// All actions, in the order they are shown in.
#[rustfmt::skip]
pub const TABLE: &[Row] = &[
    row(Action::Send, "send", &[plain(KeyCode::Enter)], NONE, "send the draft, as soon as its receiver's default says"),
    row(Action::Sooner, "soon", &[ctrl('s'), SHIFT_ENTER], TEXT, "send between two tools: those that have not begun are skipped"),
    row(Action::Now, "now", &[ctrl('x')], TEXT, "send at once: what runs is ended"),
    row(Action::Later, "later", &[ALT_ENTER], TEXT, "send for when the agent would otherwise be done"),
    row(Action::Instead, "instead", &[alt('x')], Words::Needed("TEXT"), "stop what the agent does and send"),
    row(Action::Level, "level", &[alt('u')], NONE, "switch how soon Enter's message acts"),
    row(Action::Once, "yes", &[ctrl('y')], NONE, "allow what is asked, once"),
    row(Action::Always, "always", &[alt('a')], NONE, "allow it, and its like, in this session"),
    row(Action::No, "no", &[ctrl('n')], Words::Some("REASON"), "say no to it; the model reads the reason"),
    row(Action::Stop, "stop", &[plain(KeyCode::Esc), ctrl('\\')], NONE, "close what is open, else stop the agent; its queue comes back as drafts"),
    row(Action::Resume, "resume", &[], NONE, "set a stopped agent to work again"),
    row(Action::Limit, "limit", &[], Words::Needed("max_turns=60 max_cost=5"), "set the agent's limits; one that had used them up goes on"),
    row(Action::EditQueued, "edit_queued", &[ALT_UP], NUMBER, "make the last queued message, or this one, a draft again"),
    row(Action::SoonerQueued, "sooner_queued", &[alt('r')], NUMBER, "let the last queued message, or this one, act sooner"),
    row(Action::Withdraw, "withdraw", &[ALT_BACKSPACE], NUMBER, "take the last queued message, or this one, back"),
    row(Action::Newline, "newline", &[ctrl('j')], NONE, "begin a new line in the draft"),
    row(Action::Editor, "editor", &[ctrl('g')], NONE, "write the draft in your editor"),
    row(Action::History, "history", &[ctrl('r')], NONE, "search what you sent before"),
    row(Action::Agent, "agent", &[], Words::Needed("NAME"), "show this agent"),
    row(Action::NextAgent, "next_agent", &[plain(KeyCode::Tab)], NONE, "show the next agent"),
    row(Action::PreviousAgent, "previous_agent", &[SHIFT_TAB], NONE, "show the agent before"),
    row(Action::AgentAt(1), "agent_1", &[alt('1')], NONE, "show the first agent"),
    row(Action::AgentAt(2), "agent_2", &[alt('2')], NONE, "show the second agent"),
    row(Action::AgentAt(3), "agent_3", &[alt('3')], NONE, "show the third agent"),
    row(Action::AgentAt(4), "agent_4", &[alt('4')], NONE, "show the fourth agent"),
    row(Action::AgentAt(5), "agent_5", &[alt('5')], NONE, "show the fifth agent"),
    row(Action::AgentAt(6), "agent_6", &[alt('6')], NONE, "show the sixth agent"),
    row(Action::AgentAt(7), "agent_7", &[alt('7')], NONE, "show the seventh agent"),
    row(Action::AgentAt(8), "agent_8", &[alt('8')], NONE, "show the eighth agent"),
    row(Action::AgentAt(9), "agent_9", &[alt('9')], NONE, "show the ninth agent"),
    row(Action::Inbox, "inbox", &[alt('i')], NUMBER, "show what waits for you, or go to this one"),
    row(Action::OpenCall, "open_call", &[ctrl('o')], NONE, "open the last call, or close it"),
    row(Action::PageUp, "page_up", &[plain(KeyCode::PageUp)], NONE, "scroll back"),
    row(Action::PageDown, "page_down", &[plain(KeyCode::PageDown)], NONE, "scroll on"),
    row(Action::Top, "top", &[CTRL_HOME], NONE, "go to the beginning"),
    row(Action::End, "end", &[plain(KeyCode::End), CTRL_END], NONE, "go to the end and follow it"),
    row(Action::Plan, "plan", &[ctrl('p')], NONE, "show the plan"),
    row(Action::Timeline, "timeline", &[ctrl('t')], NONE, "show who did what when"),
    row(Action::NextMessage, "next_message", &[plain(KeyCode::Down)], NONE, "go to the next message of the timeline"),
    row(Action::PreviousMessage, "previous_message", &[plain(KeyCode::Up)], NONE, "go to the message before"),
    row(Action::Shift, "shift", &[], Words::Needed("1.2s"), "what if that message had come so much later, or sooner (-500ms)"),
    row(Action::Play, "play", &[plain(KeyCode::Char(' '))], NONE, "play back what is over, or wait; at the end from the beginning"),
    row(Action::Step, "step", &[plain(KeyCode::Right)], NONE, "show the next thing that happened in what is played back; move the message 0.1 s later"),
    row(Action::Back, "back", &[plain(KeyCode::Left)], NONE, "go one thing back in what is played back; move the message 0.1 s sooner"),
    row(Action::Faster, "faster", &[plain(KeyCode::Char('+'))], NONE, "play faster; move the message 1 s later"),
    row(Action::Slower, "slower", &[plain(KeyCode::Char('-'))], NONE, "play more slowly; move the message 1 s sooner"),
    row(Action::To, "to", &[], Words::Needed("2.5s"), "go to this moment of what is played back"),
    row(Action::Diff, "diff", &[alt('d')], NONE, "show what the agent changed"),
    row(Action::Comment, "comment", &[alt('m')], TEXT, "comment on the line of the diff that the arrows went to; Enter keeps it"),
    row(Action::SendComments, "send_comments", &[alt('s')], NONE, "send all comments on the diff as one message, as soon as the switch says"),
    row(Action::Bare, "bare", &[alt('z')], NONE, "show one pane alone, to select text with the mouse"),
    row(Action::Copy, "copy", &[alt('c')], NONE, "copy the agent's last answer"),
    row(Action::Redraw, "redraw", &[ctrl('l')], NONE, "draw the screen anew"),
    row(Action::Suspend, "suspend", &[ctrl('z')], NONE, "give the terminal back to your shell; agents go on"),
    row(Action::Leave, "leave", &[ctrl('c'), ctrl('d')], NONE, "clear the draft; twice: leave"),
    row(Action::Quit, "quit", &[], NONE, "leave"),
    row(Action::Help, "help", &[plain(KeyCode::Char('?')), plain(KeyCode::F(1))], NONE, "show all keys"),
    row(Action::Palette, "palette", &[plain(KeyCode::Char('/'))], NONE, "search all actions"),
];

/// The row of an action.
pub fn row_of(action: Action) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.action == action)
}

/// The row of this name; `-` is as good as `_`, and a capital as a small letter.
pub fn row_named(name: &str) -> Option<&'static Row> {
    let name = name.to_ascii_lowercase().replace('-', "_");
    TABLE.iter().find(|row| row.name == name)
}

/// The name that is most like this one, if any is like it at all.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let likeness = |row: &Row| strsim::jaro_winkler(name, row.name);
    let rows = TABLE.iter().map(|row| (likeness(row), row.name)).filter(|(likeness, _)| *likeness > 0.75);
    rows.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
}
