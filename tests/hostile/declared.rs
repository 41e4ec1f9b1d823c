//! The gaps that `docs/security.md` declares: what is found in a tier and stands there is no
//! failure, and what stands there and is not found any more is one.

use midturn_tests::root;

use crate::daemon::Tier;
use crate::play::Place;

/// What may be found.
struct Gap {
    /// What is told of a file that was changed: the first word of it.
    change: &'static str,
    tier: Tier,
    namespaces: bool,
    /// In "What is weaker than you would think".
    sentence: &'static str,
}

/// Landlock has no right for it, and a filter of system calls sees no paths; to refuse the calls
/// altogether would refuse them to linkers and `cp` too.
const OF_A_FILE: &str = "**Landlock alone** does not govern changes of mode, owner, times and attributes of files \
     that are yours, hidden ones too";

/// All of them. None but for Landlock without namespaces.
const GAPS: [Gap; 2] = [
    Gap { change: "mode", tier: Tier::Landlock, namespaces: false, sentence: OF_A_FILE },
    Gap { change: "times", tier: Tier::Landlock, namespaces: false, sentence: OF_A_FILE },
];

/// What of it is a failure. `all` programs were played: then every gap of the place has to show.
pub(crate) fn undeclared(place: Place, found: Vec<String>, all: bool) -> Vec<String> {
    let gaps: Vec<&Gap> =
        GAPS.iter().filter(|gap| gap.tier == place.tier && gap.namespaces == place.namespaces).collect();
    let is_declared = |found: &String| {
        changes(found)
            .is_some_and(|changes| changes.iter().all(|change| gaps.iter().any(|gap| gap.change == *change)))
    };
    let (declared, mut failures): (Vec<String>, Vec<String>) = found.into_iter().partition(is_declared);
    for gap in gaps {
        let shows = declared.iter().any(|found| changes(found).unwrap_or_default().contains(&gap.change));
        if !shows && all {
            failures.push(format!(
                "nothing changed the {} of a file: close the gap in tests/hostile/declared.rs, and the sentence in \
                 docs/security.md: {:?}",
                gap.change, gap.sentence
            ));
        }
    }
    failures
}

/// What was changed about a file, if that is what was found.
fn changes(found: &str) -> Option<Vec<&str>> {
    let (_, changes) = found.rsplit_once(" was changed: ")?;
    changes.split("; ").map(|change| change.split_whitespace().next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONE: Place = Place { tier: Tier::Landlock, user: Some(1), namespaces: false };

    fn left(place: Place, found: &[&str], all: bool) -> Vec<String> {
        undeclared(place, found.iter().map(|found| (*found).to_owned()).collect(), all)
    }

    #[test]
    fn a_gap_is_declared_where_people_read_it() {
        let text = std::fs::read_to_string(root().join("docs/security.md")).unwrap();
        let (_, weaker) = text.split_once("## What is weaker than you would think").unwrap();
        let (weaker, _) = weaker.split_once("\n## ").unwrap();
        let text = weaker.split_whitespace().collect::<Vec<_>>().join(" ");
        for gap in GAPS {
            assert!(text.contains(gap.sentence), "{} is not in docs/security.md", gap.sentence);
        }
    }

    #[test]
    fn only_what_is_declared_for_a_place_is_no_failure() {
        let mode = "writes-outside: /f was changed: mode 100777, was 100644; times";
        assert!(left(ALONE, &[mode], true).is_empty());
        for other in [
            "a: /f was changed: mode 100777, was 100644; content; times",
            "a: /f was changed: owner (1, 1), was (0, 0)",
            "a: /f is new",
            "a: /mode was changed: ",
        ] {
            assert_eq!(left(ALONE, &[mode, other], true), [other]);
        }
        for place in [Place { namespaces: true, ..ALONE }, Place { tier: Tier::Bubblewrap, ..ALONE }] {
            assert_eq!(left(place, &[mode], true), [mode]);
            assert!(left(place, &[], true).is_empty());
        }
    }

    #[test]
    fn a_gap_that_does_not_show_any_more_is_to_be_closed() {
        let left = |all| left(ALONE, &["a: /f was changed: times"], all);
        assert!(left(true).len() == 1 && left(true)[0].contains("the mode of a file: close the gap"));
        assert!(left(false).is_empty());
    }
}
