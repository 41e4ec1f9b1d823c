//! `commit`: what changed in the project folder, as a commit on the branch that is checked out. It is
//! there because git's own folder is read-only to the commands of who works in that folder; how it is
//! made is the workplace's to know (docs/decisions/0036).

use std::sync::Arc;

use async_trait::async_trait;
use midturn_core::engine::ports::{CallTraits, Output, Returned, Tool, ToolCall, ToolSpec};
use midturn_core::rules::approval::Effect;
use midturn_core::rules::conversation::ToolUse;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::arguments::{noted, parse, spec};
use crate::context::{CommitOrder, ToolContext, off_the_runtime};

/// What it is called.
pub(crate) const COMMIT: &str = "commit";

/// The longest message, in bytes, and how many paths one call names.
const MESSAGE_MAX: usize = 64 << 10;
const PATHS_MAX: usize = 1_000;

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// The commit's message: a short first line, and if need be more after an empty one.
    message: String,
    /// The files and folders to commit, each as it is now, those that are gone included: relative to your
    /// working folder, or absolute within it. Without it all that has changed is committed, new files
    /// included and ignored ones not.
    paths: Option<Vec<String>>,
}

/// `commit` in the root of one agent.
struct Commit {
    spec: Arc<ToolSpec>,
    context: Arc<ToolContext>,
}

pub(crate) fn tool(context: Arc<ToolContext>) -> Arc<dyn Tool> {
    let why = match context.read_only_git.is_empty() {
        true => "",
        false => {
            " Git's own folder is read-only to your commands, so this takes the place of `git add` and `git commit`; \
             what only reads (`git status`, `git diff`, `git log`) works as ever."
        }
    };
    let text = format!(
        "Commits what changed in your working folder to the branch that is checked out, after the repository's hooks \
         `pre-commit` and `commit-msg` let it pass.{why}"
    );
    Arc::new(Commit { spec: spec::<Arguments>(COMMIT, &text), context })
}

impl Commit {
    fn order(&self, Arguments { message, paths }: Arguments) -> Result<CommitOrder, String> {
        let message = message.trim_end().to_owned();
        if message.trim().is_empty() || message.contains('\0') || message.len() > MESSAGE_MAX {
            return Err(format!(
                "`message` has to be a text of at most {} KiB, without NUL characters",
                MESSAGE_MAX >> 10
            ));
        }
        let outside = |path: &str| format!("`{path}` is not a path in your working folder");
        let named = |path: &String| self.context.root.normal(path).ok_or_else(|| outside(path));
        let paths = paths.map(|paths| paths.iter().map(named).collect::<Result<Vec<_>, _>>()).transpose()?;
        match &paths {
            Some(paths) if paths.is_empty() => Err("`paths` is empty: leave it out to commit all".to_owned()),
            Some(paths) if paths.len() > PATHS_MAX => Err(format!(
                "`paths` names more than {PATHS_MAX}: name folders, or leave it out to commit all"
            )),
            _ => Ok(CommitOrder { message, paths }),
        }
    }

    async fn work(&self, arguments: Arguments, call: &ToolCall) -> Result<String, String> {
        let order = self.order(arguments)?;
        let commits = self.context.commits.as_ref().ok_or("no commits can be made here")?;
        let context = self.context.clone();
        let begins = off_the_runtime(move || context.run_begins()).await;
        begins.map_err(|error| error.to_string()).flatten()?;
        commits.commit(&order, &self.context, call).await
    }
}

#[async_trait]
impl Tool for Commit {
    fn spec(&self) -> Arc<ToolSpec> {
        self.spec.clone()
    }

    /// It changes files of git's, and asks as an edit does; but hooks run what agents wrote, and where
    /// nothing holds them it is asked about as a command is.
    fn traits(&self, _: &ToolUse) -> CallTraits {
        let commits = self.context.commits.as_ref();
        match commits.is_some_and(|commits| commits.runs_programs_that_nothing_holds()) {
            true => CallTraits::SERIAL,
            false => CallTraits { effect: Effect::Edits, ..CallTraits::SERIAL },
        }
    }

    async fn call(&self, call: ToolCall) -> Returned {
        let (arguments, ignored) = match parse(&call.call) {
            Ok(parsed) => parsed,
            Err(output) => return output.into(),
        };
        let done = self.work(arguments, &call).await.map_or_else(Output::error, Output::ok);
        noted(done, ignored).into()
    }
}
