//! Layers, provenance and refusals, as rows.

mod providers;
mod terminal;

use midturn_tools::network::Network;

use super::*;

fn load(files: &[(&str, &str)], env: &[(&str, &str)], set: &[&str]) -> Result<Config, Failure> {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join(".git")).unwrap();
    let work = root.path().join("work");
    std::fs::create_dir(&work).unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let xdg = root.path().join("xdg").display().to_string();
    let env = Env::of([("XDG_CONFIG_HOME", xdg.as_str())].into_iter().chain(env.iter().copied()));
    let set = set.iter().map(|said| (*said).to_owned()).collect();
    let flags = LayerArgs { set, ..LayerArgs::default() };
    Config::load(&work, &env, &flags)
}

const USERS: &str = "xdg/midturn/midturn.toml";

#[test]
fn a_stronger_layer_wins_and_is_named() {
    let (user, root, near) = (
        (USERS, "max_parallel_tools = 4\n"),
        ("midturn.toml", "\nmax_parallel_tools = 3\n"),
        ("work/midturn.toml", "max_parallel_tools = 2"),
    );
    let env = [("MIDTURN_MAX_PARALLEL_TOOLS", "5")];
    for (files, env, set, tools, origin) in [
        (&[][..], &[][..], &[][..], 8, "default"),
        (&[user], &[], &[], 4, "xdg/midturn/midturn.toml:1"),
        (&[user, root], &[], &[], 3, "midturn.toml:2"),
        (&[user, root, near], &[], &[], 2, "work/midturn.toml:1"),
        (&[user, root, near], &env, &[], 5, "environment MIDTURN_MAX_PARALLEL_TOOLS"),
        (&[user, root, near], &env, &["max_parallel_tools=6"], 6, "flag --set"),
    ] {
        let config = load(files, env, set).unwrap();
        assert_eq!(config.settings.max_parallel_tools, tools);
        let shown = config.origin("max_parallel_tools").to_string();
        assert!(shown.ends_with(origin), "{shown} / {origin}");
    }
}

/// What a person's file says, what the project's says, the key, what holds, and a note if one
/// is due.
const LOOSENED: &[(&str, &str, &str, &str, &str)] = &[
    ("", "approvals.mode = 'plan'", "approvals.mode", "\"plan\"", ""),
    (
        "approvals.mode = 'ask'",
        "approvals.mode = 'auto'",
        "approvals.mode",
        "\"ask\"",
        "`ask` holds, which is stricter",
    ),
    (
        "",
        "approvals.allow = ['bash']",
        "approvals.allow",
        "[]",
        "midturn.toml:1: `approvals.allow` is not taken",
    ),
    (
        "approvals.deny = ['read(a)']",
        "approvals.deny = 'read(b)'",
        "approvals.deny",
        "[\"read(a)\",\"read(b)\"]",
        "",
    ),
    ("", "sandbox.network = true", "sandbox.network", "false", "`false` holds"),
    ("sandbox.network = true", "sandbox.network = false", "sandbox.network", "false", ""),
    ("", "sandbox.network = ['a.example']", "sandbox.network", "false", "`false` holds"),
    (
        "sandbox.network = ['a.example']",
        "sandbox.network = true",
        "sandbox.network",
        "[\"a.example\"]",
        "holds",
    ),
    (
        "sandbox.network = ['a.example', 'registries']",
        "sandbox.network = ['a.example', 'b.example']",
        "sandbox.network",
        "[\"a.example\"]",
        "only a person can name a host",
    ),
    ("", "sandbox.git = 'write'", "sandbox.git", "\"read\"", "`read` holds"),
    ("sandbox.git = 'write'", "sandbox.git = 'read'", "sandbox.git", "\"read\"", ""),
    ("", "sandbox.tier = 'none'", "sandbox.tier", "null", "`the best there is` holds"),
    (
        "",
        "sandbox.environment = ['AWS_PROFILE']",
        "sandbox.environment",
        "[]",
        "only a person can allow that",
    ),
    ("", "sandbox.read = ['/srv']", "sandbox.read", "[]", "only a person can allow that"),
    ("sandbox.read = ['~/a', '/b']", "sandbox.read = ['/b']", "sandbox.read", "[\"/b\"]", ""),
    ("", "sandbox.memory = 1", "sandbox.memory", "1", ""),
    ("max_cost = 2.5", "max_cost = 0", "max_cost", "2.5", "`2.5` holds"),
    ("", "session.max_time = '1h'", "session.max_time", "\"1h\"", ""),
    ("", "models.'a/b'.input = 0", "models.a/b.input", "null", "only a person knows what they pay"),
    ("", "retry.attempts = 100000", "retry.attempts", "20", "`20` holds, which is stricter"),
    ("", "agents.isolation = 'none'", "agents.isolation", "\"worktree\"", "`worktree` holds"),
    ("", "progress_guard = 9", "progress_guard", "2", "how agents are reached and interrupted is yours"),
    ("", "models.'a/b'.context_tokens = 5", "models.a/b.context_tokens", "5", ""),
    ("providers.openai.base_url = 'http://a'", "", "providers.openai.base_url", "\"http://a\"", ""),
    (
        "",
        "providers.anthropic.max_output_tokens = 64000",
        "providers.anthropic.max_output_tokens",
        "null",
        "`32000` holds",
    ),
    ("", "providers.openai.max_output_tokens = 64000", "providers.openai.max_output_tokens", "64000", ""),
    (
        "providers.openai.base_url = 'http://a'",
        "providers.openai.base_url = 'http://b'",
        "providers.openai.base_url",
        "\"http://a\"",
        "yours holds",
    ),
];

