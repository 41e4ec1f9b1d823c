//! The form of the commands that ask a running process: `ps`, `send`, `stop` and their kin.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use midturn_core::rules::id::AgentName;
use midturn_core::rules::limits::Money;
use midturn_core::rules::settings::LimitsPatch;
use midturn_core::rules::time::Span;
use midturn_wire::message::Urgency;
use serde::Deserialize;
use serde_json::Value;

use super::afterwards::{MergeArgs, PushArgs};
use super::history::name;
use super::{PlaceArgs, ScreenArgs};

const PS_HELP: &str = "\
With --waiting: a line for each request that waits for your word, each agent that failed or is at a limit,
each merge that conflicts, and each lead that has ended; of all sessions that live here, or of that of --session.
No line and status 0 where nothing waits, or no Midturn runs; another status only where one runs and can't be
asked.

Examples:
  midturn ps
  midturn ps --waiting | wc -l                  (for a status bar)
  midturn ps --json | jq -r '.agents[] | select(.state == \"running\") | .name'";

const SEND_HELP: &str = "\
How soon a message acts (--urgency):
  follow_up      when the agent would otherwise be done
  after_tools    when the tools of its turn have ended; nothing is skipped
  next_boundary  between two tools: those of the turn that have not begun are skipped
  urgent         now: what runs is ended, its output so far is kept

Without --urgent and --urgency the receiver's default holds: after_tools to a lead, next_boundary to a
subagent. The receipt says where the message came in and what that cost.
A session that has ended is taken up: where no Midturn runs, `midturn serve --until-idle 10m` is started for it.
Exit status: 0 accepted (and, with --wait, got there), 1 refused, returned or not in time, 2 usage.

Examples:
  midturn send worker \"Use load(), not open()\"
  midturn send worker \"Stop, wrong branch!\" --urgent --wait injected
  midturn send all \"The API is frozen\" --urgency follow_up --expires-after 10m";

const OPEN_HELP: &str = "\
Where no Midturn runs in this project one is started in the background; it ends when no agent works and nobody
has looked for ten minutes. The link is good for a minute, and once: the page keeps a token of its own, in this
browser, for as long as that Midturn runs. It is on this machine's loopback address only.

A file is one with a `.` or a `/` in its name: a scenario, or what `midturn export` wrote. The page plays it back step by
step, at a speed, to a moment, with simulated tools; nothing runs and nothing is stored. It may have a mebibyte, and the
newest four are kept.

Examples:
  midturn open
  midturn open last
  midturn open scenarios/demo.yaml
  midturn export last -o last.yaml && midturn open last.yaml
  midturn open --print                              (a link, and how to reach it from another machine)";

const WITHDRAW_HELP: &str = "\
A message that has been read, or has already cut something, can't be taken back: the exit status is
then 1.

Example:
  midturn send worker \"Add a test\" --id t1 && midturn withdraw t1";

const STOP_HELP: &str = "\
Its children go on unless --subtree is given. A message from you, or `resume` in the interface,
sets a stopped agent to work again.

Examples:
  midturn stop worker
  midturn stop lead --subtree";

const SUPERSEDE_HELP: &str = "\
What runs is ended, and the next run begins with the text; mail of yours that was not read yet is read with it, other
agents' is returned to them. To an idle agent it is a message. Its children go on.
Exit status: 0 it is done, 1 refused (then nothing is stopped), 2 usage.

Example:
  midturn supersede worker \"Leave the parser, write the tests first\"";

const CLOSE_HELP: &str = "\
What they run is ended, leaves first, and mail to them is returned from now on. Their branches stay.

Example:
  midturn close worker";

const LIMIT_HELP: &str = "\
What is not named stays as it is; 0 means no limit. A limit below what is spent already is
refused, with exit status 1. It is recorded, and holds when the session is resumed.

Examples:
  midturn limit worker --max-turns 60
  midturn limit --max-cost 5 --max-time 2h        (all agents of the session together)";

const APPROVALS_HELP: &str = "\
What is asked about, and what isn't, is configured under `approvals`; while nobody is attached who could
answer, nothing is asked and such calls are denied.

Examples:
  midturn approvals
  midturn approvals --json | jq -r '.approvals[] | .agent + \": \" + .input.command'";

const APPROVE_HELP: &str = "\
Without CALL the oldest request of the agent is answered. --always allows all that its rule allows, for
as long as the session lives; without a rule of yours that is the same command, or all calls of the tool.
Exit status: 0 it was answered, 1 nobody asks about it (any more), 2 usage.

