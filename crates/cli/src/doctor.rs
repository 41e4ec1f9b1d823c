//! `midturn doctor`: whether agents can work here, and how safely, in plain lines. It looks and
//! tries, and changes nothing: no folder is made, no store is opened for writing. Only `--attack` makes some, for
//! itself, and takes them away.

mod attack;
mod checks;
mod joined;
mod rules;
mod sandbox;

use std::fmt;

use serde::Serialize;

use crate::args::DoctorArgs;
use crate::commands;
use crate::env::Env;
use crate::failure::{End, Failure};

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// As it should be.
    Ok,
    /// It works, and could be better.
    Weak,
    /// Agents can't work.
    Missing,
    /// What is promised doesn't hold.
    Broken,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Weak => "weak",
            Self::Missing => "missing",
            Self::Broken => "broken",
        }
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// How it is.
    pub(crate) state: Verdict,
    /// What was looked at.
    pub(crate) about: &'static str,
    /// What was found.
    pub(crate) found: String,
    /// How to mend it, where there is something to mend.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mend: Option<String>,
}

impl Finding {
    fn ok(about: &'static str, found: impl Into<String>) -> Self {
        Self { state: Verdict::Ok, about, found: found.into(), mend: None }
    }

    fn weak(about: &'static str, found: impl Into<String>) -> Self {
        Self { state: Verdict::Weak, ..Self::ok(about, found) }
    }

    fn missing(about: &'static str, found: impl Into<String>) -> Self {
        Self { state: Verdict::Missing, ..Self::ok(about, found) }
    }

    fn broken(about: &'static str, found: impl Into<String>) -> Self {
        Self { state: Verdict::Broken, ..Self::ok(about, found) }
    }

    fn mended_by(self, mend: impl Into<String>) -> Self {
        Self { mend: Some(mend.into()), ..self }
    }
}

impl fmt::Display for Finding {
    /// One line, and one more that says what to do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.word();
        let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        write!(f, "{state:7} {}: {}", self.about, one_line(&self.found))?;
        match &self.mend {
            Some(mend) => write!(f, "\n        -> {}", one_line(mend)),
            None => Ok(()),
        }
    }
}

/// `midturn doctor`.
///
/// # Errors
/// [`Failure::Usage`]: the working folder is not there. What is wrong besides is told, not failed with.
pub(crate) fn doctor(args: &DoctorArgs, env: &Env) -> Result<End, Failure> {
    let layer = args.work.whole_layer();
    let folder = commands::work_folder(&layer)?;
    if let Some(command) = &args.rules {
        let policy = commands::load(&layer, &folder, env)?.policy();
        commands::print(&rules::explained(&policy, command, args.json))?;
        return Ok(End::Finished);
    }
    if args.attack {
        return attack::attack(&layer, &folder, args.json, env);
    }
    let findings = commands::block_on(checks::all(&layer, &args.work.store, &folder, env))?;
    let is_well = findings.iter().all(|finding| finding.state < Verdict::Missing);
    commands::print(&if args.json { json(&findings, is_well) } else { text(&findings, is_well) })?;
    Ok(if is_well { End::Finished } else { End::Failed })
}

fn text(findings: &[Finding], is_well: bool) -> String {
    let lines: Vec<String> = findings.iter().map(Finding::to_string).collect();
    let weak = findings.iter().filter(|finding| finding.state == Verdict::Weak).count();
    let last = match (is_well, weak) {
        (false, _) => "agents can't work here as it is: see what is missing".to_owned(),
        (true, 0) => "agents can work here".to_owned(),
        (true, weak) => format!("agents can work here; {weak} could be better"),
    };
    format!("{}\n\n{last}\n", lines.join("\n"))
}

fn json(findings: &[Finding], is_well: bool) -> String {
    format!("{:#}\n", serde_json::json!({"ok": is_well, "findings": findings}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_a_line_and_what_to_do_another() {
        for (finding, expected) in [
            (Finding::ok("git", "2.39\n"), "ok      git: 2.39"),
            (
                Finding::weak("limits", "a\nb").mended_by("do  this"),
                "weak    limits: a b\n        -> do this",
            ),
            (Finding::missing("git", "none"), "missing git: none"),
        ] {
            assert_eq!(finding.to_string(), expected);
        }
        let all = [Finding::ok("git", "2"), Finding::weak("limits", "x")];
        assert!(text(&all, true).ends_with("agents can work here; 1 could be better\n"));
        let shown: serde_json::Value = serde_json::from_str(&json(&all, true)).unwrap();
        assert_eq!((&shown["ok"], &shown["findings"][1]["state"]), (&true.into(), &"weak".into()));
    }
}
