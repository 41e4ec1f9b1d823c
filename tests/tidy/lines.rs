//! What the seeds promise a person at the terminal (tests/terminal/lines.txt) and at the page (tests/page/lines.txt), what a
//! day's work asks for (tests/day/lines.txt), what is tried against joined agents (tests/bridges/lines.txt), and which test proves it: a test quotes its lines in the comment above it, as `/// > 000, 001: No delay`, or as
//! `// > 004: …` above a test of the browser.

use std::fmt::Write as _;
use std::path::PathBuf;

use crate::source::{Source, read};
use midturn_tests::root;

/// Where the seeds' lines are seen.
struct Face {
    /// `terminal`: the folder of its lines, and a part of the names of its pages.
    name: &'static str,
    /// What the page begins with.
    head: &'static str,
    /// The begin of each line whose test is still to come. What has its test has to go from here.
    to_come: &'static [&'static str],
}

const TERMINAL: Face = Face {
    name: "terminal",
    head: "# What the seeds promise at the terminal\n\nEach line of seeds 000 and 001 that a person notices, and the test \
        that proves it. Where a line doesn't hold as it stands, its test proves what holds\ninstead. This page is made from \
        `tests/terminal/lines.txt` and from the comments above the tests:\n",
    to_come: &[],
};

const PAGE: Face = Face {
    name: "page",
    head: "# What seed 004 asks of the page\n\nEach item of the seed's lists, and the test that proves it. This page is made \
        from `tests/page/lines.txt` and from the comments above the tests:\n",
    to_come: &[],
};

const DAY: Face = Face {
    name: "day",
    head: "# A day's work at the command line\n\nWhat people asked for who used Midturn for days, and the test that types \
        what they typed. This page is made from\n`tests/day/lines.txt` and from the comments above the tests:\n",
    to_come: &[],
};

const BRIDGES: Face = Face {
    name: "bridges",
    head: "# What is tried against corrections inside Claude Code\n\nWho tries what, what comes of it, and the test that tries it. \
        This page is made from\n`tests/bridges/lines.txt` and from the comments above the tests:\n",
    to_come: &[],
};

const FACES: [Face; 4] = [TERMINAL, PAGE, DAY, BRIDGES];

impl Face {
    fn lines(&self) -> Vec<Line> {
        lines(&read(&root().join(format!("tests/{}/lines.txt", self.name))))
    }

    fn page(&self) -> PathBuf {
        root().join(format!("docs/{}-lines.md", self.name))
    }
}

/// A line of the seeds.
struct Line {
    /// `000, 001`: who has it.
    seeds: String,
    heading: String,
    text: String,
    /// The page and its words that decide otherwise, and what holds instead.
    instead: Option<(String, String, String)>,
}

impl Line {
    fn quote(&self) -> String {
        format!("{}: {}", self.seeds, self.text)
    }

    fn is_to_come(&self, to_come: &[&str]) -> bool {
        let place = format!("{}: {}", self.seeds, self.heading);
        to_come.iter().any(|begin| place.starts_with(begin) || self.quote().starts_with(begin))
    }
}

/// A quote above a function.
struct Quote {
    line: String,
    /// `PATH: NAME` of the function.
    test: String,
    /// Why it proves nothing.
    wrong: Option<&'static str>,
}

fn lines(file: &str) -> Vec<Line> {
    let mut found: Vec<Line> = Vec::new();
    let mut place = None;
    for line in file.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        if let Some(head) = line.strip_prefix("= ") {
            place = head.split_once(" | ");
        } else if let Some(said) = line.strip_prefix("  holds: ") {
            let parts = said.split_once(": ").and_then(|(page, rest)| Some((page, rest.split_once(" | ")?)));
            let (page, (words, what)) = parts.unwrap_or_else(|| panic!("`PAGE: WORDS | WHAT`: {said}"));
            let line = found.last_mut().unwrap_or_else(|| panic!("it follows no line: {said}"));
            line.instead = Some((page.to_owned(), words.to_owned(), what.to_owned()));
        } else {
            let (seeds, heading) = place.unwrap_or_else(|| panic!("it has no seed: {line}"));
            let (seeds, heading) = (seeds.to_owned(), heading.to_owned());
            found.push(Line { seeds, heading, text: line.to_owned(), instead: None });
        }
    }
    found
}

/// The line that a comment quotes.
fn quoted(line: &str) -> Option<&str> {
    let quote = line.trim_start().strip_prefix("/// > ")?;
    let number = quote.strip_prefix(['D', 'A']).unwrap_or(quote);
    number.starts_with(|c: char| c.is_ascii_digit()).then_some(quote)
}