Examples:
  midturn approve worker
  midturn approve worker toolu_01 --always \"bash(cargo test *)\"";

const DENY_HELP: &str = "\
Without CALL the oldest request of the agent is answered. The model reads the reason and goes on.
Exit status: 0 it was answered, 1 nobody asks about it (any more), 2 usage.

Examples:
  midturn deny worker
  midturn deny worker --reason \"use the test database\"";

const WATCH_HELP: &str = "\
On a terminal, lines on standard input answer what agents ask: /yes [NAME], /always [NAME],
/no [NAME] [REASON]; without a name the oldest request is meant. It ends when the session does, or with Ctrl-C; the agents do not notice.

Examples:
  midturn watch
  midturn watch worker
  midturn watch --json | jq -r 'select(.type == \"tool_started\") | .input.command'";

const ATTACH_HELP: &str = "\
It shows all agents of a session, and what you write goes to the one you chose. Leaving it stops nobody. With
--plain, and where standard input or output is no terminal, it is `midturn watch`.

Examples:
  midturn attach
  midturn attach 0mhzk3q1-77ab --plain";

const DIFF_HELP: &str = "\
It includes what is not committed yet. Of an agent that works in the project folder itself, as the lead does,
it is what is not committed there.

Examples:
  midturn diff worker
  midturn diff lead --session 0mhzk3q1-77ab     (also of a session that is only stored)
  midturn diff worker | git apply --stat";

const STATS_HELP: &str = "\
Examples:
  midturn stats
  midturn stats --json
  midturn stats --svg waits.svg";

/// The commands that ask a running process.
#[derive(Debug, Subcommand)]
pub(crate) enum ClientCommand {
    /// Show the agents of a running session and what they do
    #[command(after_help = PS_HELP)]
    Ps(PsArgs),
    /// Send an agent a message while it works
    #[command(after_help = SEND_HELP)]
    Send(SendArgs),
    /// Take back a message that no agent has read yet
    #[command(after_help = WITHDRAW_HELP)]
    Withdraw {
        /// The message's id, as `midturn send` printed it
        id: String,
        /// Whom to ask
        #[command(flatten)]
        client: ClientArgs,
    },
    /// Stop what an agent does; it can be set to work again afterwards
    #[command(after_help = STOP_HELP)]
    Stop {
        /// The agent
        #[arg(value_parser = name)]
        agent: AgentName,
        /// Stop all agents below it too
        #[arg(long)]
        subtree: bool,
        /// Whom to ask
        #[command(flatten)]
        client: ClientArgs,
    },
    /// Stop what an agent does and set it to work on something else, as one action
    #[command(after_help = SUPERSEDE_HELP)]
    Supersede {
        /// The agent
        #[arg(value_parser = name)]
        agent: AgentName,
        /// What its next run begins with
        #[arg(value_name = "TEXT", allow_hyphen_values = true)]
        text: String,
        /// Whom to ask
        #[command(flatten)]
        client: ClientArgs,
    },
    /// Close an agent and all below it: nobody wakes them any more
    #[command(after_help = CLOSE_HELP)]
    Close {
        /// The agent
        #[arg(value_parser = name)]
        agent: AgentName,
        /// Whom to ask
        #[command(flatten)]
        client: ClientArgs,
    },
    /// Set how much an agent, or all of them together, may use; one that had used it up goes on
    #[command(after_help = LIMIT_HELP)]
    Limit {
        /// The agent; without one it is the limit of all of them together
        #[arg(value_parser = name)]
        agent: Option<AgentName>,
        /// What is set
        #[command(flatten)]
        limits: LimitsArgs,
        /// Whom to ask
        #[command(flatten)]
        client: ClientArgs,
    },
    /// List what agents ask a person to allow
    #[command(after_help = APPROVALS_HELP)]
    Approvals(WideClientArgs),
    /// Allow a call that an agent asks about
    #[command(after_help = APPROVE_HELP)]
    Approve {
        /// Which request
        #[command(flatten)]
        what: MeantArgs,
        /// Allow it from now on in this session, and all that this rule allows
        #[arg(long, value_name = "RULE", num_args = 0..=1)]
        always: Option<Option<String>>,
    },
    /// Say no to a call that an agent asks about
    #[command(after_help = DENY_HELP)]
    Deny {
        /// Which request
        #[command(flatten)]
        what: MeantArgs,
        /// Why; the model reads it
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        reason: Option<String>,
    },
    /// Open the page in your browser: see the agents at work, correct them, answer them
    #[command(after_help = OPEN_HELP)]
    Open(OpenArgs),
    /// See what the agents do and say, live
    #[command(after_help = WATCH_HELP)]
    Watch {
        /// Only this agent
        #[arg(value_parser = name)]
        agent: Option<AgentName>,
        /// Whom to ask
        #[command(flatten)]
        client: ClientArgs,
    },
    /// See a session on the screen, and write to its agents
    #[command(after_help = ATTACH_HELP)]
    Attach(AttachArgs),
    /// Show what an agent changed
    #[command(after_help = DIFF_HELP)]
    Diff(AgentArgs),
    /// Merge an agent's branch into what is checked out here; nothing is forced
    #[command(after_help = super::afterwards::MERGE_HELP)]
    Merge(MergeArgs),
    /// Push an agent's branch with your own git
    #[command(after_help = super::afterwards::PUSH_HELP)]
    Push(PushArgs),
    /// Show the figures of the running process
    #[command(after_help = STATS_HELP)]
    Stats {
        /// Draw how long messages waited, by urgency, into this file, as SVG
        #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
        svg: Option<std::path::PathBuf>,
        /// Whom to ask
        #[command(flatten)]
        client: ClientArgs,
    },
}

