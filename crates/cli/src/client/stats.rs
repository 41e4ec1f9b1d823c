//! `midturn stats`: the figures of the running process, whatever figures it has.

use midturn_client::{Path, Trouble};
use midturn_core::rules::mail::Urgency;
use midturn_view::svg::{Spread, chart};
use serde_json::Value;

use super::{Answer, Asking};
use crate::flat::flat;

/// The figures.
pub(super) async fn stats(asking: &Asking) -> Result<Answer, Trouble> {
    let value = asking.client.get(&Path::of(&["stats"])).await?;
    let text = told(&value);
    Ok(Answer::good(value, text))
}

/// How long messages waited, as a picture.
pub(super) fn picture(stats: &Value) -> String {
    let of = |urgency: Urgency| {
        let spread = &stats["messages"]["wait_seconds"][urgency.as_str()];
        let (count, name) = (spread["count"].as_u64().unwrap_or_default(), urgency.as_str().to_owned());
        Spread { name, count, p50: spread["p50"].as_f64(), p99: spread["p99"].as_f64() }
    };
    let spreads: Vec<Spread> = Urgency::ALL.into_iter().map(of).collect();
    chart("How long messages waited until they were injected", &spreads)
}

/// One line a figure, its name first; what stands deeper has the names above it before its own.
fn told(value: &Value) -> String {
    let lines: Vec<_> = flat(value).into_iter().map(|(name, value)| (name, figure(value))).collect();
    let width = lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    lines.iter().map(|(name, figure)| format!("{name:<width$}  {figure}\n")).collect()
}

fn figure(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(figure).collect::<Vec<_>>().join(", "),
        Value::Number(number) if number.is_f64() => {
            let text = format!("{:.6}", number.as_f64().unwrap_or_default());
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_figure_has_a_line_with_its_whole_name() {
        let figures = json!({"live_agents": 3, "stop": {"rate": 0.25, "p99": 0.1000000001}, "by": [{"n": 1}], "x": [1, 2], "no": null});
        assert_eq!(
            told(&figures),
            "by.0.n       1\nlive_agents  3\nno           -\nstop.p99     0.1\nstop.rate    0.25\nx            1, 2\n"
        );
        assert_eq!(told(&json!({})), "");
    }
}
