//! `[terminal]`: whose it is, and what is said of keys that can't be.

use midturn_tui::keys::Action;

use super::*;

#[test]
fn a_person_says_how_their_terminal_behaves_and_a_project_says_nothing_of_it() {
    let said = "[terminal]\nqueue_mode = true\nmouse = false\nascii = true\nkeys.plan = ['f2', 'alt+p']\nkeys.later = 'f3'";
    let env = Env::default();
    let config = load(&[(USERS, said)], &[("MIDTURN_TERMINAL_KEYS_EDITOR", "ctrl+,")], &[]).unwrap();
    let settings = config.terminal(&env, false);
    assert_eq!((settings.queue_mode, settings.mouse, settings.look.unicode), (true, false, false));
    let keys = |action| settings.keys.keys_of(action).iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(keys(Action::Plan), ["f2", "alt+p"]);
    assert_eq!((keys(Action::Later), keys(Action::Editor)), (vec!["f3".into()], vec!["ctrl+,".into()]));
    assert_eq!(keys(Action::Now), ["ctrl+x"], "what nobody speaks of is as it was");

    let config = load(&[("midturn.toml", said)], &[], &[]).unwrap();
    assert_eq!(config.terminal(&env, false), midturn_tui::settings::Settings::default());
    assert_eq!(config.notes.len(), 5, "{:?}", config.notes);
    for note in &config.notes {
        assert!(note.contains("is not taken from a project's file: how your terminal behaves"), "{note}");
    }
}

#[test]
fn an_empty_text_or_list_takes_an_actions_keys_away() {
    let said = "[terminal.keys]\nplan = ''\ndiff = []\nleave = []\nquit = 'ctrl+q'\nnewline = 'enter'\nsend = ['f5', 'ctrl+d']";
    let keys = load(&[(USERS, said)], &[], &[]).unwrap().terminal(&Env::default(), false).keys;
    let has = |action| keys.keys_of(action).iter().map(ToString::to_string).collect::<Vec<_>>();
    for none in [Action::Plan, Action::Diff, Action::Leave] {
        assert_eq!(has(none), [""; 0], "{none:?}");
    }
    assert_eq!((has(Action::Quit), has(Action::Newline)), (vec!["ctrl+q".into()], vec!["enter".into()]));
    assert_eq!(has(Action::Send), ["f5", "ctrl+d"], "what `leave` no longer has is free");
}

#[test]
fn a_flag_and_the_environment_say_what_can_be_drawn() {
    let config = load(&[], &[], &[]).unwrap();
    let look = |env: &Env, ascii| config.terminal(env, ascii).look;
    assert!(!look(&Env::default(), true).unicode);
    assert!(!look(&Env::of([("NO_COLOR", "1")]), false).colours);
}

#[test]
fn keys_that_cannot_be_are_errors_with_their_place() {
    for (said, expected) in [
        (
            "terminal.keys.plann = 'f2'",
            "midturn.toml:1:15: unknown key `terminal.keys.plann`; the nearest known name is `terminal.keys.plan`",
        ),
        (
            "[terminal.keys]\nplan = ['f2', 'hyper+p']",
            "midturn.toml:2:15: `terminal.keys.plan`: `hyper+p` for `plan` is no key: write a key with ctrl+",
        ),
        (
            "terminal.keys.yes = 'y'",
            "midturn.toml:1:21: `terminal.keys.yes`: `y` is pressed while one writes",
        ),
        (
            "terminal.keys.plan = 5",
            "`terminal.keys.plan`: invalid type: integer `5`, expected a list of keys",
        ),
        ("terminal.keys.plan = ' '", "` ` for `plan` is no key"),
        ("terminal.keys.plan = ['']", "`` for `plan` is no key"),
        ("terminal.keys.plan = 'p'", "`p` is typed into messages, so it can't be for `plan`"),
        (
            "\nterminal.keys.send = ''",
            "midturn.toml:2: `terminal.keys.send`: `send` needs a key: nothing could be sent",
        ),
        ("terminal.keys.stop = []", "midturn.toml:1: `terminal.keys.stop`: `stop` needs a key"),
        ("terminal.keys.leave = []", "`terminal.keys.leave`: `leave` or `quit` needs a key"),
        ("terminal.keys = 5", "`terminal.keys` is a table of keys"),
        ("terminal.mouse = 'no'", "`terminal.mouse`: invalid type: string \"no\", expected a boolean"),
        (
            "\nterminal.keys.plan = 'ctrl+s'",
            "midturn.toml:2: `terminal.keys.plan`: `ctrl+s` is for `soon` and for `plan`: give one of them another key",
        ),
    ] {
        let error = load(&[(USERS, said)], &[], &[]).unwrap_err();
        assert_eq!(error.end(), crate::failure::End::Usage);
        assert!(error.to_string().contains(expected), "{error}\n{expected}");
    }
    let error = load(&[], &[("MIDTURN_TERMINAL_KEYS_PLAN", "f1")], &[]).unwrap_err().to_string();
    assert!(
        error.starts_with("environment MIDTURN_TERMINAL_KEYS_PLAN: `terminal.keys.plan`: `f1`"),
        "{error}"
    );
}
