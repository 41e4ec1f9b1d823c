//! What each key means, in the words of docs/configuration.md: its tables are the only place where that is written.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::authority::in_table;

const PAGE: &str = include_str!("../../../../docs/configuration.md");

/// The last cell of each row of the page's tables, by the key in its first one.
static ROWS: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| PAGE.lines().filter_map(row).collect());

/// What a key means; `None` if the page has no row for it.
pub(super) fn meaning(key: &str) -> Option<&'static str> {
    let table = key.split('.').next().unwrap_or(key);
    // The page writes `models.….input` for a name that somebody chose.
    let listed = in_table(key).replacen(".*.", ".….", 1).replace(".*", "");
    ROWS.get(&listed).or_else(|| ROWS.get(table)).map(String::as_str)
}

fn row(line: &str) -> Option<(String, String)> {
    let cells: Vec<&str> = line.strip_prefix("| ")?.strip_suffix('|')?.split('|').map(str::trim).collect();
    let key = cells.first()?.strip_prefix('`')?.strip_suffix('`')?;
    (cells.len() >= 3).then(|| (key.to_owned(), without_links(cells[cells.len() - 1])))
}

/// The text with links' words alone.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        plain.push_str(before);
        match link.split_once("](").and_then(|(words, url)| Some((words, url.split_once(')')?.1))) {
            Some((words, after)) => {
                plain.push_str(words);
                rest = after;
            }
            None => {
                plain.push('[');
                rest = link;
            }
        }
    }
    plain + rest
}
