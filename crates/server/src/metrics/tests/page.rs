//! The page that Prometheus scrapes, read by a strict reader of OpenMetrics 1.0.

use std::collections::{BTreeMap, BTreeSet};

use midturn_core::rules::time::Span;

use super::{after, answered, asks, cut, ended, injected, queued, replied, started, stop, tool};

/// A family of the page.
#[derive(Debug, Default)]
struct Family {
    kind: String,
    unit: Option<String>,
    help: String,
    /// Each sample: its whole name, its labels as written, its value.
    samples: Vec<(String, BTreeMap<String, String>, f64)>,
}

/// Reads a page; whatever is not as the format wants it fails the test.
fn read(page: &str) -> BTreeMap<String, Family> {
    let body = page.strip_suffix("# EOF\n").expect("the page ends with # EOF");
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut current = String::new();
    for line in body.lines() {
        if let Some(meta) = line.strip_prefix("# ") {
            let mut words = meta.splitn(3, ' ');
            let (what, name, rest) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
            if name != current {
                assert!(!families.contains_key(name), "{name} comes in two pieces");
                current = name.to_owned();
            }
            let family = families.entry(current.clone()).or_default();
            assert!(family.samples.is_empty(), "{line} comes after its samples");
            match what {
                "HELP" => family.help = rest.to_owned(),
                "TYPE" => family.kind = rest.to_owned(),
                "UNIT" => family.unit = Some(rest.to_owned()),
                other => panic!("{other} in {line}"),
            }
        } else {
            let sample = sample(line);
            assert!(sample.0.starts_with(&current), "{line} does not belong to {current}");
            families.get_mut(&current).unwrap().samples.push(sample);
        }
    }
    families
}

fn sample(line: &str) -> (String, BTreeMap<String, String>, f64) {
    let (series, value) = line.rsplit_once(' ').unwrap();
    let (name, labels) = match series.split_once('{') {
        Some((name, rest)) => (name, rest.strip_suffix('}').unwrap()),
        None => (series, ""),
    };
    let label = |text: &str| {
        let (key, word) = text.split_once('=').unwrap();
        (key.to_owned(), word.strip_prefix('"').unwrap().strip_suffix('"').unwrap().to_owned())
    };
    let labels = labels.split(',').filter(|text| !text.is_empty()).map(label).collect();
    (name.to_owned(), labels, value.parse().unwrap())
}

/// A page with something in every family.
fn page() -> String {
    let (metrics, session) = after([
        started(0.0, 1),
        queued(0.0, "zebra", "user", "urgent"),
        tool(0.5, "skipped"),
        injected(1.0, &["zebra"], "C"),
        replied(2.0),
        cut(3.0, 1, "user_cancelled", 40),
        asks(3.0, "c1"),
        answered(3.0, "c1", "denied"),
        stop(3.0, 1, "user"),
        ended(3.5, 1, "stopped"),
    ]);
    session.stored(Span::millis(3));
    let page = metrics.prometheus();
    drop(session);
    page
}

#[test]
fn the_page_is_strict_openmetrics_with_stable_names() {
    let families = read(&page());
    assert!(families.len() >= 25, "{:?}", families.keys());
    for (name, family) in &families {
        let lower = |c: char| c.is_ascii_lowercase() || c == '_';
        assert!(name.starts_with("midturn_") && name.chars().all(lower), "{name}");
        assert!(
            family.help.len() > 12 && family.help.ends_with('.') && !family.help.ends_with(".."),
            "{name}"
        );
        if let Some(unit) = &family.unit {
            assert!(name.ends_with(&format!("_{unit}")), "{name} in {unit}");
        }
        let suffixes: &[&str] = match family.kind.as_str() {
            "counter" => &["_total"],
            "gauge" => &[""],
            "info" => &["_info"],
            "histogram" => &["_bucket", "_sum", "_count"],
            other => panic!("{name} is {other}"),
        };
        assert!(!family.samples.is_empty(), "{name} has no samples");
        let mut series = BTreeSet::new();
        for (whole, labels, value) in &family.samples {
            let suffix = whole.strip_prefix(name.as_str()).unwrap();
            assert!(suffixes.contains(&suffix), "{whole} in {name}");
            assert!(*value >= 0.0, "{whole} {value}");
            assert!(series.insert((whole, labels)), "{whole} {labels:?} comes twice");
        }
    }
}

#[test]
fn buckets_only_grow_and_end_with_all() {
    let mut histograms = 0;
    for (name, family) in read(&page()).iter().filter(|(_, family)| family.kind == "histogram") {
        let mut series: BTreeMap<BTreeMap<String, String>, Vec<(f64, f64)>> = BTreeMap::new();
        let mut counts = BTreeMap::new();
        for (whole, labels, value) in &family.samples {
            let mut labels = labels.clone();
            let bound = labels.remove("le");
            match bound {
                Some(bound) => series.entry(labels).or_default().push((bound.parse().unwrap(), *value)),
                None if whole.ends_with("_count") => {
                    counts.insert(labels, *value);
                }
                None => {}
            }
        }
        assert_eq!(series.len(), counts.len(), "{name}");
        for (labels, buckets) in series {
            histograms += 1;
            assert!(buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{name} {labels:?} {buckets:?}");
            assert_eq!(buckets.last(), Some(&(f64::INFINITY, counts[&labels])), "{name} {labels:?}");
        }
    }
    assert!(histograms >= 5);
}

#[test]
fn labels_are_few_and_say_nothing_of_what_was_said_or_by_whom() {
    let page = page();
    assert!(!page.contains("zebra"), "a name or a text is in the page:\n{page}");
    let allowed = [
        "by",
        "decision",
        "direction",
        "how",
        "le",
        "outcome",
        "point",
        "reason",
        "state",
        "status",
        "trigger",
        "until",
        "urgency",
        "version",
    ];
    for family in read(&page).values() {
        for (whole, labels, _) in &family.samples {
            let unknown = labels.keys().filter(|key| !allowed.contains(&key.as_str()));
            assert_eq!(unknown.count(), 0, "{whole} {labels:?}");
        }
    }
}

#[test]
fn every_figure_is_in_the_operators_page() {
    let operations = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations.md");
    let operations = std::fs::read_to_string(operations).unwrap();
    let families = read(&page());
    let suffix = |kind: &str| match kind {
        "counter" => "_total",
        "info" => "_info",
        _ => "",
    };
    let names = families.iter().map(|(name, family)| format!("`{name}{}`", suffix(&family.kind)));
    let missing: Vec<_> = names.filter(|name| !operations.contains(name)).collect();
    assert!(missing.is_empty(), "docs/operations.md does not have {missing:?}");
}
