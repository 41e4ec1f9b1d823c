//! What the commits that we make say, and whose they are (docs/decisions/0041).

use midturn_core::rules::id::RunId;

use super::git::Git;

/// The longest subject, in characters: what one line of a log holds.
const SUBJECT_MAX: usize = 72;

/// By what a commit says which agent made it.
const TRAILER: &str = "Midturn-Agent";

/// What is around a line of Markdown and no part of what it says.
const MARKS: &[char] = &['#', '*', '_', '`', '>', '-', '+', ' ', '\t'];

/// The message of a commit at a run's end, from what the agent said last.
pub(super) fn of_run(last_words: &str, agent: &str, run: RunId, has_trailer: bool) -> String {
    let message = subject(last_words).unwrap_or_else(|| format!("{agent}: run {run}"));
    if has_trailer { with_trailer(&message, agent) } else { message }
}

/// The first line that says something, on one line of bounded length. `None`: there is none.
fn subject(words: &str) -> Option<String> {
    let plain = |line: &str| {
        let visible: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let text = visible.trim_start_matches(MARKS).trim_end_matches(&MARKS[1..]).trim_end_matches(':');
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let line = words.lines().map(plain).find(|line| line.chars().any(char::is_alphanumeric))?;
    if line.chars().count() <= SUBJECT_MAX {
        return Some(line);
    }
    let cut: String = line.chars().take(SUBJECT_MAX - 1).collect();
    // Whole words, unless the line is one.
    let cut = cut.rsplit_once(' ').map_or(&*cut, |(whole, _)| whole);
    Some(format!("{cut}…"))
}

/// The message with the line that names its agent, among the trailers that it has.
pub(super) fn with_trailer(message: &str, agent: &str) -> String {
    let message = message.trim_end();
    let trailer = format!("{TRAILER}: {agent}");
    let is_trailer = |line: &str| {
        let key = line.split_once(": ").map_or("", |(key, _)| key);
        !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    let last = message.rsplit_once("\n\n").map_or("", |(_, last)| last);
    match last.lines().any(|line| line == trailer) {
        true => message.to_owned(),
        false if !last.is_empty() && last.lines().all(is_trailer) => format!("{message}\n{trailer}"),
        false => format!("{message}\n\n{trailer}"),
    }
}

/// Git whose commits are the person's, where git in the project knows who that is; else the agent's.
pub(super) async fn signed<'a>(git: Git<'a>, project: &Git<'_>, agent: &str) -> Git<'a> {
    match author(project).await {
        Some((name, email)) => git.by(&name, &email),
        None => git.by(agent, &format!("{agent}@midturn.invalid")),
    }
}

/// The person's name and address by git's own rules, if git was told; it isn't to make up any.
pub(super) async fn author(git: &Git<'_>) -> Option<(String, String)> {
    // Failures mean the same: nobody is known.
    let words = ["config", "--null", "--get-regexp", "^(author|user)[.](name|email)$"];
    let said = git.maybe(&words).await.ok().flatten().unwrap_or_default();
    let name = known(&said, ["GIT_AUTHOR_NAME", "author.name", "user.name"])?;
    Some((name, known(&said, ["GIT_AUTHOR_EMAIL", "author.email", "user.email"])?))
}

/// What a variable says, else the nearer setting, else the other one.
fn known(said: &str, [variable, nearer, other]: [&str; 3]) -> Option<String> {
    let of_variable = std::env::var(variable).ok();
    let all = [of_variable.as_deref(), setting(said, nearer), setting(said, other)];
    all.into_iter().flatten().find(|text| !text.trim().is_empty()).map(str::to_owned)
}

/// What a setting says among those that git told: the last one holds.
fn setting<'a>(said: &'a str, wanted: &str) -> Option<&'a str> {
    let all = said.split('\0').filter_map(|entry| entry.split_once('\n'));
    all.rev().find(|(key, _)| *key == wanted).map(|(_, value)| value.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_one_bounded_line_of_what_was_said_last() {
        let long = format!("{} end", "word ".repeat(20));
        let cut = format!("{}…", "word ".repeat(14).trim_end());
        for (words, expected) in [
            ("Fixed the parser.\n\nMore.", Some("Fixed the parser.")),
            ("\n\n## Done: the **parser**\n", Some("Done: the **parser")),
            ("- a\tb \u{1b}[1m", Some("a b [1m")),
            ("Changes:\n- x", Some("Changes")),
            ("```\nlet x\n```", Some("let x")),
            ("...\n***\n", None),
            ("", None),
            (&long, Some(&cut)),
            (&"é".repeat(100), Some(&format!("{}…", "é".repeat(71)))),
        ] {
            assert_eq!(subject(words).as_deref(), expected, "{words:?}");
        }
        assert_eq!(of_run("", "w", 1, false), "w: run 1");
        assert_eq!(of_run("Done.", "w", 1, true), "Done.\n\nMidturn-Agent: w");
    }

    #[test]
    fn a_trailer_stands_with_the_others_and_once() {
        for (message, expected) in [
            ("Fix", "Fix\n\nMidturn-Agent: w"),
            ("Fix: it\n", "Fix: it\n\nMidturn-Agent: w"),
            ("Fix\n\nBody: of words\nand more", "Fix\n\nBody: of words\nand more\n\nMidturn-Agent: w"),
            ("Fix\n\nSigned-off-by: A <a@b>", "Fix\n\nSigned-off-by: A <a@b>\nMidturn-Agent: w"),
            ("Fix\n\nMidturn-Agent: w", "Fix\n\nMidturn-Agent: w"),
        ] {
            assert_eq!(with_trailer(message, "w"), expected);
        }
    }

    #[test]
    fn of_several_settings_the_last_one_holds_and_an_empty_one_says_nothing() {
        let said = "user.name\nA\0user.email\na@x\0user.name\nB  \0author.email\n \0author.name\0";
        for (keys, expected) in [
            (["author.name", "user.name"], Some("B")),
            (["author.email", "user.email"], Some("a@x")),
            (["author.none", "user.none"], None),
        ] {
            let [nearer, other] = keys;
            let variable = "MIDTURN_NOBODY_SETS_THIS";
            assert_eq!(known(said, [variable, nearer, other]).as_deref(), expected, "{keys:?}");
        }
    }
}
