//! The page that Prometheus scrapes: OpenMetrics 1.0. Words of labels are our own, so nothing in
//! them has to be escaped.

use std::fmt::Display;

use super::figures::Word;
use super::spread::{Histogram, Spread};

/// A page as far as it is written.
#[derive(Default)]
pub(super) struct Page(String);

impl Page {
    /// Begins a figure.
    pub(super) fn head(&mut self, name: &str, kind: &str, help: &str) {
        self.0 += &format!("# HELP midturn_{name} {help}.\n# TYPE midturn_{name} {kind}\n");
    }

    /// A line of the figure that was begun last; a label without a name is none.
    pub(super) fn sample<'a>(
        &mut self,
        name: &str,
        labels: impl IntoIterator<Item = (&'a str, &'a str)>,
        value: impl Display,
    ) {
        let labels = labels.into_iter().filter(|(label, _)| !label.is_empty());
        let labels: Vec<String> = labels.map(|(label, word)| format!("{label}=\"{word}\"")).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        self.0 += &format!("midturn_{name}{labels} {value}\n");
    }

    /// A spread, and what was observed under which words.
    pub(super) fn spread(&mut self, spread: &Spread, observed: &[([Word; 2], &Histogram)]) {
        let Spread { name, unit, labels, bounds, help } = spread;
        if observed.is_empty() {
            return;
        }
        self.head(name, "histogram", help);
        self.0 += &format!("# UNIT midturn_{name} {unit}\n");
        for (words, histogram) in observed {
            let of = || labels.iter().copied().zip(*words);
            self.sample(&format!("{name}_sum"), of(), format!("{:?}", histogram.sum));
            self.sample(&format!("{name}_count"), of(), histogram.count());
            let bounds = bounds.iter().map(|bound| format!("{bound:?}")).chain(["+Inf".to_owned()]);
            let mut count = 0;
            for (bound, more) in bounds.zip(&histogram.counts) {
                count += more;
                self.sample(&format!("{name}_bucket"), [("le", &*bound)].into_iter().chain(of()), count);
            }
        }
    }

    /// The whole page.
    pub(super) fn end(self) -> String {
        self.0 + "# EOF\n"
    }
}