/// Options of every command that asks a running process.
#[derive(Debug, Args)]
pub(crate) struct ClientArgs {
    /// The session: its id, or `current` for the one that began last
    #[arg(long, value_name = "ID", default_value = "current")]
    pub(crate) session: String,
    /// Write what the process answers, as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Which project
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}

/// Options of `midturn ps`.
#[derive(Debug, Args)]
pub(crate) struct PsArgs {
    /// Only what waits for you, a line for each, the newest first
    #[arg(long)]
    pub(crate) waiting: bool,
    /// Whom to ask
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// Options of the commands that look at all sessions.
#[derive(Debug, Args)]
pub(crate) struct WideClientArgs {
    /// Only this session: its id, or `current` for the one that began last
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Write what the process answers, as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Which project
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}

impl WideClientArgs {
    /// The same, about one session.
    pub(crate) fn of_current(&self) -> ClientArgs {
        let session = self.session.clone().unwrap_or_else(|| "current".to_owned());
        ClientArgs { session, json: self.json, place: self.place.clone() }
    }
}

/// Which request is answered.
#[derive(Debug, Args)]
pub(crate) struct MeantArgs {
    /// The agent that asks
    #[arg(value_parser = name)]
    pub(crate) agent: AgentName,
    /// The call it asks about, as `midturn approvals` shows it
    pub(crate) call: Option<String>,
    /// Whom to ask
    #[command(flatten)]
    pub(crate) client: WideClientArgs,
}

/// `midturn diff`.
#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    /// The agent
    #[arg(value_parser = name)]
    pub(crate) agent: AgentName,
    /// Whom to ask
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// `midturn attach`.
#[derive(Debug, Args)]
pub(crate) struct AttachArgs {
    /// The session: its id, or `current` for the one that began last
    #[arg(value_name = "SESSION", default_value = "current", hide_default_value = true)]
    pub(crate) session: String,
    /// What is drawn
    #[command(flatten)]
    pub(crate) screen: ScreenArgs,
    /// Which project
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}

/// `midturn open`.
#[derive(Debug, Args)]
pub(crate) struct OpenArgs {
    /// What the page shows: a session (its id, `last`, or `current`), or a scenario file to play back
    #[arg(value_name = "SESSION|FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) shown: Option<String>,
    /// Print the link, and the tunnel for a browser elsewhere, in place of opening a browser
    #[arg(long)]
    pub(crate) print: bool,
    /// Which project
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}

/// The limits that `midturn limit` sets, one at least.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct LimitsArgs {
    /// How many turns in all
    #[arg(long, value_name = "N")]
    pub(crate) max_turns: Option<u64>,
    /// How many tokens, read and written, in all
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<u64>,
    /// What the model calls may cost in all, in US dollars: 2.50
    #[arg(long, value_name = "DOLLARS")]
    pub(crate) max_cost: Option<Money>,
    /// How long an agent may be at work, or the session may last: 90s, 30m, 2h
    #[arg(long, value_name = "TIME")]
    pub(crate) max_time: Option<Span>,
}

