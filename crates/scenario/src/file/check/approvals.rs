//! What a file says of approvals: rules that can be read, and answers only where something
//! is asked.

use midturn_core::rules::approval::{Mode, Policy, Rule, RuleError};

use super::super::raw::{RawApprovals, RawItem};
use crate::error::{Error, Source};
use crate::scenario::Approvals;
use crate::values::At;

/// Checks the key `approvals` against the file's answers.
pub(super) fn checked(
    source: &Source,
    raw: Option<At<RawApprovals>>,
    items: &[At<RawItem>],
) -> Result<Approvals, Error> {
    let raw = raw.map(|raw| raw.value).unwrap_or_default();
    let policy = policy(source, &raw)?;
    let answer = items.iter().find_map(|item| item.value.answer.as_ref());
    if let (Some(answer), Mode::Auto | Mode::Plan) = (answer, policy.mode) {
        let found = format!("an answer, where the mode is `{}` and nobody is asked", policy.mode.as_str());
        return Err(source.fault(answer.place, found, "`approvals: {mode: ask}` or `{mode: accept-edits}`"));
    }
    if let (Some(answer), Some(At { value: false, .. })) = (answer, &raw.attached) {
        let expected = "no `attached: false` beside answers";
        return Err(source.fault(answer.place, "an answer, and nobody is attached", expected));
    }
    let attached = raw.attached.map_or(answer.is_some(), |attached| attached.value);
    Ok(Approvals { policy, attached })
}

fn policy(source: &Source, raw: &RawApprovals) -> Result<Policy, Error> {
    let rules = |texts: &Option<Vec<At<String>>>| -> Result<Vec<Rule>, Error> {
        texts.iter().flatten().map(|text| rule(source, text)).collect()
    };
    let default = Policy::default();
    Ok(Policy {
        mode: raw.mode.unwrap_or(default.mode),
        allow: rules(&raw.allow)?,
        deny: rules(&raw.deny)?,
        patience: raw.patience.unwrap_or(default.patience),
    })
}

/// A rule of the file's.
pub(super) fn rule(source: &Source, text: &At<String>) -> Result<Rule, Error> {
    Rule::parse(&text.value).map_err(|error| {
        let found = match error {
            RuleError::Pattern(..) => error.to_string(),
            RuleError::Form(_) | RuleError::OtherCall(_) => format!("`{}`, which is not a rule", text.value),
        };
        let expected = "TOOL or TOOL(PATTERN), as in bash(cargo test *), edit(src/**) or read";
        source.fault(text.place, found, expected)
    })
}
