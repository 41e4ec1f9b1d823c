//! `[providers.NAME]`: what makes a provider, who may say it, and what is refused.

use midturn_providers::Dialect;

use super::*;

/// Two servers of one's own.
const OWN: &str = "
[providers.gateway]
dialect = 'chat'
base_url = 'https://gateway.example/v1'
key_env = 'GATEWAY_KEY'
headers = {X-Tenant = 'blue ${TENANT}'}
max_output_tokens = 9000

[providers.azure]
dialect = 'responses'
base_url = 'https://azure.example/openai/v1'
headers = {api-key = '${AZURE_KEY}'}
query = {'api.version' = '2025-04-01'}
";

#[test]
fn a_provider_of_one_s_own_is_data_and_stands_beside_the_built_in_ones() {
    let config = load(&[(USERS, OWN)], &[], &[]).unwrap();
    let known: Vec<&str> = config.general.providers.keys().map(String::as_str).collect();
    assert_eq!(known, ["anthropic", "azure", "gateway", "openai", "openai-chat"]);
    let gateway = config.general.providers["gateway"].clone();
    assert_eq!((gateway.dialect, gateway.max_output_tokens), (Dialect::Chat, Some(9_000)));
    assert_eq!((gateway.key_env.as_deref(), gateway.max_concurrent), (Some("GATEWAY_KEY"), 256));
    assert!(gateway.headers.contains_key("x-tenant"), "names of headers are the same in capitals");
    let azure = config.general.providers["azure"].clone();
    assert_eq!((azure.key_env, azure.query.len()), (None, 1));
    let variables: Vec<String> = config.key_variables().into_iter().collect();
    let expected = ["ANTHROPIC_API_KEY", "AZURE_KEY", "GATEWAY_KEY", "OPENAI_API_KEY", "TENANT"];
    assert_eq!(variables, expected);
    assert!(!config.entries.contains_key("providers.gateway.thinking_budget"));
    assert!(config.entries.contains_key("providers.gateway.reasoning_effort"));
    let text = Box::leak(shown(&config, &keys_set(&config, &Env::default())).into_boxed_str());
    assert_eq!(load(&[(USERS, text)], &[], &[]).unwrap().general, config.general);
}

#[test]
fn a_stronger_layer_changes_fields_and_leaves_the_others() {
    let env = [
        ("MIDTURN_PROVIDERS_GATEWAY_BASE_URL", "http://near"),
        ("MIDTURN_PROVIDERS_MY_OWN_DIALECT", "anthropic"),
    ];
    let set = [
        "providers.gateway.headers.x-tenant=red",
        "providers.gateway.key_env=OTHER",
        "providers.my-own.base_url=http://own",
    ];
    let config = load(&[(USERS, OWN)], &env, &set).unwrap();
    let gateway = &config.general.providers["gateway"];
    assert_eq!((gateway.base_url.as_str(), gateway.key_env.as_deref()), ("http://near", Some("OTHER")));
    assert_eq!((gateway.headers.len(), gateway.max_output_tokens), (1, Some(9_000)));
    assert_eq!(config.entries["providers.gateway.headers.x-tenant"].value, "red");
    let own = &config.general.providers["my-own"];
    assert_eq!((own.dialect, own.base_url.as_str()), (Dialect::Anthropic, "http://own"));
}

#[test]
fn a_project_adds_no_provider_and_no_login() {
    for (said, line, key) in [
        (
            "[providers.evil]\ndialect = 'chat'\nbase_url = 'https://evil.example'",
            2,
            "providers.evil.dialect",
        ),
        ("providers.evil.base_url = 'https://evil.example'", 1, "providers.evil.base_url"),
        ("\nproviders.azure.key_env = 'OPENAI_API_KEY'", 2, "providers.azure.key_env"),
        ("\nproviders.openai.key_env = 'GITHUB_TOKEN'", 2, "providers.openai.key_env"),
        ("\nproviders.openai.dialect = 'chat'", 2, "providers.openai.dialect"),
        ("\nproviders.openai.headers.X-A = '${HOME}'", 2, "providers.openai.headers.x-a"),
        ("\nproviders.gateway.query.a = '${HOME}'", 2, "providers.gateway.query.a"),
    ] {
        let error = load(&[(USERS, OWN), ("midturn.toml", said)], &[], &[]).unwrap_err().to_string();
        let expected = format!("midturn.toml:{line}: `{key}` can't come from a project's file");
        assert!(error.contains(&expected), "{error}\n{expected}");
    }
}

