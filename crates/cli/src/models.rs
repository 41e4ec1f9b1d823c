//! `midturn models`: what providers offer, and what is known of each model. A provider whose key is set is
//! asked; of the others the table of prices knows some.

use std::collections::BTreeMap;

use midturn_providers::{Endpoint, Listed, Providers};
use midturn_view::clean::clean;
use serde::Serialize;

use crate::args::ModelsArgs;
use crate::client::table::{Side, table};
use crate::commands;
use crate::config::{Config, ModelFacts};
use crate::env::Env;
use crate::failure::{End, Failure};
use crate::prices;
use crate::run::facts::{Fact, Facts};
use crate::run::models::reach;

/// A model, and what is known of it.
#[derive(Debug, PartialEq, Serialize)]
struct Model {
    /// As `--model` takes it.
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_tokens: Option<u64>,
    /// US dollars per million tokens, as the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cached: Option<String>,
    /// The day of those prices, where they are out of the table.
    #[serde(skip_serializing_if = "Option::is_none")]
    priced_at: Option<&'static str>,
}

/// What came of a provider.
#[derive(Debug, PartialEq, Serialize)]
struct Asked {
    provider: String,
    /// Whether its server gave the list.
    listed: bool,
    /// Why it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// Whether that is a failure: a key that isn't set is none.
    #[serde(skip)]
    is_failure: bool,
    #[serde(skip)]
    models: Vec<Model>,
}

/// `midturn models [PROVIDER]`.
///
/// # Errors
/// [`Failure::Usage`]: the configuration is not sound, or there is no such provider.
/// [`Failure::Failed`]: a provider that was asked didn't answer.
pub(crate) fn models(args: &ModelsArgs, env: &Env) -> Result<End, Failure> {
    let config = commands::load(&args.layer, &commands::work_folder(&args.layer)?, env)?;
    let names = wanted(&config, args.provider.as_deref())?;
    let (providers, facts) = (Providers::new(reach(&config, env)?), Facts::of(&config)?);
    let asked = commands::block_on(async {
        let mut asked = Vec::new();
        for name in names {
            asked.push(ask(&providers, &facts, &name).await);
        }
        asked
    })?;
    let all: Vec<&Model> = asked.iter().flat_map(|asked| &asked.models).collect();
    let end = if args.json {
        commands::print(&format!("{:#}\n", serde_json::json!({"models": all, "providers": asked})))?
    } else {
        commands::print(&clean(&text(&all)))?
    };
    // A program finds it in what it reads.
    for note in asked.iter().filter_map(|asked| asked.why.as_ref()).filter(|_| !args.json) {
        eprintln!("midturn: {}", crate::secrets::clean(&clean(note)));
    }
    Ok(if asked.iter().any(|asked| asked.is_failure) { End::Failed } else { end })
}

/// The providers to ask: those of one server and key once, unless one is named.
fn wanted(config: &Config, named: Option<&str>) -> Result<Vec<String>, Failure> {
    let all = &config.general.providers;
    if let Some(named) = named {
        let known: Vec<&str> = all.keys().map(String::as_str).collect();
        let none =
            || Failure::usage(format!("there is no provider `{named}`; there are {}", known.join(", ")));
        return all.get_key_value(named).map(|(name, _)| vec![name.clone()]).ok_or_else(none);
    }
    let place = |endpoint: &Endpoint| (endpoint.base_url.clone(), endpoint.key_env.clone());
    let mut places = BTreeMap::new();
    for (name, endpoint) in all {
        places.entry(place(endpoint)).or_insert_with(|| name.clone());
    }
    Ok(places.into_values().collect())
}

async fn ask(providers: &Providers, facts: &Facts, name: &str) -> Asked {
    let missing = providers.missing(&format!("{name}/any")).ok().flatten();
    let (listed, why, is_failure) = match missing {
        Some(missing) => (None, Some(format!("{} is not set", missing.variable)), false),
        None => match providers.list(name).await {
            Ok(listed) => (Some(listed), None, false),
            Err(failure) => (None, Some(failure.message), true),
        },
    };
    let known = facts.host(name).into_iter().flat_map(prices::all);
    let of_table =
        || known.map(|known| Listed { name: known.name.to_owned(), context_tokens: None }).collect();
    let is_listed = listed.is_some();
    let models: Vec<Listed> = listed.unwrap_or_else(of_table);
    let known = match models.is_empty() {
        true => "nothing is known of its models".to_owned(),
        false => format!("its models here are those of the table of {}", prices::date()),
    };
    Asked {
        provider: name.to_owned(),
        listed: is_listed,
        why: why.map(|why| format!("{name} has given no list ({why}); {known}")),
        is_failure,
        models: models.into_iter().map(|listed| model(facts, name, listed)).collect(),
    }
}

fn model(facts: &Facts, provider: &str, listed: Listed) -> Model {
    let name = format!("{provider}/{}", listed.name);
    let Fact { facts: ModelFacts { context_tokens, input, output, cached }, dated } = facts.of_model(&name);
    // What a person says goes before what the server says, and that before the table.
    let said = context_tokens.filter(|_| facts.says_context(&name));
    let money = |money: Option<_>| money.map(|money: midturn_core::rules::limits::Money| money.to_string());
    Model {
        context_tokens: said.or(listed.context_tokens).or(context_tokens),
        input: money(input),
        output: money(output),
        cached: money(cached),
        priced_at: dated,
        name,
    }
}

fn text(models: &[&Model]) -> String {
    let columns = [
        ("MODEL", Side::Left),
        ("CONTEXT", Side::Right),
        ("INPUT", Side::Right),
        ("OUTPUT", Side::Right),
        ("CACHED", Side::Right),
    ];
    let rows: Vec<Vec<String>> = models.iter().map(|model| row(model)).collect();
    let mut text = table(&columns, &rows);
    if models.iter().any(|model| model.priced_at.is_some()) {
        let (date, source) = (prices::date(), prices::source());
        text.push_str(&format!(
            "\nUS dollars per million tokens; ~ as they were on {date} ({source}), `-` is not known\n"
        ));
    }
    text
}

fn row(model: &Model) -> Vec<String> {
    let about = if model.priced_at.is_some() { "~" } else { "" };
    let money =
        |money: &Option<String>| money.as_ref().map_or("-".to_owned(), |money| format!("{about}{money}"));
    let context = model.context_tokens.map_or("-".to_owned(), |tokens| tokens.to_string());
    vec![model.name.clone(), context, money(&model.input), money(&model.output), money(&model.cached)]
}
