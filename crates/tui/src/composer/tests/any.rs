//! Whatever is typed, pasted and brought back: nothing is lost and nothing breaks.

use proptest::prelude::*;

use super::*;

/// What happens to a composer.
#[derive(Debug, Clone)]
enum Happens {
    Key(KeyEvent),
    Paste(String),
    Editor(String),
    Newline,
    Choose(usize),
    GiveBack(usize, Vec<String>),
    Put(String),
    Clear,
    Sent,
    Older,
    Newer,
    Draw(u16, u16),
}

const AGENTS: [&str; 3] = ["lead", "tester", "worker"];

/// A key that deletes nothing.
fn any_key() -> impl Strategy<Value = KeyEvent> {
    let letters = any::<char>().prop_map(|c| key(KeyCode::Char(c)));
    let names =
        ["left", "right", "up", "down", "home", "end", "M-b", "M-f", "C-home", "C-end", "C-c", "C-r", "M-y"];
    prop_oneof![letters, prop::sample::select(names.to_vec()).prop_map(named)]
}

/// A key that may take text out, or bring it back.
fn deleting() -> impl Strategy<Value = KeyEvent> {
    let names = ["back", "del", "C-w", "C-u", "C-k", "C-del", "C-_", "M-_", "M-y"];
    prop::sample::select(names.to_vec()).prop_map(named)
}

fn happens(keys: impl Strategy<Value = KeyEvent> + 'static) -> impl Strategy<Value = Happens> {
    let text = || prop_oneof!["[a-z猫 \n\t\r\u{1b}é\u{301}ﾞ]{0,40}", any::<String>()];
    prop_oneof![
        6 => keys.prop_map(Happens::Key),
        2 => text().prop_map(Happens::Paste),
        1 => Just(Happens::Newline),
        2 => (0..3_usize).prop_map(Happens::Choose),
        1 => (0..3_usize, prop::collection::vec(text(), 0..3)).prop_map(|(agent, texts)| Happens::GiveBack(agent, texts)),
        1 => text().prop_map(Happens::Put),
        1 => Just(Happens::Clear),
        1 => Just(Happens::Sent),
        1 => Just(Happens::Older),
        1 => Just(Happens::Newer),
        3 => (1..200_u16, 1..6_u16).prop_map(|(width, height)| Happens::Draw(width, height)),
    ]
}

fn happen(composer: &mut Composer, what: Happens) {
    match what {
        Happens::Key(key) => drop(composer.edit(key)),
        Happens::Paste(text) => composer.paste(&text).unwrap(),
        Happens::Editor(text) => composer.editor(&text).unwrap(),
        Happens::Newline => composer.newline().unwrap(),
        Happens::Choose(agent) => composer.choose(&name(AGENTS[agent])),
        Happens::GiveBack(agent, texts) => composer.give_back(&name(AGENTS[agent]), texts),
        Happens::Put(text) => composer.put(&text),
        Happens::Clear => composer.clear(),
        Happens::Sent => composer.sent(),
        Happens::Older => drop(composer.history_older()),
        Happens::Newer => drop(composer.history_newer()),
        Happens::Draw(width, height) => {
            let rows = composer.height(width, height);
            assert!((1..=height).contains(&rows));
            drop(screen(composer, width, height));
        }
    }
}

/// How often each character is in all that is kept, as far as a person could type it.
fn all_letters(composer: &Composer) -> Vec<char> {
    let saved = composer.saved();
    let mut letters: Vec<char> =
        saved.drafts.iter().flat_map(|draft| &draft.texts).flat_map(|text| text.chars()).collect();
    letters.sort_unstable();
    letters
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Nothing but a person's deleting, clearing and sending takes a letter out of the drafts.
    #[test]
    fn no_letter_is_lost(events in prop::collection::vec(happens(any_key()), 0..40)) {
        let mut composer = composer();
        for what in events {
            let before = all_letters(&composer);
            let takes_out = matches!(what, Happens::Clear | Happens::Sent);
            let text = composer.text();
            happen(&mut composer, what);
            let mut after = all_letters(&composer).into_iter().peekable();
            if takes_out {
                let is_kept = text.trim().is_empty() || composer.search("").contains(&text.as_str());
                prop_assert!(is_kept, "{text:?} is not in the history");
                continue;
            }
            for letter in before {
                while after.next_if(|next| *next < letter).is_some() {}
                prop_assert_eq!(after.next(), Some(letter));
            }
        }
    }

    /// Whatever is typed, deleted and brought back, it draws, and a save gives the same drafts again.
    #[test]
    fn nothing_breaks_it(
        events in prop::collection::vec(prop_oneof![
            happens(deleting()), happens(any_key()), any::<String>().prop_map(Happens::Editor)
        ], 0..60),
        width in 1..200_u16,
    ) {
        let mut composer = composer();
        for what in events {
            happen(&mut composer, what);
            drop(screen(&composer, width, 3));
        }
        let saved = composer.saved();
        prop_assert_eq!(Composer::new(name("lead"), saved.clone()).saved(), saved);
    }
}
