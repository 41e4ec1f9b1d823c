//! The items of a response while they come, and which of them an event means.
//!
//! OpenAI numbers its items (`output_index`), and some that stand between us and it change
//! their ids from event to event: an index is believed first. llama.cpp and others send no
//! index but ids: `item.id` or, for calls, `item.call_id`; a delta's `item_id` is one of them.

use midturn_core::rules::conversation::{Block, Thinking};

use crate::dialect::{Account, cut_call, tool_use};
use crate::text::Text;

/// What an event says of the item it means.
#[derive(Clone, Copy)]
pub(super) struct ItemKeys<'a> {
    pub(super) index: Option<u32>,
    pub(super) id: Option<&'a str>,
    pub(super) call_id: Option<&'a str>,
    /// The item's type.
    pub(super) kind: &'a str,
}

impl<'a> ItemKeys<'a> {
    fn ids(self) -> impl Iterator<Item = &'a str> {
        [self.id, self.call_id].into_iter().flatten()
    }
}

/// An item while it comes.
#[derive(Default)]
pub(super) struct Building {
    index: Option<u32>,
    /// Where it stands in the reply.
    place: u32,
    kind: String,
    id: Option<String>,
    call_id: Option<String>,
    pub(super) name: String,
    /// Text, reasoning or arguments, as told by deltas.
    pub(super) told: Text,
    /// The item as it was when it was done.
    pub(super) done: Option<Option<Block>>,
}

impl Building {
    /// The id of the item as a call; one is made where none came.
    pub(super) fn call(&self, call: u64) -> String {
        let id = self.call_id.as_ref().or(self.id.as_ref());
        id.cloned().unwrap_or_else(|| format!("call_{call}_{}", self.place))
    }

    /// Tells how far a call has come, once it is known which tool it calls.
    pub(super) fn tell_call(&self, account: &Account<'_>) {
        if self.kind == "function_call" && !self.name.is_empty() {
            account.progress.call(&self.call(account.call), &self.name, self.told.len());
        }
    }

    fn ids(&self) -> impl Iterator<Item = &str> {
        [&self.id, &self.call_id].into_iter().flatten().map(String::as_str)
    }

    fn has_index_of(&self, keys: ItemKeys<'_>) -> bool {
        keys.index.is_some() && self.index == keys.index
    }

    fn has_id_of(&self, keys: ItemKeys<'_>) -> bool {
        let same = match (&self.call_id, keys.call_id) {
            (Some(ours), Some(theirs)) => ours == theirs,
            _ => keys.ids().any(|id| self.ids().any(|ours| ours == id)),
        };
        same && self.may_be(keys)
    }

    /// Nothing tells the two apart, and the item is still coming.
    fn is_open_to(&self, keys: ItemKeys<'_>) -> bool {
        let nameless = keys.ids().next().is_none() || self.ids().next().is_none();
        nameless && self.done.is_none() && self.may_be(keys)
    }

    fn may_be(&self, keys: ItemKeys<'_>) -> bool {
        (self.kind.is_empty() || self.kind == keys.kind) && (self.index.is_none() || keys.index.is_none())
    }

    /// Takes over what the event says; what it doesn't say stays.
    fn learn(&mut self, keys: ItemKeys<'_>) {
        if let Some(index) = keys.index {
            (self.index, self.place) = (Some(index), index);
        }
        for (ours, theirs) in [(&mut self.id, keys.id), (&mut self.call_id, keys.call_id)] {
            if theirs.is_some() && ours.as_deref() != theirs {
                *ours = theirs.map(str::to_owned);
            }
        }
        if self.kind.is_empty() {
            keys.kind.clone_into(&mut self.kind);
        }
    }

    /// An item that was never done is what its deltas told.
    fn block(self, call: u64) -> Option<Block> {
        let id = self.call(call);
        let Self { kind, name, told, done, .. } = self;
        match (done, kind.as_str()) {
            (Some(block), _) => block,
            (None, "message") => Some(told.finish()).filter(|text| !text.is_empty()).map(Block::Text),
            (None, "reasoning") => Some(Block::Thinking(Thinking { text: told.finish(), replay: None })),
            // Without a name nobody can say what was called.
            (None, "function_call") if name.is_empty() => None,
            (None, "function_call") if told.is_empty() => Some(cut_call(id, name)),
            (None, "function_call") => Some(tool_use(id, name, &told.finish())),
            (None, _) => None,
        }
    }
}

/// All items of a response.
#[derive(Default)]
pub(super) struct Items(Vec<Building>);

impl Items {
    /// The item that an event begins: a new one behind all others, unless it is known already.
    pub(super) fn begun(&mut self, keys: ItemKeys<'_>) -> &mut Building {
        self.learned(self.known(keys), keys)
    }

    /// The item that an event goes on with: a known one, else the last one that is still coming
    /// and could be meant, else a new one.
    pub(super) fn of(&mut self, keys: ItemKeys<'_>) -> &mut Building {
        let at = self.known(keys).or_else(|| self.last(|item| item.is_open_to(keys)));
        self.learned(at, keys)
    }

    /// The item of that index, else the one of that id.
    fn known(&self, keys: ItemKeys<'_>) -> Option<usize> {
        self.last(|item| item.has_index_of(keys)).or_else(|| self.last(|item| item.has_id_of(keys)))
    }

    fn last(&self, is: impl Fn(&Building) -> bool) -> Option<usize> {
        self.0.iter().rposition(is)
    }

    fn learned(&mut self, at: Option<usize>, keys: ItemKeys<'_>) -> &mut Building {
        let at = at.unwrap_or_else(|| self.begin());
        let item = &mut self.0[at];
        item.learn(keys);
        item
    }

    fn begin(&mut self) -> usize {
        let place = self.0.iter().map(|item| item.place.saturating_add(1)).max().unwrap_or(0);
        self.0.push(Building { place, ..Building::default() });
        self.0.len() - 1
    }

    /// Whether some item is done.
    pub(super) fn any_done(&self) -> bool {
        self.0.iter().any(|item| item.done.is_some())
    }

    /// Forgets the items that are not done.
    pub(super) fn keep_done(&mut self) {
        self.0.retain(|item| item.done.is_some());
    }

    /// What the items came to, in order. `call` is the number of the model call.
    pub(super) fn into_blocks(mut self, call: u64) -> Vec<Block> {
        self.0.sort_by_key(|item| item.place);
        self.0.into_iter().filter_map(|item| item.block(call)).collect()
    }
}
