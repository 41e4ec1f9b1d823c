//! When a conversation is compacted, what of it is summarised, and whether that helped
//! (docs/semantics.md, section 7; docs/decisions/0018).
//!
//! It weighs entries and decides. It calls no model and changes no prompt.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::conversation::{Entry, Injected, Reply, StopReason, Usage};
use super::prompt::Prompt;
use super::settings::Settings;
use super::wording;

/// How many bytes are taken for a token where no provider has counted.
const BYTES_PER_TOKEN: u64 = 4;

/// What a model call is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The reply of a turn.
    #[default]
    Turn,
    /// A summary of the conversation's older part.
    Summary,
}

impl Purpose {
    /// Whether it is the call that every turn makes.
    pub fn is_turn(&self) -> bool {
        *self == Self::Turn
    }
}

/// How large a prompt was before a compaction and is after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Sizes {
    /// Before.
    pub before: u64,
    /// After.
    pub after: u64,
}

/// A compaction, as it is recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compaction {
    /// The entry that stands for what was summarised, as the model sees it.
    pub summary: Arc<str>,
    /// What the call for the summary cost.
    pub usage: Usage,
    /// How many entries at the end of the prompt were kept whole.
    pub kept: u64,
    /// The prompt's messages, after merging.
    pub messages: Sizes,
    /// The prompt's tokens, as estimated.
    pub tokens: Sizes,
}

/// What has to be done before a turn's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing: there is room, or nobody has said how much there is.
    Nothing,
    /// The first `cut` entries are summarised.
    Summary {
        /// How many entries are summarised; those from there on stay whole.
        cut: usize,
    },
    /// No summary would make room; the text says so, and what a person can do.
    Hopeless(String),
}

/// Whether the prompt nears the model's limit, and what is to be done about it.
pub fn need(prompt: &Prompt, settings: &Settings) -> Need {
    let Some(threshold) = threshold(settings) else { return Need::Nothing };
    let tokens = estimate(prompt);
    if tokens < threshold {
        return Need::Nothing;
    }
    if measured_after(prompt).is_some_and(|input| input >= threshold) {
        return Need::Hopeless(crowded(tokens, settings, "the last compaction did not help"));
    }
    let keep = usize::try_from(settings.compact_keep_turns).unwrap_or(usize::MAX);
    match cut(prompt.entries(), keep) {
        None => Need::Hopeless(crowded(tokens, settings, "no turn is old enough to be summarised")),
        Some(cut) if weigh(prompt, cut) >= threshold => {
            Need::Hopeless(crowded(tokens, settings, "what has to be kept fills it alone"))
        }
        Some(cut) => Need::Summary { cut },
    }
}

/// From how many tokens on a conversation is compacted; `None`: never.
fn threshold(settings: &Settings) -> Option<u64> {
    let percent = u128::from(settings.compact_at.clamp(1, 100));
    let tokens = u128::from(settings.context_tokens) * percent / 100;
    (settings.context_tokens != 0).then(|| u64::try_from(tokens).unwrap_or(u64::MAX).max(1))
}

/// How many tokens the next request will hold: what the provider counted for the last reply
/// and what came since, or all of it by its bytes where it has counted nothing since the last
/// compaction.
pub fn estimate(prompt: &Prompt) -> u64 {
    let (from, tokens) = counted(prompt).unwrap_or_default();
    tokens.saturating_add(weigh(prompt, from))
}

/// What the provider counted for the last reply, if it was one since the last compaction; and where
/// the entries begin that came after it.
fn counted(prompt: &Prompt) -> Option<(usize, u64)> {
    let entries = prompt.entries();
    let at = entries.iter().rposition(|entry| is_reply(entry)).filter(|at| *at >= prompt.begin())?;
    Some((at + 1, reply(&entries[at])?.usage.total())).filter(|(_, tokens)| *tokens > 0)
}

/// The most tokens that the next request can hold, with so many bytes of system prompt and
/// tools around it: a token has at least one byte, and a message has a few of its own.
pub fn most(prompt: &Prompt, around: u64) -> u64 {
    const OF_A_MESSAGE: u64 = 16;
    let (from, tokens) = counted(prompt).unwrap_or((0, around));
    let fresh = (prompt.entries().len() - from) as u64;
    tokens.saturating_add(prompt.bytes_from(from)).saturating_add(OF_A_MESSAGE * (fresh + 1))
}

