//! Ours into a text of settings, and out of it: everything else keeps its bytes. What there was before an install is
//! what is left when ours is taken out, so an install begins with that too. It reads and writes no file.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::ser::{PrettyFormatter, Serializer};

use super::entries::{self, EVENTS, Handler, Ours, PREFIX};
use super::json::{Container, Item, NoObject, Text};

/// What settings are that don't hold anything yet.
pub(super) const EMPTY: &str = "{}\n";

/// Why ours can't be put in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unfit {
    #[error(transparent)]
    NoObject(#[from] NoObject),
    #[error("`{0}` is not {1}")]
    Shape(String, &'static str),
    #[error("`{0}` stands there twice")]
    Twice(String),
}

/// What is to be put in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) program: &'a str,
    pub(super) prefix: Option<&'a str>,
}

/// A text with ours in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Installed {
    pub(super) text: String,
    /// The objects and lists that were made for it.
    pub(super) made: BTreeSet<String>,
    /// A prefix that stands in the way of ours.
    pub(super) other_prefix: Option<String>,
}

/// Puts ours into a text that has nothing of it.
pub(super) fn put_in(base: &str, wanted: Wanted<'_>) -> Result<Installed, Unfit> {
    let mut text = Text::of(base.to_owned())?;
    let mut made = BTreeSet::new();
    for event in EVENTS {
        let hooks = made_object(&mut text, "hooks", &mut made)?;
        let group = entries::group(event, wanted.program);
        let name = format!("hooks.{event}");
        text = match only(&hooks, event, &name)? {
            Some(list) => {
                let groups = text.array(&list.value).ok_or(Unfit::Shape(name, "a list"))?;
                check_groups(&text, event, &groups)?;
                inserted(&text, &groups, None, &group)?
            }
            None => {
                made.insert(name);
                inserted(&text, &hooks, Some(event), &[group])?
            }
        };
    }
    let other_prefix = match wanted.prefix {
        Some(prefix) => put_prefix_in(&mut text, prefix, &mut made)?,
        None => None,
    };
    Ok(Installed { text: text.as_str().to_owned(), made, other_prefix })
}

/// Gives back the prefix that is there already.
fn put_prefix_in(
    text: &mut Text,
    prefix: &str,
    made: &mut BTreeSet<String>,
) -> Result<Option<String>, Unfit> {
    if let Some(there) = prefix_of(text) {
        return Ok(Some(there));
    }
    let env = made_object(text, "env", made)?;
    let name = format!("env.{PREFIX}");
    // What is no text is not taken for a prefix by anybody, but it is somebody's.
    if let Some(odd) = only(&env, PREFIX, &name)? {
        return text.read::<String>(&odd.value).map(Some).ok_or(Unfit::Shape(name, "a text"));
    }
    *text = inserted(text, &env, Some(PREFIX), &prefix)?;
    Ok(None)
}

/// An object of the settings, which is made if it isn't there.
fn made_object(text: &mut Text, key: &str, made: &mut BTreeSet<String>) -> Result<Container, Unfit> {
    if only(&text.root(), key, key)?.is_none() {
        *text = inserted(text, &text.root(), Some(key), &serde_json::Map::new())?;
        made.insert(key.to_owned());
    }
    let found = only(&text.root(), key, key)?;
    let object = found.and_then(|item| text.object(&item.value));
    object.ok_or_else(|| Unfit::Shape(key.to_owned(), "an object"))
}

/// The one member of this name. Of two Claude Code would obey the last, and an editor may show the first.
fn only(container: &Container, key: &str, name: &str) -> Result<Option<Item>, Unfit> {
    let mut found = container.members(key);
    match (found.next(), found.next()) {
        (_, Some(_)) => Err(Unfit::Twice(name.to_owned())),
        (found, None) => Ok(found.cloned()),
    }
}

/// Claude Code reads no settings at all with a list of hooks that it doesn't understand.
fn check_groups(text: &Text, event: &str, groups: &Container) -> Result<(), Unfit> {
    for (at, group) in groups.items.iter().enumerate() {
        let shape = |what| Unfit::Shape(format!("hooks.{event}[{at}]"), what);
        let object = text.object(&group.value).ok_or_else(|| shape("an object"))?;
        let hooks = only(&object, "hooks", "hooks")?;
        let handlers = hooks.and_then(|hooks| text.array(&hooks.value));
        let handlers = handlers.ok_or_else(|| shape("an object with a list `hooks`"))?;
        if !handlers.items.iter().all(|handler| text.object(&handler.value).is_some()) {
            return Err(shape("an object with a list `hooks` of objects"));
        }
    }
    Ok(())
}

/// What stands around a new item.
struct Style {
    /// One step; `None`: all on one line.
    unit: Option<String>,
    /// Of the line of the container.
    outer: String,
    /// Of the items.
    inner: String,
    line_end: &'static str,
}

