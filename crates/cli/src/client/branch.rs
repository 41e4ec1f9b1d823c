//! `midturn diff`, `midturn merge` and `midturn push`: what an agent has on its branch. The process that carries the
//! session is asked; where none does, it is done here, by the same looks.

use midturn_client::{Client, Path, Trouble};
use midturn_core::rules::id::AgentName;
use midturn_wire::session::{Session, Sessions};
use midturn_wire::work::{Diff, Empty, Merge, MergeResult};
use serde_json::{Value, json};

use super::{Answer, Asking, Text, block_on, find, meant, say};
use crate::afterwards;
use crate::args::{AgentArgs, ClientArgs, MergeArgs, PushArgs};
use crate::commands;
use crate::env::Env;
use crate::failure::{End, Failure};
use crate::project::Project;

/// What says that nobody carries the session.
const CARRIED_BY_NOBODY: [&str; 3] = ["no_session", "unknown_session", "not_live"];

/// What the process answers that carries the session. `None`: none does.
fn asked<T>(
    args: &ClientArgs,
    env: &Env,
    only_looks: bool,
    question: impl AsyncFnOnce(&Asking) -> Result<T, Trouble>,
) -> Result<Option<T>, Failure> {
    let project = Project::named(&args.place, env)?;
    let Some(client) = find(&project)? else { return Ok(None) };
    let asking = Asking { project, client, session: args.session.clone(), json: args.json };
    match block_on(question(&asking))? {
        Ok(answer) => Ok(Some(answer)),
        Err(Trouble::Nobody) => Ok(None),
        // Who only looks needs nobody who could answer.
        Err(Trouble::Suspended(_)) if only_looks => Ok(None),
        Err(trouble) if trouble.code().is_some_and(|code| CARRIED_BY_NOBODY.contains(&code)) => Ok(None),
        Err(trouble) => {
            if let (true, Trouble::Refused(problem)) = (args.json, &trouble) {
                commands::print(&format!("{}\n", json!(problem)))?;
            }
            Err(trouble.into())
        }
    }
}

/// The patch, as `git apply` takes it.
///
/// # Errors
/// [`Failure`]: there is no such session or agent, or git fails.
pub(super) fn diff(args: &AgentArgs, env: &Env) -> Result<End, Failure> {
    let AgentArgs { agent, client } = args;
    let question = async |asking: &Asking| -> Result<(Value, Diff), Trouble> {
        let value = asking.client.get(&asking.path(&["agents", agent.as_str(), "diff"])).await?;
        let diff = asking.client.read(&value)?;
        Ok((value, diff))
    };
    let (value, diff) = match asked(client, env, true, question)? {
        Some(answered) => answered,
        None => {
            let project = Project::named(&client.place, env)?;
            let diff = block_on(afterwards::diff(&project, &client.session, agent, env))??;
            (json!(diff), diff)
        }
    };
    say(client.json, shown(agent, value, diff))
}

fn shown(agent: &AgentName, value: Value, Diff { branch, patch, truncated, .. }: Diff) -> Answer {
    let cut = || {
        let range =
            if branch.starts_with("midturn/") { format!("HEAD...{branch}") } else { "HEAD".to_owned() };
        format!("the patch is too long and was cut: `git diff {range}` shows what git has of it")
    };
    let text = if patch.is_empty() {
        Text::Note(format!("{agent} has changed nothing on {branch}"))
    } else {
        Text::Patch(patch)
    };
    Answer { value, text, failure: truncated.then(cut) }
}

/// Merges the branch.
///
/// # Errors
/// [`Failure`]: there is no such session or branch, git fails, or nothing was merged.
pub(super) fn merge(args: &MergeArgs, env: &Env) -> Result<End, Failure> {
    let MergeArgs { agent, message, resolve, client, .. } = args;
    let question = async |asking: &Asking| -> Result<(Value, Merge), Trouble> {
        let path = asking.path(&["agents", agent.as_str(), "merge"]);
        let value = asking.client.post(&path, &Empty {}).await?;
        let merged = asking.client.read(&value)?;
        Ok((value, merged))
    };
    // As one commit it is merged here, whoever carries the session: git keeps us apart.
    let answered = if message.is_none() { asked(client, env, false, question)? } else { None };
    let (value, merged) = match answered {
        Some(answered) => answered,
        None => {
            let project = Project::named(&client.place, env)?;
            let session = block_on(named(&project, &client.session))?;
            let merges = afterwards::merge(&project, &session, agent, message.as_deref(), env);
            let merged = block_on(merges)??;
            (json!(merged), merged)
        }
    };
    match &merged.files {
        Some(files) if *resolve && merged.result == MergeResult::Conflicts => hand_over(args, files, env),
        _ => say(client.json, told(agent, value, merged)),
    }
}