/// What the provider counted for the first request after the last compaction.
fn measured_after(prompt: &Prompt) -> Option<u64> {
    let since = prompt.entries().get(prompt.begin()..).filter(|_| prompt.compactions() > 0)?;
    since.iter().find_map(|entry| reply(entry)).map(|reply| reply.usage.input)
}

/// How many of the first entries may be summarised, if that is at least one whole turn. The
/// last `keep` turns stay with what they answer, and so does what no reply has followed yet.
fn cut(entries: &[Arc<Entry>], keep: usize) -> Option<usize> {
    let newest = entries.iter().rposition(|entry| is_reply(entry))?;
    let has_results = matches!(entries.get(newest + 1).map(|next| &**next), Some(Entry::ToolResults { .. }));
    let unanswered = if has_results { newest } else { newest + 1 };
    let replies = entries.iter().enumerate().rev().filter(|(_, entry)| is_reply(entry));
    let mut cut = match keep.checked_sub(1) {
        Some(older) => replies.map(|(at, _)| at).nth(older)?.min(unanswered),
        None => unanswered,
    };
    while cut > 0 && matches!(*entries[cut - 1], Entry::User(_)) {
        cut -= 1;
    }
    entries[..cut].iter().any(|entry| is_reply(entry)).then_some(cut)
}

fn is_reply(entry: &Entry) -> bool {
    reply(entry).is_some()
}

fn reply(entry: &Entry) -> Option<&Reply> {
    match entry {
        Entry::Assistant(reply) => Some(reply),
        Entry::User(_) | Entry::Interrupted(_) | Entry::ToolResults { .. } => None,
    }
}

/// The tokens of the entries from this one on by their bytes.
fn weigh(prompt: &Prompt, from: usize) -> u64 {
    prompt.bytes_from(from).div_ceil(BYTES_PER_TOKEN)
}

/// The request for a summary of the first `cut` entries: they, and what is asked of the model.
pub fn request(prompt: &Prompt, cut: usize) -> Prompt {
    let mut asked = prompt.first(cut);
    asked.push(Arc::new(Entry::User(Injected::prompt(wording::ASKS_FOR_SUMMARY))));
    asked
}

/// The prompt with the summary in the place of its first `cut` entries, and what is recorded
/// of it.
///
/// # Errors
/// Why it makes no room, and what a person can do: the run ends with it.
pub fn compact(
    prompt: &Prompt,
    cut: usize,
    reply: &Reply,
    settings: &Settings,
) -> Result<(Prompt, Compaction), String> {
    let before = estimate(prompt);
    let crowded = |why: &str| Err(crowded(before, settings, why));
    if let Some(flaw) = flaw(reply) {
        return crowded(flaw);
    }
    let summary: Arc<str> = wording::summary(&reply.text()).into();
    let kept = prompt.entries().len() - cut;
    let compacted = prompt.compacted(summary.clone(), kept);
    let after = estimate(&compacted);
    if threshold(settings).is_some_and(|threshold| after >= threshold) {
        return crowded(&format!("with its older part summarised it would hold {after}"));
    }
    let compaction = Compaction {
        summary,
        usage: reply.usage,
        kept: kept as u64,
        messages: Sizes { before: prompt.messages(), after: compacted.messages() },
        tokens: Sizes { before, after },
    };
    Ok((compacted, compaction))
}

/// Why a reply is no summary, if it isn't one.
fn flaw(reply: &Reply) -> Option<&'static str> {
    if reply.stop_reason == StopReason::MaxTokens {
        Some("the summary was cut at its token limit")
    } else if reply.calls().next().is_some() {
        Some("the model asked for tools instead of summarising it")
    } else if reply.text().trim().is_empty() {
        Some("the summary was empty")
    } else {
        None
    }
}

fn crowded(tokens: u64, settings: &Settings, why: &str) -> String {
    let (window, percent) = (settings.context_tokens, settings.compact_at);
    format!(
        "context_tokens: the conversation holds about {tokens} of {window} tokens (compacted from {percent} % on) \
         and {why}; begin another agent with what matters of it, lower compact_keep_turns, or raise \
         context_tokens if the model takes more"
    )
}

#[cfg(test)]
mod tests;