/// The text with one more item at the end of a container.
fn inserted(
    text: &Text,
    container: &Container,
    key: Option<&str>,
    value: &impl Serialize,
) -> Result<Text, Unfit> {
    let style = style(text, container);
    let item = style.rendered(key, value);
    let line =
        if style.unit.is_some() { format!("{}{}", style.line_end, style.inner) } else { String::new() };
    let (at, with) = match container.items.last() {
        // Who ends a list with a comma has one behind ours too.
        Some(Item { comma: Some(comma), .. }) => (comma + 1, format!("{line}{item},")),
        Some(last) => (last.at.end, format!(",{line}{item}")),
        None => {
            let blanks = text.blanks_after(container.open + 1);
            let breaks = text.as_str()[blanks].contains('\n') || style.unit.is_none();
            let end = if breaks { String::new() } else { format!("{}{}", style.line_end, style.outer) };
            (container.open + 1, format!("{line}{item}{end}"))
        }
    };
    Ok(Text::of(text.spliced(&[(at..at, &with)]))?)
}

fn style(text: &Text, container: &Container) -> Style {
    let whole = text.as_str();
    let root = text.root();
    let line_end = match whole.find('\n') {
        Some(at) if whole[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    };
    let outer = indent(whole, container.open);
    let first = container.items.first().map(|item| text.blanks_before(item.at.start));
    let of_root = root.items.first().map(|item| text.blanks_before(item.at.start));
    // Whoever has a line for each member has an own indent; whoever has all on one line gets ours there too.
    let unit = match &of_root {
        Some(blanks) => last_line(&whole[blanks.clone()]).map(str::to_owned),
        None => Some("  ".to_owned()),
    };
    match first {
        Some(blanks) => match last_line(&whole[blanks]) {
            Some(inner) => {
                Style { inner: inner.to_owned(), unit: unit.or(Some("  ".to_owned())), outer, line_end }
            }
            None => Style { unit: None, inner: String::new(), outer, line_end },
        },
        None => {
            let inner = format!("{outer}{}", unit.as_deref().unwrap_or_default());
            Style { inner, unit, outer, line_end }
        }
    }
}

/// The indent of the line that a place is in.
fn indent(whole: &str, at: usize) -> String {
    let from = whole[..at].rfind('\n').map_or(0, |end| end + 1);
    let line = whole[from..at].trim_start_matches('\u{feff}');
    line.chars().take_while(|letter| matches!(letter, ' ' | '\t')).collect()
}

/// What stands behind the last line end.
fn last_line(blanks: &str) -> Option<&str> {
    blanks.rsplit_once('\n').map(|(_, line)| line)
}

impl Style {
    fn rendered(&self, key: Option<&str>, value: &impl Serialize) -> String {
        let Some(unit) = &self.unit else {
            let value = serde_json::to_string(value).unwrap_or_default();
            return key.map_or_else(|| value.clone(), |key| format!("\"{key}\":{value}"));
        };
        let mut written = Vec::new();
        let formatter = PrettyFormatter::with_indent(unit.as_bytes());
        // Nothing of ours can fail to be JSON.
        let _ = value.serialize(&mut Serializer::with_formatter(&mut written, formatter));
        let written = String::from_utf8(written).unwrap_or_default();
        let value = written.replace('\n', &format!("{}{}", self.line_end, self.inner));
        key.map_or_else(|| value.clone(), |key| format!("\"{key}\": {value}"))
    }
}

/// What was made for an install; `None`: nobody knows any more.
pub(super) type Made<'a> = Option<&'a BTreeSet<String>>;

/// Takes ours out of a text, and what was made for it, unless somebody else has put something there.
pub(super) fn take_out(text: &str, ours: &Ours, made: Made<'_>) -> Result<String, NoObject> {
    let mut text = Text::of(text.to_owned())?;
    while let Some((container, at)) = next_cut(&text, ours, made) {
        text = Text::of(without(&text, &container, at))?;
    }
    Ok(text.as_str().to_owned())
}

/// Whether there is nothing in a text.
pub(super) fn is_empty(text: &str) -> bool {
    Text::of(text.to_owned()).is_ok_and(|text| {
        let root = text.root();
        root.items.is_empty() && text.is_strict()
    })
}

/// An item of a container.
type Cut = (Container, usize);

/// The largest part that is only ours.
fn next_cut(text: &Text, ours: &Ours, made: Made<'_>) -> Option<Cut> {
    let root = text.root();
    let each = root.items.iter().enumerate();
    each.clone().find_map(|(at, item)| match item.key.as_deref() {
        Some("hooks") => cut_of_hooks(text, &root, at, ours, made),
        Some("env") => cut_of_env(text, &root, at, ours, made),
        _ => None,
    })
}

/// Whether an object or a list goes with the last that was in it. One with a comment is somebody's.
fn goes(text: &Text, made: Made<'_>, name: &str, container: &Container) -> bool {
    made.is_none_or(|made| made.contains(name)) && !text.has_comment(container)
}

/// Whether one that is empty was made by us: who has taken ours out by hand has left it.
fn is_left(text: &Text, made: Made<'_>, name: &str, container: &Container) -> bool {
    container.items.is_empty() && made.is_some() && goes(text, made, name, container)
}

fn cut_of_hooks(text: &Text, root: &Container, at: usize, ours: &Ours, made: Made<'_>) -> Option<Cut> {
    let hooks = text.object(&root.items[at].value)?;
    if is_left(text, made, "hooks", &hooks) {
        return Some((root.clone(), at));
    }
    let (event, cut) = hooks.items.iter().enumerate().find_map(|(event, item)| {
        let name = format!("hooks.{}", item.key.as_deref().unwrap_or_default());
        let groups = text.array(&item.value)?;
        if is_left(text, made, &name, &groups) {
            return Some((event, None));
        }
        let (cut, is_whole) = cut_of_groups(text, &groups, ours)?;
        Some((event, if is_whole && goes(text, made, &name, &groups) { None } else { Some(cut) }))
    })?;
    match cut {
        Some(cut) => Some(cut),
        None if hooks.items.len() == 1 && goes(text, made, "hooks", &hooks) => Some((root.clone(), at)),
        None => Some((hooks, event)),
    }
}

/// The first cut in the list of an event, and whether nothing would be left in that.
fn cut_of_groups(text: &Text, groups: &Container, ours: &Ours) -> Option<(Cut, bool)> {
    groups.items.iter().enumerate().find_map(|(at, group)| {
        let object = text.object(&group.value)?;
        let handlers = text.array(&object.members("hooks").next()?.value)?;
        let is_ours = |item: &Item| text.read::<Handler>(&item.value).is_some_and(|hook| ours.has(&hook));
        let first = handlers.items.iter().position(is_ours)?;
        // With a matcher it's a person's, who may have put ours into it.
        if object.items.len() == 1 && handlers.items.iter().all(is_ours) {
            return Some(((groups.clone(), at), groups.items.len() == 1));
        }
        Some(((handlers, first), false))
    })
}

fn cut_of_env(text: &Text, root: &Container, at: usize, ours: &Ours, made: Made<'_>) -> Option<Cut> {
    let env = text.object(&root.items[at].value)?;
    let prefix = env.items.iter().position(|item| {
        let is_prefix = item.key.as_deref() == Some(PREFIX);
        is_prefix && text.read::<String>(&item.value).is_some_and(|there| ours.has_prefix(&there))
    });
    match prefix {
        None => is_left(text, made, "env", &env).then(|| (root.clone(), at)),
        Some(_) if env.items.len() == 1 && goes(text, made, "env", &env) => Some((root.clone(), at)),
        Some(prefix) => Some((env, prefix)),
    }
}

/// The text without an item, its comma, and the blanks that set it off.
fn without(text: &Text, container: &Container, at: usize) -> String {
    let item = &container.items[at];
    let before = text.blanks_before(item.at.start);
    let has_next = at + 1 < container.items.len();
    match (item.comma, at.checked_sub(1).and_then(|last| container.items[last].comma)) {
        (Some(comma), _) if has_next => {
            let behind = text.blanks_after(comma + 1);
            text.spliced(&[(item.at.start..item.at.end, ""), (comma..behind.end, "")])
        }
        // The comma of the item before is the last one then, as the one of this was.
        (Some(comma), Some(_)) => text.spliced(&[(before.start..item.at.end, ""), (comma..comma + 1, "")]),
        (None, Some(comma)) => text.spliced(&[(comma..comma + 1, ""), (before.start..item.at.end, "")]),
        (comma, None) => {
            let end = comma.map_or(item.at.end, |comma| comma + 1);
            let behind = text.blanks_after(end);
            // Of blanks alone, nothing is left.
            let is_all = before.start == container.open + 1 && behind.end == container.close;
            text.spliced(&[(before.start..if is_all { behind.end } else { end }, "")])
        }
    }
}

/// The prefix that settings hold.
pub(super) fn prefix_of(text: &Text) -> Option<String> {
    let env = text.root().members("env").last().cloned()?;
    let prefix = text.object(&env.value)?.members(PREFIX).last().cloned()?;
    text.read(&prefix.value)
}

/// The hooks of settings that are called as ours are: event and hook.
pub(super) fn alike(text: &Text) -> Vec<(String, Handler)> {
    let Some(hooks) = text.root().members("hooks").last().and_then(|item| text.object(&item.value)) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for event in &hooks.items {
        for group in text.array(&event.value).map(|groups| groups.items).unwrap_or_default() {
            let list = text.object(&group.value).and_then(|object| object.members("hooks").last().cloned());
            let list = list.and_then(|list| text.array(&list.value));
            let handlers = list.map(|list| list.items).unwrap_or_default();
            let read = handlers.iter().filter_map(|handler| text.read::<Handler>(&handler.value));
            let name = event.key.clone().unwrap_or_default();
            found.extend(read.filter(Handler::is_alike).map(|handler| (name.clone(), handler)));
        }
    }
    found
}

/// A member of settings that is `true`.
pub(super) fn says(text: &Text, key: &str) -> bool {
    text.root().members(key).last().is_some_and(|item| text.read::<bool>(&item.value) == Some(true))
}
