//! One hostile program: who runs it, what it calls, and what is expected of it besides what is
//! expected of all (nothing changed outside, nobody left alive, no secret found).

use serde_json::{Value, json};

use crate::world::World;

/// Who has the program run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// A subagent, in a worktree of its own.
    Worker,
    /// The lead, in the project's folder.
    Lead,
}

/// What is expected of the program where a person chose to have no sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bare {
    /// Nothing: only a sandbox holds it.
    NotRun,
    /// The same as with one.
    Holds,
    /// It may change git's folders, but nothing of what it plants there is ever executed.
    NothingIsExecuted,
}

/// Something expected of its results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expect {
    /// The first call's output holds this.
    Says(&'static str),
    /// The last `reached: N` is at most this; it is there.
    Reached(u64),
    /// As that, where limits hold for the whole tree.
    TreeReached(u64),
    /// The first call ends as an error (or not).
    IsError(bool),
    /// Every further call is refused.
    OthersRefused,
    /// No line of a further call's output is this.
    OthersHaveNoLine(&'static str),
    /// Every further call ends, one way or the other.
    OthersEnd,
}

/// A program.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) who: Who,
    pub(crate) bare: Bare,
    /// It takes much of the machine, so nothing runs beside it, and the interface is asked meanwhile.
    pub(crate) alone: bool,
    /// Its worker's branch is compared and merged when all is over.
    pub(crate) merged: bool,
    /// A person uses git in the project when its run is over.
    pub(crate) visited: bool,
    /// What a person replaces in the project's folder when the program waits for it.
    pub(crate) replaced: Option<&'static str>,
    pub(crate) expect: Vec<Expect>,
    command: String,
    timeout: f64,
    then: Vec<(&'static str, Value)>,
}

/// A Python program of the corpus, with its arguments.
pub(crate) fn python(name: &'static str, words: &str) -> Case {
    Case::new(name, format!("HOSTILE_CASE={name} exec python3 -B {{programs}}/{words}")).says("done")
}

/// A shell program of the corpus, with its arguments.
pub(crate) fn shell(name: &'static str, words: &str) -> Case {
    Case::new(name, format!("exec bash {{programs}}/{words}")).says("done")
}

/// A command.
pub(crate) fn bash(name: &'static str, command: &str) -> Case {
    Case::new(name, command.to_owned())
}

impl Case {
    fn new(name: &'static str, command: String) -> Self {
        Self {
            name,
            who: Who::Worker,
            bare: Bare::NotRun,
            alone: false,
            merged: false,
            visited: false,
            replaced: None,
            expect: Vec::new(),
            command,
            timeout: 20.0,
            then: Vec::new(),
        }
    }

    pub(crate) fn lead(mut self) -> Self {
        self.who = Who::Lead;
        self
    }

    pub(crate) fn bare(mut self, bare: Bare) -> Self {
        self.bare = bare;
        self
    }

    pub(crate) fn alone(mut self) -> Self {
        self.alone = true;
        self
    }

    pub(crate) fn merged(mut self) -> Self {
        self.merged = true;
        self
    }

    pub(crate) fn visited(mut self) -> Self {
        self.visited = true;
        self
    }

    pub(crate) fn replaced(mut self, file: &'static str) -> Self {
        self.replaced = Some(file);
        self
    }

    pub(crate) fn timeout(mut self, seconds: f64) -> Self {
        self.timeout = seconds;
        self
    }

    pub(crate) fn expect(mut self, expect: Expect) -> Self {
        self.expect.push(expect);
        self
    }

    pub(crate) fn says(self, text: &'static str) -> Self {
        self.expect(Expect::Says(text))
    }

    /// And then a call of another tool.
    pub(crate) fn then(mut self, tool: &'static str, input: Value) -> Self {
        self.then.push((tool, input));
        self
    }

    /// The turns of its agent, for the model server.
    pub(crate) fn turns(&self, world: &World) -> Value {
        let command = filled(&self.command, world);
        let first = json!([{"id": format!("{}-0", self.name), "name": "bash",
            "input": {"command": command, "timeout": self.timeout}}]);
        let then = self.then.iter().enumerate().map(|(i, (tool, input))| {
            let input: Value = serde_json::from_str(&filled(&input.to_string(), world)).unwrap();
            json!([{"id": format!("{}-{}", self.name, i + 1), "name": tool, "input": input}])
        });
        std::iter::once(first).chain(then).collect()
    }
}

/// The paths of a world in the place of their names.
fn filled(text: &str, world: &World) -> String {
    let mut text = text.to_owned();
    for name in ["programs", "outside", "home", "main", "state"] {
        text = text.replace(&format!("{{{name}}}"), &world.path(name).display().to_string());
    }
    text.replace("{evidence}", &evidence(world).display().to_string())
}

/// Where a planted program leaves a trace when somebody executes it; a name follows.
pub(crate) fn evidence(world: &World) -> std::path::PathBuf {
    world.path("outside/executed")
}