#[test]
fn a_projects_file_tightens_and_does_not_loosen() {
    for (persons, projects, key, value, note) in LOOSENED.iter().copied() {
        let config = load(&[(USERS, persons), ("midturn.toml", projects)], &[], &[]).unwrap();
        let held = config.entries.get(key).map_or(Value::Null, |entry| entry.value.clone());
        assert_eq!(held.to_string(), value, "{persons} / {projects}");
        assert_eq!(config.notes.len(), usize::from(!note.is_empty()), "{:?}", config.notes);
        assert!(config.notes.iter().all(|told| told.contains(note)), "{:?} / {note}", config.notes);
    }
}

#[test]
fn a_person_loosens_in_every_layer_of_their_own() {
    let project = ("midturn.toml", "approvals.mode = 'plan'");
    for (files, env, set) in [
        (&[(USERS, "sandbox.network = true\nsandbox.memory = 9999999999")][..], &[][..], &[][..]),
        (&[project], &[("MIDTURN_SANDBOX_NETWORK", "true"), ("MIDTURN_SANDBOX_MEMORY", "9999999999")], &[]),
        (&[project], &[], &["sandbox.network=true", "sandbox.memory=9999999999"]),
    ] {
        let sandbox = load(files, env, set).unwrap().general.sandbox;
        assert_eq!((sandbox.network == Network::On, sandbox.limits.memory), (true, 9_999_999_999));
    }
    let config = load(&[project], &[], &["approvals.mode=auto"]).unwrap();
    assert_eq!(config.general.approvals.mode.as_str(), "auto");
}

#[test]
fn a_project_that_sends_keys_elsewhere_is_an_error_unless_the_person_says_where() {
    let project = ("midturn.toml", "\nproviders.openai-chat.base_url = 'https://evil.example'");
    let error = load(&[project], &[], &[]).unwrap_err().to_string();
    for needed in ["midturn.toml:2:", "your key would go there", "MIDTURN_PROVIDERS_OPENAI_CHAT_BASE_URL"] {
        assert!(error.contains(needed), "{error}");
    }
    let said = load(&[project], &[], &["providers.openai-chat.base_url=https://evil.example"]).unwrap();
    assert_eq!(said.notes.len(), 1, "{:?}", said.notes);
}