#[test]
fn what_a_person_says_of_a_login_holds_whatever_a_project_says() {
    let alone = load(&[(USERS, OWN)], &[], &[]).unwrap();
    for (key, said) in [
        ("providers.gateway.base_url", "https://evil.example"),
        ("providers.gateway.key_env", "OPENAI_API_KEY"),
        ("providers.gateway.dialect", "anthropic"),
        ("providers.gateway.headers.x-tenant", "${OPENAI_API_KEY}"),
    ] {
        let config = load(&[(USERS, OWN), ("midturn.toml", &format!("{key} = '{said}'"))], &[], &[]).unwrap();
        assert_eq!(config.notes, [format!("a project's file sets `{key}` too: yours holds")]);
        assert_eq!(config.general, alone.general);
    }
}

#[test]
fn a_project_says_the_same_or_less_of_a_provider_that_the_person_has() {
    let said = "[providers.gateway]\ndialect = 'chat'\nbase_url = 'https://gateway.example/v1'\n\
                max_concurrent = 4\nmax_output_tokens = 10000";
    let config = load(&[(USERS, OWN), ("midturn.toml", said)], &[], &[]).unwrap();
    let gateway = &config.general.providers["gateway"];
    assert_eq!((gateway.max_concurrent, gateway.max_output_tokens), (4, Some(9_000)));
    assert_eq!(config.notes.len(), 1, "{:?}", config.notes);
}

#[test]
fn a_project_s_limit_for_a_provider_that_the_person_has_not_is_told_and_no_error() {
    for said in ["max_concurrent = 4", "max_output_tokens = 77", "reasoning_effort = 'low'"] {
        let config = load(&[("midturn.toml", &format!("providers.corp.{said}"))], &[], &[]).unwrap();
        assert!(config.notes[0].contains("you have no provider of this name"), "{:?}", config.notes);
        assert!(!config.general.providers.contains_key("corp"));
    }
}

