//! `midturn doctor --attack`: what a command can do on this machine. Commands are run as an agent's are, by the same
//! tool, in the sandbox that is configured, in a project that is made for it and goes with it; what each could do is
//! told beside what docs/security.md promises. It changes nothing but what it has made itself.

mod met;
mod play;
mod promise;
mod rows;
mod scene;

use std::path::Path;

use midturn_tools::sandbox::{Kept, Tier};

use self::met::Met;
use self::promise::Promise;
use super::{Finding, Verdict, json};
use crate::args::LayerArgs;
use crate::commands;
use crate::config::Config;
use crate::env::Env;
use crate::failure::{End, Failure};
use crate::host::safety::Safety;

/// What is said of a row that isn't as promised.
const NOT_SO: &str = "docs/security.md promises otherwise for this sandbox: if you let it in yourself (`sandbox.writable`, \
     `sandbox.read`) that is why; else please report it as docs/security.md says";

/// And of one that nobody can say anything of.
const NOT_CLEAR: &str =
    "it said neither that it could nor that it couldn't: please report that as docs/security.md says";

/// `midturn doctor --attack`.
///
/// # Errors
/// The configuration is not sound, or what the attack needs can't be made.
pub(super) fn attack(layer: &LayerArgs, folder: &Path, as_json: bool, env: &Env) -> Result<End, Failure> {
    let config = commands::load(layer, folder, env)?;
    let findings = commands::block_on(findings(&config, env))??;
    let is_well = findings.iter().all(|finding| finding.state < Verdict::Missing);
    commands::print(&if as_json { json(&findings, is_well) } else { table(&findings) })?;
    Ok(if is_well { End::Finished } else { End::Failed })
}

async fn findings(config: &Config, env: &Env) -> Result<Vec<Finding>, Failure> {
    let safety = match Safety::of(config, None).await {
        Ok(safety) => safety,
        Err(why) => return Ok(vec![Finding::missing("sandbox", why.to_string())]),
    };
    let force = safety.sandbox().in_force();
    let first = match force.tier {
        Tier::None => Finding::weak("sandbox", "none: commands can do all that you can"),
        Tier::Bubblewrap | Tier::Landlock => Finding::ok("sandbox", Kept(&force).to_string()),
    };
    let played = play::all(config, &safety, env).await?;
    let rows = played.into_iter().map(|(what, promise, met)| finding(what, promise, &met));
    Ok([first].into_iter().chain(rows).collect())
}

/// A row as it is told.
fn finding(what: &'static str, promise: Promise, met: &Met) -> Finding {
    let found = met.to_string();
    match met {
        Met::Untried(_) => Finding::weak(what, found),
        Met::Unclear(_) if !promise.holds(met) => Finding::broken(what, found).mended_by(NOT_CLEAR),
        met if !promise.holds(met) => Finding::broken(what, found).mended_by(NOT_SO),
        met if met.is_held() => Finding::ok(what, found),
        _ => Finding::weak(what, found),
    }
}

fn table(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.about.chars().count()).max().unwrap_or(0);
    let line = |Finding { state, about, found, mend }: &Finding| {
        let mend = mend.as_ref().map(|mend| format!("\n        -> {mend}")).unwrap_or_default();
        format!("{:7} {about:width$}  {found}{mend}", state.word())
    };
    let lines: Vec<String> = findings.iter().map(line).collect();
    format!("{}\n\n{}\n", lines.join("\n"), last(findings))
}

fn last(findings: &[Finding]) -> String {
    let count = |state| findings.iter().filter(|finding| finding.state == state).count();
    let is_kept = findings.first().is_none_or(|sandbox| sandbox.state != Verdict::Weak);
    match (count(Verdict::Missing), count(Verdict::Broken), count(Verdict::Weak)) {
        (0, 0, weak) if !is_kept => {
            format!(
                "there is no sandbox, and nothing is promised but limits: see the {weak} lines that are weak"
            )
        }
        (0, 0, 0) => "all is as docs/security.md says for this sandbox".to_owned(),
        (0, 0, weak) => format!(
            "all that docs/security.md promises for this sandbox holds; where it is weak nothing is promised, or nothing could \
             be told ({weak})"
        ),
        (0, 1, _) => "1 line is not as docs/security.md says for this sandbox".to_owned(),
        (0, broken, _) => format!("{broken} lines are not as docs/security.md says for this sandbox"),
        (..) => "agents can't work here as it is: `midturn doctor` says more".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_done_and_is_not_promised_away_is_weak_and_what_is_promised_and_does_not_hold_is_broken() {
        for (promise, met, state) in [
            (Promise::Held, Met::Refused, Verdict::Ok),
            (Promise::Held, Met::Can, Verdict::Broken),
            (Promise::Nothing, Met::Can, Verdict::Weak),
            (Promise::Nothing, Met::NotThere, Verdict::Ok),
            (Promise::Held, Met::Untried("python3 is not there".to_owned()), Verdict::Weak),
            (Promise::Held, Met::Unclear("x".to_owned()), Verdict::Broken),
            (Promise::Nothing, Met::Unclear("x".to_owned()), Verdict::Weak),
        ] {
            assert_eq!(finding("x", promise, &met).state, state, "{promise:?} {met:?}");
        }
        let rows =
            [finding("write", Promise::Held, &Met::Refused), finding("read it", Promise::Held, &Met::Can)];
        let text = table(&rows);
        assert!(
            text.starts_with("ok      write    refused\nbroken  read it  can\n        -> docs/security.md")
        );
        assert!(text.ends_with("\n\n1 line is not as docs/security.md says for this sandbox\n"), "{text}");
        assert_eq!(last(&rows[..1]), "all is as docs/security.md says for this sandbox");
    }
}
