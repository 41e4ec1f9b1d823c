//! Claims about what is summarised and when.

use proptest::prelude::*;

use super::*;
use crate::rules::conversation::{Block, MessageKey, ToolResult, ToolStatus, ToolUse};
use crate::rules::id::{CallId, MessageId};
use crate::rules::mail::Sender;
use crate::rules::validate::Validator;

fn settings(context_tokens: u64, keep: u32) -> Settings {
    Settings { context_tokens, compact_keep_turns: keep, ..Settings::default() }
}

fn injected(id: usize, text: &str) -> Injected {
    let key = MessageKey { from: Sender::User, id: MessageId::new(format!("m{id}")) };
    Injected { text: text.into(), messages: [key].into() }
}

fn says(text: &str, tokens: u64) -> Reply {
    let usage = Usage { input: tokens, ..Usage::default() };
    Reply { blocks: vec![Block::Text(text.into())], usage, ..Reply::default() }
}

/// A step of a conversation that the model has to answer next.
#[derive(Clone, Debug)]
enum Step {
    /// Mail alone.
    Mail,
    /// A reply without calls and the mail at B.
    Says(u64),
    /// A reply with so many calls, their results and perhaps mail.
    Works { calls: usize, mail: bool, tokens: u64 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        1 => Just(Step::Mail),
        2 => (0..2_000_u64).prop_map(Step::Says),
        4 => (1..4_usize, any::<bool>(), 0..2_000_u64)
            .prop_map(|(calls, mail, tokens)| Step::Works { calls, mail, tokens }),
    ];
    prop::collection::vec(step, 0..24)
}

/// The conversation of these steps: every message and every call has its own id.
fn conversation(steps: &[Step]) -> Prompt {
    let mut prompt = Prompt::default();
    prompt.push(Arc::new(Entry::User(Injected::prompt("Do it."))));
    for (at, step) in steps.iter().enumerate() {
        let text = "word ".repeat(at * 7 % 40 + 1);
        match step {
            Step::Mail => prompt.push(Arc::new(Entry::User(injected(at, &text)))),
            Step::Says(tokens) => {
                prompt.push(Arc::new(Entry::Assistant(says(&text, *tokens).into())));
                prompt.push(Arc::new(Entry::User(injected(at, &text))));
            }
            Step::Works { calls, mail, tokens } => {
                let ids: Vec<CallId> = (0..*calls).map(|n| CallId::new(format!("c{at}-{n}"))).collect();
                let mut reply = says(&text, *tokens);
                reply.blocks.extend(ids.iter().map(|id| {
                    let input = serde_json::json!({"path": text});
                    Block::ToolUse(ToolUse { id: id.clone(), name: "read".into(), input })
                }));
                prompt.push(Arc::new(Entry::Assistant(reply.into())));
                let results = ids.into_iter().map(|id| result(id, &text)).collect();
                let mail = mail.then(|| injected(at, &text));
                prompt.push(Arc::new(Entry::ToolResults { results, mail }));
            }
        }
    }
    prompt
}

fn result(id: CallId, text: &str) -> ToolResult {
    ToolResult {
        id,
        name: "read".into(),
        status: ToolStatus::Completed,
        is_error: false,
        text: text.into(),
        messages: Arc::default(),
        cost: Default::default(),
    }
}

fn keys(entries: &[Arc<Entry>]) -> Vec<MessageKey> {
    let of = |entry: &Arc<Entry>| match &**entry {
        Entry::User(mail) | Entry::ToolResults { mail: Some(mail), .. } => mail.messages.to_vec(),
        _ => Vec::new(),
    };
    entries.iter().flat_map(of).collect()
}

proptest! {
    /// Invariants 1 and 3: whatever is cut off, the request for the summary and the prompt
    /// with it are whole conversations, and nothing that no reply has followed is summarised.
    #[test]
    fn pairs_are_never_split_and_what_is_not_answered_stays(steps in steps(), keep in 0..4_u32) {
        let prompt = conversation(&steps);
        let entries = prompt.entries();
        let Some(cut) = cut(entries, keep as usize) else { return Ok(()) };
        prop_assert_eq!(Validator::default().check(request(&prompt, cut).entries()), Ok(()));
        let mut validator = Validator::default();
        prop_assert_eq!(validator.check(entries), Ok(()));
        let compacted = prompt.compacted("[Summary]".into(), entries.len() - cut);
        prop_assert_eq!(validator.compacted(compacted.entries()), Ok(()));
        let kept = &compacted.entries()[1..];
        prop_assert!(kept.iter().zip(&entries[cut..]).all(|(kept, was)| Arc::ptr_eq(kept, was)));
        prop_assert_eq!(kept.len(), entries.len() - cut);
        let newest = entries.iter().rposition(|entry| is_reply(entry)).unwrap();
        let unanswered = keys(&entries[newest + 1..]);
        prop_assert!(keys(kept).ends_with(&unanswered));
        let turns = |entries: &[Arc<Entry>]| entries.iter().filter(|entry| is_reply(entry)).count();
        prop_assert!(turns(kept) >= keep as usize && turns(&entries[..cut]) > 0);
    }

    /// Whatever is decided, a compaction that is used has made room.
    #[test]
    fn a_compaction_that_is_used_is_below_the_threshold(
        steps in steps(),
        window in 1..3_000_u64,
        keep in 0..4_u32,
        words in 0..200_usize,
    ) {
        let (prompt, settings) = (conversation(&steps), settings(window, keep));
        let limit = threshold(&settings).unwrap();
        match need(&prompt, &settings) {
            Need::Nothing => prop_assert!(estimate(&prompt) < limit),
            Need::Hopeless(why) => prop_assert!(why.contains("context_tokens")),
            Need::Summary { cut } => {
                prop_assert!(estimate(&prompt) >= limit);
                let reply = says(&"word ".repeat(words), 9);
                if let Ok((compacted, recorded)) = compact(&prompt, cut, &reply, &settings) {
                    prop_assert!(words > 0 && recorded.tokens.after < limit);
                    prop_assert_eq!(recorded.tokens.after, estimate(&compacted));
                    prop_assert_eq!(need(&compacted, &settings), Need::Nothing);
                }
            }
        }
    }
}