/// What a person's file says, and what its error has to say.
const BAD: &[(&str, &str)] = &[
    (
        "[providers.x]\nbase_url = 'http://x'\ndialect = 'mistral'",
        "midturn.toml:3:11: `providers.x.dialect`: unknown variant `mistral`, expected one of `anthropic`, `responses`, `chat`",
    ),
    (
        "\n[providers.x]\nbase_url = 'http://x'",
        "midturn.toml:3: the provider `x` has no `dialect`: expected one of `anthropic`, `responses`, `chat`",
    ),
    ("providers.x.dialect = 'chat'", "midturn.toml:1: the provider `x` has no `base_url`: expected its URL"),
    (
        "providers.antropic.max_concurrent = 3",
        "midturn.toml:1: the provider `antropic` has no `dialect`: expected one of `anthropic`, `responses`, \
         `chat`; the nearest known provider is `anthropic`",
    ),
    (
        "[providers.x]\nbase_ulr = 'http://x'",
        "midturn.toml:2:1: unknown key `providers.x.base_ulr`: a provider (here `x`) has base_url, dialect",
    ),
    ("[providers.x]\nbase_ulr = 'http://x'", "; the nearest is `base_url`"),
    ("[providers.x]", "unknown key `providers.x`"),
    ("[providers]\nx = 'chat'", "unknown key `providers.x`"),
    (
        "[providers.groq]\ndialect = 'chat'\n[providers.Groq]\ndialect = 'chat'",
        "midturn.toml:4:1: `Groq` can't be the name of a provider, which has lower-case letters, digits and `-`: write `groq`",
    ),
    ("providers.my_own.dialect = 'chat'", ": write `my-own`"),
    ("providers.'é'.dialect = 'chat'", "lower-case letters, digits and `-`"),
    ("[providers.x]\ndialect = 'chat'\n[providers.x]", "midturn.toml:3:"),
    (
        "providers.x.dialect = 'chat'\nsettings.providers.x.dialect = 'chat'",
        "midturn.toml:2:22: `providers.x.dialect` is set already, in line 1",
    ),
    (
        "providers.openai.headers.X-A = '1'\nproviders.openai.headers.x-a = '2'",
        "midturn.toml:2:26: `providers.openai.headers.x-a` is set already, in line 1",
    ),
    ("providers.x.api_key = 'sk-hidden'", "name it as the provider's `key_env`"),
    (
        "providers.x.key_env = 'sk-hidden-123'",
        "midturn.toml:1:23: `providers.x.key_env`: expected the name of an environment variable",
    ),
    (
        "providers.openai.headers.Authorization = 'Bearer sk-hidden'",
        "midturn.toml:1:42: `providers.openai.headers.authorization`: keys come from the environment only",
    ),
    ("providers.x.key_env = 'MIDTURN_KEY'", "variables that begin with MIDTURN_ are settings"),
    ("providers.openai.query.key = 'sk-hidden'", "keys come from the environment only"),
    (
        "providers.openai.headers.host = 'x'",
        "midturn.toml:1:33: `providers.openai.headers.host`: Midturn sets this header itself",
    ),
    ("providers.openai.headers.'a b' = 'x'", "that is not the name of a header"),
    ("providers.openai.headers.x = 'sk-hidden ${'", "`${` begins the name of an environment variable"),
    ("providers.openai.headers.x = 5", "invalid type: integer `5`, expected a string"),
    ("providers.openai.headers.x = ''", "an empty text"),
    ("providers.openai.headers = 'x'", "`providers.openai.headers` is a table of keys"),
    ("providers.openai.base_url = 'http://h/?a=b'", "no user, password, query"),
    ("providers.openai.max_concurrent = 0", "expected 1 or more"),
    (
        "\nproviders.openai.thinking_budget = 5",
        "midturn.toml:2: `providers.openai.thinking_budget`: the dialect `responses` doesn't have it",
    ),
    (
        "\nproviders.anthropic.reasoning_effort = 'low'",
        "midturn.toml:2: `providers.anthropic.reasoning_effort`: the dialect `anthropic` doesn't have it",
    ),
    (
        "\nproviders.openai.headers.authorization = 'Bearer ${MINE}'",
        "midturn.toml:2: `providers.openai.headers.authorization` is a second login beside `key_env` (OPENAI_API_KEY)",
    ),
    (
        "\nproviders.anthropic.headers.x-api-key = '${MINE}'",
        "is a second login beside `key_env` (ANTHROPIC_API_KEY)",
    ),
    ("\nproviders.anthropic.headers.Authorization = '${MINE}'", "is a second login beside `key_env`"),
    (
        "[providers.x]\ndialect = 'chat'\nbase_url = 'http://x'\nheaders.x-login = '${OPENAI_API_KEY}'",
        "midturn.toml:4: `providers.x.headers.x-login` would send OPENAI_API_KEY, the key of `openai`, to `x`; if \
         you mean it, name it as `providers.x.key_env`",
    ),
    (
        "providers.openai.query.k = '${ANTHROPIC_API_KEY}'",
        "would send ANTHROPIC_API_KEY, the key of `anthropic`, to `openai`",
    ),
];

#[test]
fn a_bad_provider_is_an_error_with_its_place_and_never_its_key() {
    for (said, expected) in BAD.iter().copied() {
        let error = load(&[(USERS, said)], &[], &[]).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}\n{expected}");
        assert!(!error.contains("hidden"), "{error}");
    }
}

#[test]
fn what_looks_like_another_login_and_is_one_s_own_is_taken() {
    for said in [
        // One key for two servers, said in so many words.
        "[providers.x]\ndialect = 'chat'\nbase_url = 'http://x'\nkey_env = 'OPENAI_API_KEY'",
        "providers.openai.headers.x-login = '${OPENAI_API_KEY}'",
        "[providers.x]\ndialect = 'anthropic'\nbase_url = 'http://x'\nheaders.Authorization = 'Bearer ${MINE}'",
        "[providers.openai.headers]",
        "[providers.openai.query]\nbase_url = 'no url'",
    ] {
        load(&[(USERS, said)], &[], &[]).unwrap();
    }
}