#[test]
fn rules_know_where_they_are_written_and_deny_adds_up() {
    let files = [
        (
            USERS,
            "[approvals]\nmode = 'ask'\nallow = [\n  'bash(ls *)',\n  'edit(src/**)',\n]\ndeny = ['bash(rm *)']",
        ),
        ("midturn.toml", "[approvals]\ndeny = [\n  'read(secrets/**)', 'grep',\n]"),
    ];
    let config =
        load(&files, &[("MIDTURN_APPROVALS_DENY", "bash(curl *)")], &["approvals.deny=[\"edit\"]"]).unwrap();
    let policy = config.policy();
    let ends: Vec<String> = policy.allow.iter().chain(&policy.deny).map(ToString::to_string).collect();
    for (shown, expected) in ends.iter().zip([
        "xdg/midturn/midturn.toml:4)",
        "xdg/midturn/midturn.toml:5)",
        "xdg/midturn/midturn.toml:7)",
        "midturn.toml:3)",
        "midturn.toml:3)",
        "`bash(curl *)` (environment MIDTURN_APPROVALS_DENY)",
        "`edit` (flag --set)",
    ]) {
        assert!(shown.ends_with(expected), "{shown} / {expected}");
    }
    let complaints = policy.complaints();
    let told = complaints.join("\n");
    assert_eq!(complaints.len(), 1, "{told}");
    assert!(told.contains("midturn.toml:5) never allows"), "{told}");
    for rule in ["web", "read(~/.ssh/**)", "bash(curl * | sh)", "bash([)"] {
        let error =
            load(&[("midturn.toml", &format!("[approvals]\ndeny = [\n  'read',\n  '{rule}',\n]"))], &[], &[]);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("midturn.toml:4") && error.contains(rule), "{error}");
    }
}

#[test]
fn tables_are_laid_key_by_key() {
    let files = [
        (USERS, "[retry]\nattempts = 2\ncap = \"1s\""),
        ("midturn.toml", "retry.time = \"2s\"\n[settings]\nmax_turns = 9"),
    ];
    let config = load(
        &files,
        &[("MIDTURN_RETRY_BASE", "10ms"), ("MIDTURN_ALIASES_FAST", "openai/x")],
        &["aliases.gpt-4.1=openai/gpt-4.1"],
    )
    .unwrap();
    let retry = &config.settings.retry;
    assert_eq!(
        (retry.attempts, retry.cap.to_string(), retry.time.to_string(), retry.base.to_string()),
        (2, "1s".into(), "2s".into(), "10ms".into())
    );
    assert_eq!(config.settings.max_turns, 9);
    assert_eq!(config.general.aliases["fast"], "openai/x");
    assert_eq!(config.general.aliases["gpt-4.1"], "openai/gpt-4.1");
    assert!(config.general.aliases.contains_key("sonnet"));
}

#[test]
fn the_usual_variables_are_honoured_below_our_own() {
    let both = [("OPENAI_BASE_URL", "http://a"), ("MIDTURN_PROVIDERS_OPENAI_CHAT_BASE_URL", "http://b")];
    let config = load(&[("midturn.toml", "providers.openai.base_url = 'http://c'")], &both, &[]).unwrap();
    assert_eq!(config.general.providers["openai"].base_url, "http://a");
    assert_eq!(config.general.providers["openai-chat"].base_url, "http://b");
    assert_eq!(
        config.origin("providers.openai.base_url"),
        &Origin::Environment { variable: "OPENAI_BASE_URL".into() }
    );
}

#[test]
fn a_value_of_the_environment_has_the_type_of_its_key() {
    for (name, text, key, value) in [
        ("MIDTURN_MODEL", "5", "model", "\"5\""),
        ("MIDTURN_MAX_TURNS", "5", "max_turns", "5"),
        ("MIDTURN_PROGRESS_GUARD", "false", "progress_guard", "false"),
        ("MIDTURN_ABORT_GRACE", "250ms", "abort_grace", "\"250ms\""),
        ("MIDTURN_ABORT_GRACE", "0", "abort_grace", "0"),
        ("MIDTURN_DEFAULT_URGENCY_TO_LEAD", "urgent", "default_urgency.to_lead", "\"urgent\""),
        ("MIDTURN_AGENTS_TOOLS", "read, grep", "agents.tools", "\"read, grep\""),
        ("MIDTURN_APPROVALS_ALLOW", "[\"read\", \"bash(x)\"]", "approvals.allow", "[\"read\",\"bash(x)\"]"),
        ("MIDTURN_APPROVALS_DENY", "bash({a,b})", "approvals.deny", "[\"bash({a,b})\"]"),
        ("MIDTURN_SANDBOX_WRITABLE", "~/a,/b", "sandbox.writable", "\"~/a,/b\""),
        ("MIDTURN_SANDBOX_READ", "~/a,/b", "sandbox.read", "\"~/a,/b\""),
        ("MIDTURN_SANDBOX_ENVIRONMENT", "A,B", "sandbox.environment", "\"A,B\""),
    ] {
        let config = load(&[], &[(name, text)], &[]).unwrap();
        assert_eq!(config.entries[key].value.to_string(), value, "{name}");
    }
}