/// All quotes of a file. One that stands above no function is wrong, too.
fn quotes(source: &Source) -> Vec<Quote> {
    let text: Vec<&str> = source.text.lines().collect();
    let mut found = Vec::new();
    for function in source.functions() {
        let is_above = |line: &&&str| ["///", "#["].iter().any(|sign| line.trim_start().starts_with(sign));
        let above: Vec<&str> = text[..function.line - 1].iter().rev().take_while(is_above).copied().collect();
        let has = |begin: &str| above.iter().any(|line| line.trim_start().starts_with(begin));
        let wrong = match (has("#[test]") || has("#[tokio::test"), has("#[ignore")) {
            (false, _) => Some("no test"),
            (true, true) => Some("an ignored test"),
            (true, false) => None,
        };
        let test = format!("{}: {}", source.path.display(), function.name);
        let of_test = above.iter().rev().filter_map(|line| quoted(line));
        found.extend(of_test.map(|line| Quote { line: line.to_owned(), test: test.clone(), wrong }));
    }
    let lost = text.iter().filter(|line| quoted(line).is_some()).count() - found.len();
    let nobody = || Quote { line: String::new(), test: source.place(1), wrong: Some("no function") };
    found.extend((0..lost).map(|_| nobody()));
    found
}

/// All quotes of a file of tests of the browser: in the comment above each `test(`.
fn quotes_of_module(path: &str, text: &str) -> Vec<Quote> {
    let (mut found, mut above): (Vec<Quote>, Vec<&str>) = (Vec::new(), Vec::new());
    for line in text.lines() {
        if let Some(quote) = line.strip_prefix("// > ") {
            above.push(quote);
        } else if !line.starts_with("//") {
            let called = line.split_once('(').map(|(called, _)| called);
            let wrong = match called {
                Some("test") => None,
                Some("test.skip" | "test.todo") => Some("a skipped test"),
                _ => Some("no test"),
            };
            let name = line.split(['\'', '`']).nth(1).unwrap_or_default();
            let test = format!("{path}: {name}");
            let quote = |line: &str| Quote { line: line.to_owned(), test: test.clone(), wrong };
            found.extend(above.drain(..).map(quote));
        }
    }
    let nobody = |line: &str| Quote { line: line.to_owned(), test: path.to_owned(), wrong: Some("no test") };
    found.extend(above.drain(..).map(nobody));
    found
}

/// What is wrong: a line without a test, a quote of nothing or by nobody, a line that isn't to come any more.
fn faults(lines: &[Line], quotes: &[Quote], to_come: &[&str]) -> Vec<String> {
    let proves = |quote: &&Quote, line: &Line| quote.wrong.is_none() && quote.line == line.quote();
    let is_proved = |line: &Line| quotes.iter().any(|quote| proves(&quote, line));
    let mut faults: Vec<String> = Vec::new();
    for line in lines {
        match (is_proved(line), line.is_to_come(to_come)) {
            (false, false) => faults.push(format!("no test quotes `{}`", line.quote())),
            (true, true) => faults.push(format!("`{}` is not to come any more", line.quote())),
            _ => {}
        }
    }
    for quote in quotes {
        match quote.wrong {
            Some(wrong) => faults.push(format!("{} quotes `{}` and is {wrong}", quote.test, quote.line)),
            None if lines.iter().any(|line| line.quote() == quote.line) => {}
            None => faults.push(format!("{} quotes `{}`, which is no line", quote.test, quote.line)),
        }
    }
    faults
}

/// The page, made of the lines and the tests.
fn table(head: &str, lines: &[Line], quotes: &[Quote]) -> String {
    let mut page =
        format!("{head}`MIDTURN_TIDY_WRITE=1 cargo test -p midturn-tests --test tidy` writes it.\n");
    let mut heading = String::new();
    for line in lines {
        let of = if line.seeds.starts_with(['D', 'A']) { "" } else { "Seed " };
        let now = format!("{of}{}: {}", line.seeds.replace(", ", " and "), line.heading);
        if now != heading {
            let _ = write!(page, "\n## {now}\n\n| line | test |\n| --- | --- |\n");
            heading = now;
        }
        let tests = quotes.iter().filter(|quote| quote.line == line.quote());
        let tests: Vec<String> = tests.map(|quote| format!("`{}`", quote.test)).collect();
        let tests = if tests.is_empty() { "still to come".to_owned() } else { tests.join("<br>") };
        let instead = line.instead.as_ref();
        let instead = instead.map(|(at, words, what)| format!("<br>*Instead: {what} ({at}: “{words}”)*"));
        let _ = writeln!(page, "| {}{} | {tests} |", line.text, instead.unwrap_or_default());
    }
    page
}

