//! `midturn open`: the page, in a browser, with a session or with a scenario that is played back. The process that is
//! there is asked for a link; where none is, one is started that ends when nobody needs it any more.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use midturn_client::{Client, Path, Trouble};
use midturn_core::rules::time::Span;
use midturn_wire::page::Page;
use serde_json::{Value, json};

use super::{find, kept, meant};
use crate::args::{OpenArgs, PlaceArgs};
use crate::commands::{self, block_on};
use crate::env::Env;
use crate::failure::{End, Failure};
use crate::project::Project;

/// How long a process that was started for a page lives when nobody needs it: longer than a pause between two looks.
pub(super) const UNTIL_IDLE: Span = Span::secs(600);

/// How long it may take until it answers, and how often it is looked for.
const BEGINS: (Duration, Duration) = (Duration::from_secs(30), Duration::from_millis(50));

/// How much of what it said is told when it did not begin.
const SAID: u64 = 2_000;

/// `midturn open`.
///
/// # Errors
/// [`Failure`]: no process answers and none can be started, there is no such session, or the file can't be played.
pub(crate) fn open(args: &OpenArgs, env: &Env) -> Result<End, Failure> {
    let project = Project::named(&args.place, env)?;
    let asked = args.shown.as_deref();
    // Before a process is started for it.
    let file = asked.filter(|asked| kept::is_file(asked)).map(|file| kept::playable(file.as_ref()));
    let file = file.transpose()?;
    let link = block_on(async {
        let client = answering(&project, &args.place).await?.client;
        let shown = match (&file, asked) {
            (Some(scenario), _) => Shown::Replay(kept::hand_over(&client, scenario).await?),
            (None, Some(asked)) => Shown::Session(meant(&client, asked).await?.session),
            (None, None) => Shown::Any,
        };
        let page: Page = client.post(&Path::of(&["page"]), &json!({})).await?;
        Ok::<Link, Failure>(Link { page, shown })
    })??;
    if args.print || env.is_set("SSH_CONNECTION") || open::that_detached(link.url()).is_err() {
        return commands::print(&link.words());
    }
    commands::print(&format!("the page is at http://{}/, and opens in your browser\n", link.page.address))
}

/// A link that lets one page in.
struct Link {
    page: Page,
    shown: Shown,
}

/// What a page shows first.
enum Shown {
    /// The session that lives, or the list of them.
    Any,
    Session(String),
    /// A scenario that is kept, by its id.
    Replay(String),
}

impl Link {
    /// What follows `#` no server is sent, and the page takes it out of the address at once.
    fn url(&self) -> String {
        let shown = match &self.shown {
            Shown::Any => String::new(),
            Shown::Session(id) => format!("&session={id}"),
            Shown::Replay(id) => format!("&replay={id}"),
        };
        format!("http://{}/#code={}{shown}", self.page.address, self.page.code)
    }

    fn words(&self) -> String {
        let Page { address, seconds, .. } = &self.page;
        let port = address.rsplit(':').next().unwrap_or_default();
        let url = self.url();
        format!(
            "{url}\n\nOpen it within {seconds} s; it lets one browser in, once. From another machine first:\n  \
             ssh -N -L {port}:{address} USER@THIS-MACHINE\n"
        )
    }
}

/// A process that answers for a project.
pub(super) struct Answers {
    pub(super) client: Client,
    /// The process, if it was started for this.
    pub(super) started: Option<u32>,
}

/// The process that answers for the project; one is started where none is.
///
/// # Errors
/// [`Failure`]: none answers and none can be started.
pub(super) async fn answering(project: &Project, place: &PlaceArgs) -> Result<Answers, Failure> {
    if let Some(client) = find(project)? {
        match is_well(&client).await {
            Ok(()) => return Ok(Answers { client, started: None }),
            // It died, and left its file behind.
            Err(trouble) if trouble.is_gone() => {}
            Err(trouble) => return Err(trouble.into()),
        }
    }
    let (mut child, mut log) = start(project, place)?;
    let (patience, pace) = BEGINS;
    let begun = tokio::time::timeout(patience, async {
        loop {
            if let Some(client) = find(project)?
                && is_well(&client).await.is_ok()
            {
                return Ok(Answers { client, started: Some(child.id()) });
            }
            if child.try_wait().map_err(Failure::failed)?.is_some() {
                return Err(Failure::failed(format!("no Midturn could be started: {}", said(&mut log))));
            }
            tokio::time::sleep(pace).await;
        }
    });
    begun.await.unwrap_or_else(|_| {
        Err(Failure::failed(format!("the Midturn that was started doesn't answer: {}", said(&mut log))))
    })
}

async fn is_well(client: &Client) -> Result<(), Trouble> {
    client.get::<Value>(&Path::of(&["health"])).await.map(drop)
}

/// Starts a process that outlives this one, in a group of its own: Ctrl-C here is not meant for it.
fn start(project: &Project, asked: &PlaceArgs) -> Result<(Child, File), Failure> {
    project.prepare()?;
    let place = project.state().join("serve.log");
    let failed = |error: std::io::Error| Failure::failed(format!("{}: {error}", place.display()));
    let log = File::options().read(true).write(true).create(true).truncate(true).mode(0o600).open(&place);
    let log = log.map_err(failed)?;
    let program = std::env::current_exe().map_err(Failure::failed)?;
    let mut command = Command::new(program);
    command.args(["serve", "--until-idle", &UNTIL_IDLE.to_string()]);
    if let Some(folder) = &asked.cwd {
        command.arg("--cwd").arg(folder);
    }
    if let Some(store) = &asked.store.store {
        command.args(["--store", store]);
    }
    let (out, errors) = (log.try_clone().map_err(failed)?, log.try_clone().map_err(failed)?);
    command.stdin(Stdio::null()).stdout(out).stderr(errors).process_group(0);
    Ok((command.spawn().map_err(Failure::failed)?, log))
}

/// The last of what a process said that did not begin.
fn said(log: &mut File) -> String {
    let mut said = Vec::new();
    let end = log.metadata().map(|log| log.len()).unwrap_or_default();
    let read = log.seek(SeekFrom::Start(end.saturating_sub(SAID))).and_then(|_| log.read_to_end(&mut said));
    match read {
        Ok(_) => String::from_utf8_lossy(&said).trim().trim_start_matches("midturn: ").to_owned(),
        Err(error) => format!("what it said can't be read: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(shown: Shown) -> Link {
        let page = Page { address: "127.0.0.1:20001".to_owned(), code: "c0de".to_owned(), seconds: 60 };
        Link { page, shown }
    }

    #[test]
    fn a_link_holds_its_code_where_no_server_is_sent_it() {
        let url = "http://127.0.0.1:20001/#code=c0de";
        assert_eq!(link(Shown::Any).url(), url);
        assert_eq!(link(Shown::Session("s-1".into())).url(), format!("{url}&session=s-1"));
        assert_eq!(link(Shown::Replay("r1-a".into())).url(), format!("{url}&replay=r1-a"));
        let words = link(Shown::Any).words();
        assert!(words.contains("ssh -N -L 20001:127.0.0.1:20001 USER@THIS-MACHINE"), "{words}");
        assert!(words.contains("within 60 s"), "{words}");
    }
}
