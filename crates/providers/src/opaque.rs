//! Blocks that only their provider understands, and whose they are.

use std::borrow::Cow;

use midturn_core::rules::conversation::{Block, Opaque};
use serde::Deserialize;

/// Whose block it is. A conversation may be continued with another provider's model, which
/// would refuse what it doesn't know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Anthropic,
    OpenAi,
}

impl Owner {
    /// What goes back to this provider as it came from there, if the block is such a one.
    pub(crate) fn part_of(self, block: &Block) -> Option<&str> {
        let raw = match block {
            Block::Thinking(thinking) => thinking.replay.as_ref(),
            Block::Provider(raw) => Some(raw),
            Block::Text(_) | Block::ToolUse(_) => None,
        };
        raw.filter(|raw| owner(raw) == self).map(|raw| &*raw.0)
    }
}

/// The owner, by the block's type.
fn owner(block: &Opaque) -> Owner {
    #[derive(Deserialize)]
    struct Typed<'a> {
        #[serde(rename = "type", borrow)]
        kind: Cow<'a, str>,
    }
    let kind = serde_json::from_str::<Typed<'_>>(&block.0).map_or(Cow::Borrowed(""), |typed| typed.kind);
    let items = ["reasoning", "compaction_summary", "mcp_list_tools", "item_reference"];
    let calls = ["_call", "_call_output", "_approval_request", "_approval_response"];
    if items.contains(&kind.as_ref()) || calls.iter().any(|end| kind.ends_with(end)) {
        Owner::OpenAi
    } else {
        Owner::Anthropic
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_known_by_its_type() {
        for (block, whose) in [
            (r#"{"type":"thinking"}"#, Owner::Anthropic),
            (r#"{"type":"server_tool_use"}"#, Owner::Anthropic),
            (r#"{"type":"web_search_tool_result"}"#, Owner::Anthropic),
            (r#"{"id":"rs_1","type":"reasoning"}"#, Owner::OpenAi),
            (r#"{"type":"web_search_call"}"#, Owner::OpenAi),
        ] {
            assert_eq!(owner(&Opaque(block.into())), whose, "{block}");
        }
    }
}