/// `current` as a running process means it, if it carries any.
async fn named(project: &Project, asked: &str) -> String {
    match carrier(project).await {
        Some((_, live)) if asked == "current" => live.session,
        _ => asked.to_owned(),
    }
}

/// The process that answers for the project, and the session that it has begun last of those it carries.
async fn carrier(project: &Project) -> Option<(Client, Session)> {
    let client = find(project).ok()??;
    let sessions = client.get::<Sessions>(&Path::of(&["sessions"])).await.ok()?.sessions;
    let live = sessions.into_iter().next().filter(Session::lives_here)?;
    Some((client, live))
}

/// Has the agent resolve the conflict: in the process that is there, or in this one.
fn hand_over(args: &MergeArgs, files: &[String], env: &Env) -> Result<End, Failure> {
    let MergeArgs { agent, client, .. } = args;
    let project = Project::named(&client.place, env)?;
    let handed = block_on(async {
        let Some(running) = find(&project)? else { return Ok(None) };
        let session = match meant(&running, &client.session).await {
            Ok(session) => session.session,
            // It died, and left its file behind.
            Err(_) if running.get::<Value>(&Path::of(&["health"])).await == Err(Trouble::Nobody) => {
                return Ok(None);
            }
            Err(failure) => return Err(failure),
        };
        let task = afterwards::task(&project, files)?;
        afterwards::hand_over(&running, &session, agent, task).await?;
        Ok::<_, Failure>(Some(session))
    })??;
    let Some(session) = handed else { return afterwards::resolve(args, &project, files, env) };
    let told = format!(
        "{agent} resolves what conflicts in {}: `midturn watch {agent} --session {session}` shows it; then merge again\n",
        files.join(", ")
    );
    let value = json!({"result": "handed_over", "session": session, "files": files});
    say(client.json, Answer::good(value, told))
}

/// Pushes the branch with the person's own git.
///
/// # Errors
/// [`Failure`]: there is no such session, branch or remote, or git fails.
pub(super) fn push(args: &PushArgs, env: &Env) -> Result<End, Failure> {
    let PushArgs { agent, remote, client } = args;
    let project = Project::named(&client.place, env)?;
    let (value, text) = block_on(async {
        let session = named(&project, &client.session).await;
        afterwards::push(&project, &session, (agent, remote.as_deref()), env).await
    })??;
    say(client.json, Answer::good(value, text))
}

fn told(agent: &AgentName, value: Value, merged: Merge) -> Answer {
    match merged.result {
        MergeResult::Merged => {
            let commit =
                merged.commit.map(|commit| format!(", HEAD is now {commit:.12}")).unwrap_or_default();
            Answer::good(value, format!("merged the branch of {agent}{commit}\n"))
        }
        MergeResult::UpToDate => {
            Answer::good(value, format!("nothing to merge: all of {agent}'s work is in already\n"))
        }
        MergeResult::Conflicts => {
            let files = merged.files.unwrap_or_default();
            let text: String = files.iter().map(|file| format!("conflict: {file}\n")).collect();
            let failure = format!(
                "nothing was merged: {} in conflict. `midturn merge {agent} --resolve` has {agent} resolve it; or merge by hand",
                counted(files.len(), "file is", "files are")
            );
            Answer::failed(value, text, failure)
        }
        MergeResult::Refused => {
            let reason = merged.reason.unwrap_or_else(|| "no reason is given".to_owned());
            Answer::failed(value, "", format!("nothing was merged: {reason}"))
        }
    }
}

fn counted(count: usize, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {many}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_merge_says_what_became_of_it_and_fails_if_nothing_did() {
        for (answer, text, failure) in [
            (
                json!({"result": "merged", "commit": "0123456789abcdef"}),
                "merged the branch of w, HEAD is now 0123456789ab\n",
                None,
            ),
            (json!({"result": "up_to_date"}), "nothing to merge: all of w's work is in already\n", None),
            (
                json!({"result": "conflicts", "files": ["a", "b"]}),
                "conflict: a\nconflict: b\n",
                Some("nothing was merged: 2 files are in conflict"),
            ),
            (
                json!({"result": "refused", "reason": "a.txt is in the way"}),
                "",
                Some("nothing was merged: a.txt is"),
            ),
        ] {
            let merged = serde_json::from_value(answer.clone()).unwrap();
            let told = told(&AgentName::new("w").unwrap(), answer, merged);
            assert_eq!(told.text, Text::Words(text.to_owned()));
            let begins = |failure: &String, expected: &str| failure.starts_with(expected);
            assert!(told.failure.iter().zip(failure).all(|(told, expected)| begins(told, expected)));
            assert_eq!(told.failure.is_some(), failure.is_some());
        }
    }
}
