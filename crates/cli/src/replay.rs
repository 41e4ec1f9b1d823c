//! `midturn replay`: hands the files to `midturn-scenario`, and real tools to the scenarios
//! that ask for them.

use std::io::{BufWriter, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use midturn_core::engine::ports::Workplace;
use midturn_core::rules::event::Event;
use midturn_core::rules::id::{AgentName, SessionId};
use midturn_scenario::play::{RealWorkplace, RealWorkplaces};
use midturn_scenario::{Exit, Options, Shift};
use midturn_tools::workplace::{AgentPlace, GitWorkplace, Isolation};

use crate::args::{ReplayArgs, ScreenArgs};
use crate::env::Env;
use crate::failure::{End, Failure};
use crate::meanwhile::Meanwhile;
use crate::pictures::Folder;
use crate::screen;

/// Replays the files.
///
/// # Errors
/// [`Failure::Usage`]: a `--shift` that can't be read, or `--view` of more than one file. [`Failure::Failed`]: the output or the report
/// can't be written.
pub(crate) fn replay(args: &ReplayArgs, env: &Env) -> Result<End, Failure> {
    if args.view {
        return view(&args.paths, env);
    }
    let shift: Result<Vec<Shift>, _> = args.shift.iter().map(|text| text.parse()).collect();
    let shift = shift.map_err(|error| Failure::usage(format!("--shift: {error}")))?;
    let folder = args.svg.as_deref().map(|folder| Folder::new(folder, &args.paths));
    let draw = |path: &Path, name: &str, events: &[Event]| {
        folder.as_ref().map_or(Ok(()), |folder| folder.draw(path, name, events))
    };
    let (real, junit): (Option<&dyn RealWorkplaces>, _) = (Some(&RealTools), args.junit.clone());
    let meanwhile = Meanwhile::begin("replaying", env);
    let tell = |done, of| meanwhile.at(done, of);
    let options = Options { real, json: args.json, junit, shift, seen: Some(&draw), played: Some(&tell) };
    let mut out = output(&meanwhile);
    let mut err = meanwhile.beside(std::io::stderr().lock());
    let played = midturn_scenario::replay(&args.paths, &options, &mut out, &mut err);
    match played.and_then(|exit| out.flush().map(|()| exit)) {
        Ok(Exit::Holds) => Ok(End::Finished),
        Ok(Exit::Fails) => Ok(End::Failed),
        Ok(Exit::Unreadable) => Ok(End::Usage),
        // Whoever read the beginning and went away has no use for the rest.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(End::Failed),
        Err(error) => Err(Failure::failed(format!("the results can't be written: {error}"))),
    }
}

/// Standard output: line by line where a bar may be below it.
fn output(meanwhile: &Meanwhile) -> Box<dyn Write + '_> {
    let out = std::io::stdout().lock();
    if out.is_terminal() { Box::new(meanwhile.beside(out)) } else { Box::new(BufWriter::new(out)) }
}

/// Looks at one scenario on the screen.
fn view(paths: &[PathBuf], env: &Env) -> Result<End, Failure> {
    let [path] = paths else { return Err(Failure::usage("--view shows one scenario: give one file")) };
    if path.is_dir() {
        let path = path.display();
        return Err(Failure::usage(format!(
            "--view shows one scenario: {path} is a folder, give a file of it"
        )));
    }
    if !screen::is_possible(&ScreenArgs { plain: false, ascii: false }, env) {
        return Err(Failure::usage("--view needs a terminal; --json writes the events"));
    }
    let options = Options { real: Some(&RealTools), json: true, ..Options::default() };
    let mut events = Vec::new();
    match midturn_scenario::replay(paths, &options, &mut events, &mut std::io::stderr().lock()) {
        Ok(Exit::Unreadable) => Ok(End::Usage),
        Ok(Exit::Holds | Exit::Fails) => {
            // What is asked of it later is asked of what was shown, whatever becomes of the file.
            let text = std::fs::read_to_string(path)
                .map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?;
            screen::played(path, text, events, env)
        }
        Err(error) => Err(Failure::failed(format!("it can't be played: {error}"))),
    }
}

/// Real tools for a replay: every agent, the lead too, works in a worktree of its own.
struct RealTools;

impl RealWorkplaces for RealTools {
    fn open(&self, repository: &Path, state: &Path) -> Result<Box<dyn RealWorkplace>, String> {
        let places = |_: &AgentName| AgentPlace::new(Isolation::Worktree);
        // Sessions of replays are counters: each has its own repository.
        let workplace = GitWorkplace::new(repository, state, &SessionId::new("s1"), places).turns_kept(0);
        Ok(Box::new(Places(Arc::new(workplace))))
    }
}

struct Places(Arc<GitWorkplace>);

impl RealWorkplace for Places {
    fn workplace(&self) -> Arc<dyn Workplace> {
        self.0.clone()
    }

    fn worktree(&self, agent: &AgentName) -> Option<PathBuf> {
        self.0.folder(agent)
    }
}