#[test]
fn every_key_has_an_environment_variable_of_its_own() {
    let names: std::collections::BTreeSet<String> =
        keys::defaults().keys().map(|key| text::variable(key)).collect();
    assert_eq!(names.len(), keys::defaults().len());
}

/// A file, and what its error has to say.
const BAD_FILES: &[(&str, &str)] = &[
    ("max_turn = 3", "midturn.toml:1:1: unknown key `max_turn`; the nearest known name is `max_turns`"),
    (
        "# é\n[retry]\n attemps = 3",
        "midturn.toml:3:2: unknown key `retry.attemps`; the nearest known name is `retry.attempts`",
    ),
    ("[retyr]\nattempts = 3", "unknown key `retyr.attempts`; the nearest known name is `retry.attempts`"),
    ("zzzzzz = 1", "`midturn config` lists the known names"),
    ("[zzzzzz]", "midturn.toml:1:2: unknown key `zzzzzz`"),
    ("max_turns = \"é\"", "midturn.toml:1:13: `max_turns`: invalid type: string \"é\", expected u32"),
    ("max_turns = -1", "invalid value: integer `-1`, expected u32"),
    ("max_turns = 1.5", "expected u32"),
    ("abort_grace = 5", "midturn.toml:1:15: `abort_grace`: `5` is not a duration: write 250ms"),
    ("abort_grace = 1979-05-27", "no key takes a date"),
    ("concurrency = \"some\"", "unknown variant `some`, expected `safe` or `all`"),
    ("max_parallel_tools = 0", "expected 1 or more"),
    ("retry = 5", "midturn.toml:1:9: `retry` is a table of keys"),
    ("[max_turns]\nx = 1", "`max_turns`: invalid type: a table"),
    ("[max_turns]", "`max_turns`: invalid type: map"),
    ("max_turns = 1\nmax_turns = 2", "midturn.toml:2:1: duplicate key"),
    ("max_turns = 1\nsettings.max_turns = 2", "midturn.toml:2:10: `max_turns` is set already, in line 1"),
    ("a = [", "midturn.toml:1:"),
    ("model = \"\"", "`model`: invalid value: an empty text"),
    ("providers.openai.base_url = \"ftp://x\"", "expected a URL that begins with https://"),
    ("providers.openai.base_url = \"https://u:pw@x\"", "no user, password, query"),
    ("[agents]\ntools = [1]", "expected a string"),
    (
        "approvals.mode = \"yolo\"",
        "unknown variant `yolo`, expected one of `auto`, `accept-edits`, `ask`, `plan`",
    ),
    (
        "[approvals]\ndeny = [\n 'read',\n 'bash(' ]",
        "midturn.toml:4:2: `approvals.deny`: `bash(` is not a rule: write TOOL",
    ),
    (
        "approvals.allow = 'edit([)'",
        "midturn.toml:1:19: `approvals.allow`: `edit([)` has a pattern that can't be read",
    ),
    ("approvals.patience = 5", "`5` is not a duration"),
    ("sandbox.tier = 'docker'", "unknown variant `docker`, expected one of `bubblewrap`, `landlock`, `none`"),
    ("sandbox.git = 'none'", "unknown variant `none`, expected `read` or `write`"),
    ("approvals.deny = 'commit(src/**)'", "has nothing to hold a pattern against"),
    ("sandbox.processes = 0", "expected 1 or more"),
    ("models.'a/b'.input = -1", "midturn.toml:1:22: `models.a/b.input`: `-1` is not a price"),
    ("models.'a/b'.inptu = 1", "a model (here `a/b`) has context_tokens, input, output and cached"),
    ("models.'a/b' = 1", "unknown key `models.a/b`"),
    ("models = 1", "`models` is a table of keys"),
    ("max_cost = -1", "is not an amount of dollars"),
    ("compact_at = 101", "expected 1 to 100"),
];

