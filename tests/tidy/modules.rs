//! Which module of a crate imports which, and where that goes in a circle; drawn for
//! docs/architecture.md. It reads paths, not types, and judges nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::source::{Source, Token};

/// So wide a line of the drawing is at most.
const WIDTH: usize = 130;

/// The modules of one crate, each with those that it imports.
pub(crate) type Imports = BTreeMap<String, BTreeSet<String>>;

/// The imports of every crate, by its folder's name.
pub(crate) fn imports(sources: &[Source]) -> BTreeMap<String, Imports> {
    let mut crates: BTreeMap<String, Vec<(&Source, Vec<String>)>> = BTreeMap::new();
    for source in sources {
        if let Some((room, module)) = place(&source.path) {
            crates.entry(room).or_default().push((source, module));
        }
    }
    crates.into_iter().map(|(room, files)| (room, imports_of(&files))).collect()
}

/// The crate of a file and its path in there; none if it is no code of a library or program.
fn place(path: &Path) -> Option<(String, Vec<String>)> {
    let mut parts: Vec<String> =
        path.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
    if parts.len() < 4 || parts[0] != "crates" || parts[2] != "src" {
        return None;
    }
    let file = parts.pop()?;
    let name = file.strip_suffix(".rs")?;
    if !["lib", "main", "mod"].contains(&name) {
        parts.push(name.to_owned());
    }
    Some((parts[1].clone(), parts.split_off(3)))
}

fn imports_of(files: &[(&Source, Vec<String>)]) -> Imports {
    let known: BTreeSet<Vec<String>> = files.iter().map(|(_, module)| module.clone()).collect();
    let mut imports = Imports::new();
    for (source, module) in files.iter().filter(|(source, _)| !source.is_test()) {
        let Some(from) = unit(module, &known) else { continue };
        let paths = paths(source, module);
        let to = paths.iter().filter_map(|path| unit(path, &known)).filter(|to| *to != from);
        imports.entry(from.clone()).or_default().extend(to);
    }
    imports
}

/// What stands for a path in the drawing: its module below the crate's root; below `rules` and
/// `engine`, which are rooms, the module in there. None for what the doors re-export.
fn unit(path: &[String], known: &BTreeSet<Vec<String>>) -> Option<String> {
    let deep = match path.first()?.as_str() {
        "rules" | "engine" => 2,
        _ => 1,
    };
    let module = path.get(..deep)?;
    let is_module = known.iter().any(|known| known.starts_with(module));
    is_module.then(|| module.join("/"))
}

/// All paths in a file that begin in its crate, from the crate's root.
fn paths(source: &Source, module: &[String]) -> Vec<Vec<String>> {
    let tokens = &source.tokens;
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        let begins = ["crate", "super", "self"].contains(&tokens[at].text.as_str());
        let follows = at > 0 && tokens[at - 1].text == ":";
        if begins && !follows && !source.is_test_line(tokens[at].line) {
            let mut from = at;
            let mut path = match tokens[at].text.as_str() {
                "crate" => Vec::new(),
                "super" => parent(module),
                _ => module.to_vec(),
            };
            from += 1;
            while is(tokens, from, &[":", ":", "super"]) {
                path = parent(&path);
                from += 3;
            }
            if is(tokens, from, &[":", ":"]) {
                tree(tokens, from + 2, &path, &mut found);
            }
        }
    }
    found
}

fn parent(module: &[String]) -> Vec<String> {
    module.split_last().map_or_else(Vec::new, |(_, above)| above.to_vec())
}

fn is(tokens: &[Token], at: usize, words: &[&str]) -> bool {
    let here = tokens.get(at..at + words.len());
    here.is_some_and(|here| here.iter().zip(words).all(|(token, word)| token.text == *word))
}

/// Reads what follows a `::`: a name and what is in it, or several in braces. Returns where it ends.
fn tree(tokens: &[Token], at: usize, path: &[String], found: &mut Vec<Vec<String>>) -> usize {
    if is(tokens, at, &["{"]) {
        let mut next = at + 1;
        while next < tokens.len() && !is(tokens, next, &["}"]) {
            next = if is(tokens, next, &[","]) { next + 1 } else { tree(tokens, next, path, found) };
        }
        return next + 1;
    }
    let mut path = path.to_vec();
    path.extend(tokens.get(at).map(|token| token.text.clone()));
    if is(tokens, at + 1, &[":", ":"]) {
        return tree(tokens, at + 3, &path, found);
    }
    found.push(path);
    // `as OTHER` is of no account.
    if is(tokens, at + 1, &["as"]) { at + 3 } else { at + 1 }
}

/// The sets of modules of which each imports the others, by way of others too.
pub(crate) fn circles(imports: &Imports) -> Vec<BTreeSet<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        imports.keys().map(|from| (from, reachable(imports, from))).collect();
    let mut circles = BTreeSet::new();
    for (from, to) in &reached {
        let back = to.iter().filter(|other| reached.get(**other).is_some_and(|back| back.contains(*from)));
        let circle: BTreeSet<String> = back.map(|other| (*other).clone()).collect();
        if circle.len() > 1 {
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

fn reachable<'a>(imports: &'a Imports, from: &String) -> BTreeSet<&'a String> {
    let (mut reached, mut left) = (BTreeSet::new(), vec![from]);
    while let Some(module) = left.pop() {
        for to in imports.get(module).into_iter().flatten() {
            if reached.insert(to) {
                left.push(to);
            }
        }
    }
    reached
}

/// The drawing: a line for each module and what it imports, the rooms of a crate apart.
pub(crate) fn drawn(crates: &BTreeMap<String, Imports>) -> String {
    let mut text = String::new();
    for (name, imports) in crates {
        text.push_str(&format!("crates/{name}\n"));
        let width = imports.keys().map(String::len).max().unwrap_or(0);
        for (module, to) in imports.iter().filter(|(_, to)| !to.is_empty()) {
            let words = by_room(module, to);
            wrapped(&mut text, &format!("  {module:width$}  "), &words);
        }
    }
    text
}

/// What a module imports: first from its own room, then from each other one, whose name stands before.
fn by_room(module: &str, imports: &BTreeSet<String>) -> Vec<String> {
    let room = |module: &str| module.split_once('/').map(|(room, _)| room.to_owned());
    let mut rooms: BTreeMap<Option<String>, Vec<String>> = BTreeMap::new();
    for to in imports {
        let name = to.rsplit('/').next().unwrap_or(to).to_owned();
        rooms.entry(room(to).filter(|other| Some(other) != room(module).as_ref())).or_default().push(name);
    }
    let named = |(room, names): (Option<String>, Vec<String>)| {
        room.map(|room| format!("{room}:")).into_iter().chain(names).collect::<Vec<_>>()
    };
    rooms.into_iter().flat_map(named).collect()
}

/// The words after the head, and on further lines below their first.
fn wrapped(text: &mut String, head: &str, words: &[String]) {
    let mut line = head.to_owned();
    for word in words {
        if line.len() + word.len() + 1 > WIDTH {
            text.push_str(line.trim_end());
            text.push('\n');
            line = " ".repeat(head.len());
        }
        line.push_str(word);
        line.push(' ');
    }
    text.push_str(line.trim_end());
    text.push('\n');
}
