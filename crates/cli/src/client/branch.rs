//! `midturn diff` and `midturn merge`: what an agent has on its branch.

use midturn_client::Trouble;
use midturn_core::rules::id::AgentName;
use midturn_wire::work::{Diff, Empty, Merge, MergeResult};
use serde_json::Value;

use super::{Answer, Asking, Text};

/// The patch, as `git apply` takes it.
pub(super) async fn diff(asking: &Asking, agent: &AgentName) -> Result<Answer, Trouble> {
    let value = asking.client.get(&asking.path(&["agents", agent.as_str(), "diff"])).await?;
    let Diff { branch, patch, truncated, .. } = asking.client.read(&value)?;
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
    Ok(Answer { value, text, failure: truncated.then(cut) })
}

/// Merges the branch.
pub(super) async fn merge(asking: &Asking, agent: &AgentName) -> Result<Answer, Trouble> {
    let value = asking.client.post(&asking.path(&["agents", agent.as_str(), "merge"]), &Empty {}).await?;
    let merged: Merge = asking.client.read(&value)?;
    Ok(told(agent, value, merged))
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
                "nothing was merged: {} in conflict. Commit your side and tell {agent} to resolve it, or merge by hand",
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