#[test]
fn a_bad_file_is_an_error_with_its_place_and_what_was_expected() {
    for (source, expected) in BAD_FILES.iter().copied() {
        let error = load(&[("midturn.toml", source)], &[], &[]).unwrap_err();
        assert_eq!(error.end(), crate::failure::End::Usage);
        assert!(error.to_string().contains(expected), "{error}\n{expected}");
    }
}

#[test]
fn a_key_of_a_provider_is_refused_everywhere_and_never_repeated() {
    let files = |text: &'static str| load(&[("midturn.toml", text)], &[], &[]);
    for error in [
        files("[providers.anthropic]\napi_key = 'sk-hidden'"),
        files("OPENAI_API_KEY = 'sk-hidden'"),
        load(&[], &[("MIDTURN_API_KEY", "sk-hidden")], &[]),
        load(&[], &[], &["providers.openai.api_key=sk-hidden"]),
    ] {
        let error = error.unwrap_err().to_string();
        assert!(error.contains("environment only") && error.contains("_API_KEY"), "{error}");
        assert!(!error.contains("sk-hidden"), "{error}");
    }
}

#[test]
fn bad_variables_and_flags_are_errors_that_name_them() {
    for (env, set, expected) in [
        (
            &[("MIDTURN_MAX_TURN", "1")][..],
            &[][..],
            "unknown environment variable MIDTURN_MAX_TURN; the nearest known name is `MIDTURN_MAX_TURNS`",
        ),
        (&[("MIDTURN_MAX_TURNS", "x")], &[], "MIDTURN_MAX_TURNS: invalid type: string \"x\", expected u32"),
        (&[], &["max_turns"], "--set max_turns: expected KEY=VALUE"),
        (&[], &["max_turn=1"], "--set: unknown key `max_turn`; the nearest"),
        (&[], &["max_turns=x"], "--set: `max_turns`: invalid type"),
        (&[], &["retry=x"], "--set: `retry` is a table"),
    ] {
        let error = load(&[], env, set).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}\n{expected}");
    }
}

#[test]
fn unreadable_files_are_errors_and_absent_ones_are_not() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join(FILE_NAME);
    let said = || Config::load(root.path(), &Env::default(), &LayerArgs::default());
    assert!(!said().unwrap().looked[0].found);
    std::fs::write(&path, b"\n\xff").unwrap();
    assert!(said().unwrap_err().to_string().ends_with("midturn.toml:2: is not UTF-8"));
    std::fs::write(&path, vec![b'#'; (1 << 20) + 1]).unwrap();
    assert!(said().unwrap_err().to_string().contains("midturn.toml: has more than 1024 KiB"));
    std::fs::remove_file(&path).unwrap();
    // C8: what stands there while an agent's command runs, so that it makes no file.
    std::fs::create_dir(&path).unwrap();
    assert!(!said().unwrap().looked[0].found);
    std::fs::write(path.join("file"), "").unwrap();
    assert!(said().unwrap_err().to_string().contains("can't be read"));
}

#[test]
fn what_is_shown_is_a_configuration_that_gives_the_same_values() {
    let config = load(&[("midturn.toml", "max_turns = 3\naliases.\"a b\" = \"x/y\"")], &[], &[]).unwrap();
    let text = shown(&config, &keys_set(&config, &Env::of([("OPENAI_API_KEY", "sk-hidden")])));
    assert!(text.contains("# environment OPENAI_API_KEY: set\n") && !text.contains("sk-hidden"), "{text}");
    assert!(text.contains("# model is not set"), "{text}");
    let again = Box::leak(text.into_boxed_str());
    let twice = load(&[("midturn.toml", again)], &[], &[]).unwrap();
    assert_eq!((twice.general, twice.settings), (config.general.clone(), config.settings.clone()));
    let json = shown_as_json(&config, &keys_set(&config, &Env::default()));
    assert_eq!(json["values"]["max_turns"]["value"], 3);
    assert_eq!(json["values"]["max_turns"]["from"]["line"], 1);
    assert_eq!(json["values"]["retry.cap"]["from"]["layer"], "default");
}