impl LimitsArgs {
    /// The same, as events and the interface have it.
    pub(crate) fn patch(&self) -> LimitsPatch {
        let &Self { max_turns, max_tokens, max_cost, max_time } = self;
        LimitsPatch { max_turns, max_tokens, max_cost, max_time }
    }
}

/// `midturn send`.
#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    /// The agent, or `all`; of a joined session (docs/bridges.md) also `SESSION/AGENT`
    #[arg(value_name = "AGENT", value_parser = receiver)]
    pub(crate) to: String,
    /// What it is told
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) text: String,
    /// End what the agent runs now: --urgency urgent
    #[arg(long, conflicts_with = "urgency")]
    pub(crate) urgent: bool,
    /// How soon it acts
    #[arg(long, value_name = "LEVEL", value_parser = urgency())]
    pub(crate) urgency: Option<Urgency>,
    /// An id of yours: sending the same again with the same id does nothing more
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Take it back automatically if it is not read within this time: 30s, 5m, 1h
    #[arg(long, value_name = "TIME")]
    pub(crate) expires_after: Option<Span>,
    /// A message of yours to the same agent that this one replaces
    #[arg(long, value_name = "ID")]
    pub(crate) supersedes: Option<String>,
    /// With --supersedes: send nothing where that is too late, since it was read already
    #[arg(long, requires = "supersedes")]
    pub(crate) if_queued: bool,
    /// Wait until it has come this far
    #[arg(long, value_name = "STATE", value_parser = state())]
    pub(crate) wait: Option<String>,
    /// How long to wait: 500ms, 30s, 5m
    #[arg(long, value_name = "TIME", default_value = "30s", requires = "wait")]
    pub(crate) timeout: Span,
    /// Whom to ask
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// How soon a message acts (semantics.md, section 2).
fn urgency() -> impl TypedValueParser<Value = Urgency> {
    let levels = words([
        ("follow_up", "When the agent would otherwise be done"),
        ("after_tools", "When the tools of its turn have ended"),
        ("next_boundary", "Between two tools"),
        ("urgent", "Now"),
    ]);
    levels.try_map(|word| Urgency::deserialize(Value::from(word)))
}

/// How far a message is waited for (semantics.md, section 8).
fn state() -> PossibleValuesParser {
    words([
        ("injected", "It is in the conversation"),
        ("sent", "A model request with it was handed to the connection"),
        ("answered", "The model has replied after it"),
    ])
}

/// Words of the interface, each with what it means.
fn words<const N: usize>(words: [(&'static str, &'static str); N]) -> PossibleValuesParser {
    PossibleValuesParser::new(words.map(|(word, help)| PossibleValue::new(word).help(help)))
}

/// An address that a person may write to.
fn receiver(text: &str) -> Result<String, String> {
    // What other programs call their agents is theirs.
    if text == "all" || text.contains('/') {
        return Ok(text.to_owned());
    }
    name(text).map(|name| name.to_string())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::Cli;

    #[test]
    fn what_cannot_be_meant_is_refused_before_anybody_is_asked() {
        for (line, expected) in [
            ("send Worker hi", "is not an agent's name"),
            ("send parent hi", "reserved"),
            ("stop all", "reserved"),
            ("limit worker", "--max-turns"),
            ("limit worker --max-turns -1", "unexpected argument"),
            ("limit --max-cost free", "is not an amount of dollars"),
            ("limit --max-time 5", "write 250ms"),
            ("send w hi --urgent --urgency urgent", "cannot be used with"),
            ("send w hi --urgency soon", "after_tools"),
            ("send w hi --wait read", "injected"),
            ("send w hi --timeout 5s", "--wait"),
            ("send w hi --wait sent --timeout 5", "write 250ms"),
            ("send w hi --expires-after never", "write 250ms"),
            ("log last --agent A", "is not an agent's name"),
            ("approve", "<AGENT>"),
            ("approve Worker", "is not an agent's name"),
            ("approve w c1 c2", "unexpected argument"),
            ("deny w --always", "unexpected argument"),
            ("deny w --reason", "a value is required"),
            ("serve --listen localhost", "invalid socket address"),
        ] {
            let error = Cli::try_parse_from(format!("midturn {line}").split(' ')).unwrap_err().to_string();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
