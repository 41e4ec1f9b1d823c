//! What models cost, and how much they hold, as others have written it down: a table of a date, by the
//! host that a model is asked at (docs/decisions/0042-prices-of-a-date.md). What a person says goes before it.

use midturn_core::rules::limits::Money;

use crate::config::ModelFacts;

/// Made by `renew.jq`: its date and source, then a line a model.
const TABLE: &str = include_str!("table.txt");

/// What the table knows of a model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Known {
    /// Its name at its host.
    pub(crate) name: &'static str,
    /// What it costs and holds.
    pub(crate) facts: ModelFacts,
}

/// The day whose prices the table has.
pub(crate) fn date() -> &'static str {
    head(0)
}

/// What the table was made of.
pub(crate) fn source() -> String {
    format!("{} {}", head(1), head(2))
}

fn head(word: usize) -> &'static str {
    let first = TABLE.lines().next().unwrap_or_default();
    first.trim_start_matches("# ").split(' ').nth(word).unwrap_or_default()
}

/// The host that a provider's models are asked at, if what it costs there is known to anybody.
pub(crate) fn host(base_url: &str) -> Option<String> {
    let url = reqwest::Url::parse(base_url.trim()).ok().filter(|url| url.scheme() == "https")?;
    url.host_str().map(str::to_owned)
}

/// All models of a host.
pub(crate) fn all(host: &str) -> impl Iterator<Item = Known> {
    TABLE.lines().filter_map(move |line| read(line, |at, _| at == host))
}

/// The model of that name at that host: by its whole name, or by its name without the date at its end.
pub(crate) fn find(host: &str, model: &str) -> Option<Known> {
    let named =
        |wanted: &str| TABLE.lines().find_map(|line| read(line, |at, names| at == host && names(wanted)));
    named(model).or_else(|| named(undated(model)?))
}

/// Reads a line, if it is the one that is wanted.
fn read(line: &'static str, wanted: impl Fn(&str, &dyn Fn(&str) -> bool) -> bool) -> Option<Known> {
    let mut words = line.split(' ');
    let (at, name) = (words.next()?, words.next()?);
    let facts: [Option<&str>; 4] = std::array::from_fn(|_| words.next().filter(|word| *word != "-"));
    let names = |model: &str| model == name || words.clone().any(|other| other == model);
    if at == "#" || !wanted(at, &names) {
        return None;
    }
    let money = |text: Option<&str>| text.and_then(|text| text.parse::<Money>().ok());
    let [input, output, cached, context] = facts;
    let context_tokens = context.and_then(|text| text.parse().ok());
    let facts =
        ModelFacts { context_tokens, input: money(input), output: money(output), cached: money(cached) };
    Some(Known { name, facts })
}

/// A name without `-20250929`, `-2026-03-05` or `-latest` at its end.
fn undated(model: &str) -> Option<&str> {
    let digits =
        |text: &str, count: usize| text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(rest) = model.strip_suffix("-latest") {
        return Some(rest);
    }
    let (rest, last) = model.rsplit_once(['-', '@'])?;
    if digits(last, 8) {
        return Some(rest);
    }
    let (rest, month) = rest.rsplit_once('-').filter(|_| digits(last, 2))?;
    let (rest, year) = rest.rsplit_once('-').filter(|_| digits(month, 2))?;
    digits(year, 4).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_has_prices_that_are_exact() {
        let lines = || TABLE.lines().skip(1);
        let known: Vec<Known> = lines().filter_map(|line| read(line, |_, _| true)).collect();
        assert!(known.len() > 300 && known.len() == lines().count());
        assert!(known.iter().all(|known| known.facts.prices().is_some()), "{known:?}");
        assert!(date().parse::<jiff::civil::Date>().is_ok() && source().starts_with("genai-prices "));
    }

    #[test]
    fn a_model_is_found_by_its_name_with_and_without_a_date_and_at_its_own_host_alone() {
        for (host, model, name) in [
            ("api.anthropic.com", "claude-sonnet-4-5", Some("claude-sonnet-4-5")),
            ("api.anthropic.com", "claude-sonnet-4-5-20250929", Some("claude-sonnet-4-5")),
            ("api.anthropic.com", "claude-3-7-sonnet-latest", Some("claude-3-7-sonnet-latest")),
            ("api.openai.com", "gpt-5.4-2027-01-01", Some("gpt-5.4")),
            ("api.anthropic.com", "claude-sonnet-4-50", None),
            ("api.anthropic.com", "claude-sonnet-4-5-beta", None),
            ("localhost", "claude-sonnet-4-5", None),
            ("#", "2026-10-20", None),
        ] {
            assert_eq!(find(host, model).map(|known| known.name), name, "{host} {model}");
        }
    }

    #[test]
    fn the_host_of_a_url_is_one_that_is_reached_as_its_owner_wants_it() {
        assert_eq!(host("https://api.openai.com/v1").as_deref(), Some("api.openai.com"));
        assert_eq!((host("http://api.openai.com/v1"), host("nonsense")), (None, None));
    }
}