const WORK: Step = Step::Works { calls: 1, mail: false, tokens: 0 };

#[test]
fn without_a_window_nothing_is_ever_compacted() {
    let prompt = conversation(&vec![WORK; 20]);
    assert_eq!(need(&prompt, &Settings::default()), Need::Nothing);
    assert_eq!(threshold(&settings(1_000, 2)), Some(800));
    assert_eq!(threshold(&Settings { compact_at: 0, ..settings(1_000, 2) }), Some(10));
    assert_eq!(threshold(&settings(u64::MAX, 2)), Some((u128::from(u64::MAX) * 80 / 100) as u64));
}

#[test]
fn what_the_provider_counted_holds_until_something_new_comes() {
    let mut prompt = Prompt::default();
    prompt.push(Arc::new(Entry::User(Injected::prompt("12345"))));
    assert_eq!(estimate(&prompt), 2, "five bytes are two tokens");
    let usage = Usage { input: 100, output: 20, cached: 90 };
    prompt.push(Arc::new(Entry::Assistant(Reply { usage, ..says("ignored", 0) }.into())));
    prompt.push(Arc::new(Entry::User(Injected::prompt("123456789"))));
    assert_eq!(estimate(&prompt), 120 + 3);
    let compacted = prompt.compacted("1234".into(), 2);
    assert_eq!(estimate(&compacted), (4 + 7 + 9_u64).div_ceil(4), "it counted another prompt");
}

#[test]
fn what_has_to_stay_marks_the_place_of_the_cut() {
    let says = Step::Says(0);
    for (steps, keep, expected) in [
        // [prompt, reply, results, reply, results, reply, results]
        (vec![WORK, WORK, WORK], 2, Some(3)),
        (vec![WORK, WORK, WORK], 1, Some(5)),
        // The results wait for their reply.
        (vec![WORK, WORK, WORK], 0, Some(5)),
        (vec![WORK, WORK, WORK], 3, None),
        (vec![WORK], 0, None),
        (vec![], 0, None),
        // [prompt, reply, mail, reply, mail, reply, mail]: mail stays with its answer.
        (vec![says.clone(), says.clone(), says.clone()], 2, Some(2)),
        (vec![says.clone(), says.clone(), says.clone()], 0, Some(6)),
        (vec![WORK, Step::Mail, Step::Mail], 0, None),
        (vec![WORK, says, Step::Mail], 0, Some(4)),
    ] {
        assert_eq!(cut(conversation(&steps).entries(), keep), expected, "{steps:?} keeping {keep}");
    }
}

#[test]
fn a_reply_that_is_no_summary_is_not_used() {
    let prompt = conversation(&vec![WORK; 8]);
    let settings = settings(200, 2);
    let Need::Summary { cut } = need(&prompt, &settings) else { panic!("it is long enough") };
    let call =
        Block::ToolUse(ToolUse { id: CallId::new("c"), name: "read".into(), input: serde_json::json!({}) });
    let mut asks = says("Let me look.", 0);
    asks.blocks.push(call);
    for (reply, why) in [
        (says(" \n", 0), "the summary was empty"),
        (asks, "asked for tools"),
        (Reply { stop_reason: StopReason::MaxTokens, ..says("Half of", 0) }, "cut at its token limit"),
        (says(&"word ".repeat(500), 0), "it would hold"),
    ] {
        let refused = compact(&prompt, cut, &reply, &settings).unwrap_err();
        assert!(refused.contains(why) && refused.contains("of 200 tokens"), "{refused}");
    }
    let (compacted, _) = compact(&prompt, cut, &says("All\nis well.", 0), &settings).unwrap();
    let Entry::User(first) = &*compacted.entries()[0] else { panic!("a summary is a user's entry") };
    assert_eq!(&*first.text, "[Summary of the conversation so far: All\n  is well.]");
}

#[test]
fn a_compaction_that_did_not_help_is_not_tried_again() {
    let settings = settings(2_000, 1);
    let mut prompt = conversation(&vec![WORK; 6]).compacted("So far.".into(), 2);
    let grow = |prompt: &mut Prompt, tokens| {
        prompt.push(Arc::new(Entry::Assistant(says("More.", tokens).into())));
        prompt.push(Arc::new(Entry::User(Injected::prompt("Go on."))));
    };
    let mut helped = prompt.clone();
    grow(&mut prompt, 1_700);
    assert!(matches!(need(&prompt, &settings), Need::Hopeless(why) if why.contains("did not help")));
    grow(&mut helped, 900);
    assert_eq!(need(&helped, &settings), Need::Nothing);
    grow(&mut helped, 1_700);
    assert!(matches!(need(&helped, &settings), Need::Summary { .. }));
}