fn all_quotes() -> Vec<Quote> {
    // What is quoted in the texts of this file is no quote.
    let others = crate::all().iter().filter(|source| !source.path.ends_with("tidy/lines.rs"));
    let of_code = others.flat_map(quotes);
    let folder = std::fs::read_dir(root().join("tests/page")).and_then(|entries| {
        entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<PathBuf>>>()
    });
    let mut modules = folder.unwrap_or_else(|error| panic!("tests/page: {error}"));
    modules.retain(|path| path.extension().is_some_and(|kind| kind == "mjs"));
    modules.sort();
    let of_modules = modules.iter().flat_map(|path| {
        let name = format!("tests/page/{}", path.file_name().unwrap_or_default().display());
        quotes_of_module(&name, &read(path))
    });
    of_code.chain(of_modules).collect()
}

/// All of all faces: a quote is of one of them.
fn all_lines() -> Vec<Line> {
    FACES.iter().flat_map(Face::lines).collect()
}

#[test]
fn a_line_without_a_test_and_a_quote_that_proves_nothing_are_found() {
    let file = "# no line\n= 000 | H\none\n  holds: p.md: so | thus\n→ two \\n\nthree\n= 001 | T\nfour\n";
    let lines = lines(file);
    assert_eq!(
        lines.iter().map(Line::quote).collect::<Vec<_>>(),
        ["000: one", "000: → two \\n", "000: three", "001: four"]
    );
    let text = "/// > 000: one\n#[test]\nfn a() {}\n/// Says more.\n///\n/// > 000: → two \\n\n/// > 009: x\n\
        #[tokio::test(a)]\nasync fn b() {}\n/// > 000: three\n#[test]\n#[ignore]\nfn c() {}\n/// > 001: four\n\
        fn d() {}\nstruct S;\n/// > 000: one\nstruct T;\n/// > not a seed\nfn e() {}\n";
    let quotes = quotes(&Source::of("t.rs".as_ref(), text.to_owned()));
    assert_eq!(
        faults(&lines, &quotes, &["001: T", "000: one"]),
        [
            "`000: one` is not to come any more",
            "no test quotes `000: three`",
            "t.rs: b quotes `009: x`, which is no line",
            "t.rs: c quotes `000: three` and is an ignored test",
            "t.rs: d quotes `001: four` and is no test",
            "t.rs:1 quotes `` and is no function",
        ]
    );
    let page = table("", &lines, &quotes);
    assert!(page.contains("| one<br>*Instead: thus (p.md: “so”)* | `t.rs: a` |"), "{page}");
}

#[test]
fn quotes_above_tests_of_the_browser_are_read() {
    let text = "// > 004: one\n// more\n// > 004: two\ntest('it does', () => {});\n// > 004: three\n\
        test.skip('later', () => {});\n// > 004: four\nconst x = 1;\n// a word\ntest(`other`, f);\n// > 004: five\n";
    let found = quotes_of_module("t.mjs", text);
    let found: Vec<_> =
        found.iter().map(|quote| (quote.line.as_str(), quote.test.as_str(), quote.wrong)).collect();
    let skipped = Some("a skipped test");
    assert_eq!(
        found,
        [
            ("004: one", "t.mjs: it does", None),
            ("004: two", "t.mjs: it does", None),
            ("004: three", "t.mjs: later", skipped),
            ("004: four", "t.mjs: ", Some("no test")),
            ("004: five", "t.mjs", Some("no test")),
        ]
    );
}

#[test]
fn each_line_of_the_seeds_at_the_faces_has_its_test() {
    let to_come = FACES.map(|face| face.to_come).concat();
    crate::none("lines of the seeds", faults(&all_lines(), &all_quotes(), &to_come));
}

#[test]
fn what_decides_against_a_line_stands_where_it_is_said_to() {
    let lines = all_lines();
    let decided = lines.iter().filter_map(|line| line.instead.as_ref());
    let stands = |page: &str, words: &str| {
        let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        flat(&read(&root().join(page))).contains(&flat(words))
    };
    let gone = decided.filter(|(page, words, _)| !stands(page, words));
    crate::none("words of a page", gone.map(|(page, words, _)| format!("{page}: {words}")).collect());
}

#[test]
fn the_pages_of_the_lines_are_as_they_are_made() {
    for face in FACES {
        let (path, made) = (face.page(), table(face.head, &face.lines(), &all_quotes()));
        if std::env::var_os("MIDTURN_TIDY_WRITE").is_some() {
            std::fs::write(&path, made).unwrap();
        } else {
            let said = "a page of lines is out of date: MIDTURN_TIDY_WRITE=1 cargo test -p midturn-tests --test tidy";
            assert_eq!(read(&path), made, "{said}");
        }
    }
}
