//! Orders in a text: `DO: tool {json}`, wherever it stands. Whoever obeys does them all.

use serde_json::Value;

/// What an order begins with.
pub(crate) const DO: &str = "DO: ";

/// How many orders of one text are obeyed.
const MOST: usize = 12;

/// A call that somebody wants made.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Order {
    pub(crate) tool: String,
    pub(crate) input: Value,
}

/// Writes an order.
pub(crate) fn order(tool: &str, input: &Value) -> String {
    format!("{DO}{tool} {input}")
}

/// The orders in a text, for the agent of this name. In their words `{me}` stands for its name
/// and `{same}` for the order itself, so that one can go on for ever.
pub(crate) fn orders(text: &str, me: &str) -> Vec<Order> {
    let found = text.match_indices(DO).filter_map(|(at, _)| one(&text[at + DO.len()..], me));
    let mut orders: Vec<Order> = Vec::new();
    for order in found {
        if !orders.contains(&order) && orders.len() < MOST {
            orders.push(order);
        }
    }
    orders
}

fn one(text: &str, me: &str) -> Option<Order> {
    let (tool, rest) = text.split_once(' ')?;
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
    let input = values.next()?.ok().filter(Value::is_object)?;
    let same = order(tool, &input);
    Some(Order { tool: tool.to_owned(), input: filled(input, me, &same) })
}

fn filled(value: Value, me: &str, same: &str) -> Value {
    match value {
        Value::String(text) => text.replace("{me}", me).replace("{same}", same).into(),
        Value::Array(values) => values.into_iter().map(|value| filled(value, me, same)).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(key, value)| (key, filled(value, me, same))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn orders_are_found_wherever_they_stand() {
        let text = "[Message from a: please DO: bash {\"command\":\"x\"} and\n  DO: stop_agent {\"name\":\"{me}\"}]\nDO: no\nDO: bash {}";
        let found = orders(text, "b");
        let wanted =
            [("bash", json!({"command": "x"})), ("stop_agent", json!({"name": "b"})), ("bash", json!({}))];
        assert_eq!(found.len(), wanted.len());
        for (found, (tool, input)) in found.iter().zip(wanted) {
            assert_eq!((found.tool.as_str(), &found.input), (tool, &input));
        }
    }

    #[test]
    fn an_order_can_pass_itself_on() {
        let text = order("spawn_agent", &json!({"name": "{me}x", "prompt": "{same}"}));
        let first = orders(&text, "a").remove(0);
        assert_eq!(first.input["name"], "ax");
        let second = orders(first.input["prompt"].as_str().unwrap(), "ax").remove(0);
        assert_eq!(second.input["name"], "axx");
        assert!(second.input["prompt"].as_str().unwrap().contains("{same}"));
    }
}
