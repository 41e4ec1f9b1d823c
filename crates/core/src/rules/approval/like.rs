//! A pattern of a rule, held against a command: `*` is anything, and what nobody knows of a command may be anything,
//! too.

use super::command::{Part, Simple, Word};

/// So many alternatives may the braces of a pattern make.
const ALTERNATIVES_MAX: usize = 64;

/// A pattern, its braces apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Like(Vec<Vec<Sign>>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Sign {
    Is(char),
    OneOf { is_not: bool, ranges: Vec<(char, char)> },
    Any,
    Anything,
}

/// A character of a command, or what nobody knows of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Is(char),
    Unknown,
}

/// Whom the unknown helps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Doubt {
    /// It may be what the pattern says.
    Matches,
    /// It has to be covered by a `*`.
    NeedsAnything,
}

impl Like {
    /// Reads a pattern; the error says what is wrong with it.
    pub(super) fn parse(pattern: &str) -> Result<Self, String> {
        // `x:*` is `x *` as others write it.
        let spelled = pattern.strip_suffix(":*").map(|begin| format!("{begin} *"));
        let pattern = spelled.as_deref().unwrap_or(pattern);
        let mut all = Vec::new();
        for one in alternatives(pattern)? {
            let signs = signs(&one)?;
            // `git push *` is said of the bare `git push`, too.
            if let Some(bare) = signs.strip_suffix(&[Sign::Is(' '), Sign::Anything]) {
                all.push(bare.to_vec());
            }
            all.push(signs);
        }
        Ok(Self(all))
    }

    /// Whether the command is of this kind, whatever turns out to stand where nobody knows.
    pub(super) fn allows(&self, command: &Simple) -> bool {
        let is_one_program = command
            .words
            .first()
            .and_then(Word::known)
            .is_some_and(|name| !name.contains(char::is_whitespace));
        command.is_plain && is_one_program && self.holds(&seen(&command.words), Doubt::NeedsAnything)
    }

    /// Whether it may be.
    pub(super) fn may_be(&self, words: &[Word]) -> bool {
        self.holds(&seen(words), Doubt::Matches)
    }

    fn holds(&self, seen: &[Seen], doubt: Doubt) -> bool {
        self.0.iter().any(|signs| holds(signs, seen, doubt))
    }
}

/// Words, with one blank between them.
fn seen(words: &[Word]) -> Vec<Seen> {
    let mut all = Vec::new();
    for (at, word) in words.iter().enumerate() {
        if at > 0 {
            all.push(Seen::Is(' '));
        }
        for part in &word.0 {
            match part {
                Part::Text(text) => all.extend(text.chars().map(Seen::Is)),
                Part::Unknown => all.push(Seen::Unknown),
            }
        }
    }
    all
}

/// Which places of the pattern can be reached, character by character: the time is the product of both lengths.
fn holds(signs: &[Sign], seen: &[Seen], doubt: Doubt) -> bool {
    let mut at = vec![false; signs.len() + 1];
    at[0] = true;
    pass_anything(signs, &mut at);
    for seen in seen {
        let mut next = vec![false; signs.len() + 1];
        for (place, sign) in signs.iter().enumerate().filter(|(place, _)| at[*place]) {
            match (sign, seen) {
                (Sign::Anything, _) => next[place] = true,
                (sign, Seen::Is(c)) => next[place + 1] |= sign.is(*c),
                (_, Seen::Unknown) => {}
            }
        }
        if *seen == Seen::Unknown && doubt == Doubt::Matches {
            // From the first place that was reached on all others are.
            let first = at.iter().position(|reached| *reached).unwrap_or(at.len());
            next[first..].fill(true);
        }
        pass_anything(signs, &mut next);
        at = next;
    }
    at[signs.len()]
}

fn pass_anything(signs: &[Sign], at: &mut [bool]) {
    for (place, sign) in signs.iter().enumerate() {
        if *sign == Sign::Anything && at[place] {
            at[place + 1] = true;
        }
    }
}

impl Sign {
    fn is(&self, c: char) -> bool {
        match self {
            Self::Is(sign) => *sign == c,
            Self::OneOf { is_not, ranges } => {
                *is_not != ranges.iter().any(|(from, to)| (*from..=*to).contains(&c))
            }
            Self::Any | Self::Anything => true,
        }
    }
}

fn signs(pattern: &str) -> Result<Vec<Sign>, String> {
    let mut signs = Vec::new();
    let mut rest = pattern.chars().peekable();
    while let Some(c) = rest.next() {
        signs.push(match c {
            '*' => {
                if signs.last() == Some(&Sign::Anything) {
                    continue;
                }
                Sign::Anything
            }
            '?' => Sign::Any,
            '\\' => Sign::Is(rest.next().ok_or("a backslash is the last character")?),
            '[' => one_of(&mut rest).ok_or("a `[` without its `]`")?,
            c => Sign::Is(c),
        });
    }
    Ok(signs)
}

fn one_of(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<Sign> {
    let is_not = rest.next_if(|c| matches!(c, '!' | '^')).is_some();
    let mut ranges = Vec::new();
    loop {
        match rest.next()? {
            ']' if !ranges.is_empty() => return Some(Sign::OneOf { is_not, ranges }),
            from => {
                let has_end = rest.peek() == Some(&'-') && rest.clone().nth(1).is_some_and(|c| c != ']');
                let to = if has_end { rest.nth(1)? } else { from };
                ranges.push((from, to));
            }
        }
    }
}

/// `git {push,pull} *` is two patterns. Braces without a comma are themselves.
fn alternatives(pattern: &str) -> Result<Vec<String>, String> {
    let Some((begin, after)) = pattern.split_once('{') else { return Ok(vec![pattern.to_owned()]) };
    let (inner, rest) = after.split_once('}').ok_or("a `{` without its `}`")?;
    if inner.contains('{') {
        return Err("braces within braces".to_owned());
    }
    let inner: Vec<String> = match inner.contains(',') {
        true => inner.split(',').map(str::to_owned).collect(),
        false => vec![format!("{{{inner}}}")],
    };
    let rest = alternatives(rest)?;
    if inner.len() * rest.len() > ALTERNATIVES_MAX {
        return Err(format!("more than {ALTERNATIVES_MAX} alternatives"));
    }
    let of_inner = |one: &String| rest.iter().map(|rest| format!("{begin}{one}{rest}")).collect::<Vec<_>>();
    Ok(inner.iter().flat_map(of_inner).collect())
}
