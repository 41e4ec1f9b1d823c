//! Ends the process at a fail point. `_MIDTURN_FAIL_POINT=NAME:N` ends it when NAME is passed the
//! N-th time (1 without `:N`).

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use midturn_core::fail::{AT_EACH, POINTS};

/// The variable that names the point. It is no setting, so its name begins otherwise.
const VARIABLE: &str = "_MIDTURN_FAIL_POINT";

struct Armed {
    name: &'static str,
    left: AtomicU32,
}

static ARMED: OnceLock<Armed> = OnceLock::new();

/// Arms the point that is named, if one is.
pub(crate) fn arm() {
    if let Some(armed) = std::env::var(VARIABLE).ok().and_then(|text| parse(&text)) {
        ARMED.get_or_init(|| armed);
        AT_EACH.get_or_init(|| passed);
    }
}

fn passed(name: &'static str) {
    let ends = |armed: &Armed| armed.name == name && armed.left.fetch_sub(1, Ordering::Relaxed) == 1;
    if ARMED.get().is_some_and(ends) {
        // No destructor, no flush: the next process finds what is there.
        std::process::abort();
    }
}

fn parse(text: &str) -> Option<Armed> {
    let (name, pass) = text.split_once(':').unwrap_or((text, "1"));
    let name = POINTS.iter().find(|point| **point == name)?;
    Some(Armed { name, left: AtomicU32::new(pass.parse().ok().filter(|pass| *pass > 0)?) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_armed_by_its_name_and_the_pass_that_ends_the_process() {
        let read = |text| parse(text).map(|armed| (armed.name, armed.left.into_inner()));
        assert_eq!(read("told"), Some(("told", 1)));
        assert_eq!(read("durable:7"), Some(("durable", 7)));
        for none in ["", "nowhere:1", "told:0", "told:x"] {
            assert_eq!(read(none), None, "{none}");
        }
    }
}
