//! The text format of Prometheus, version 0.0.4: families of samples, each with a help text and a type.

use std::fmt::{Display, Write};

/// The type of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows, until the node restarts.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts values by size.
    Histogram,
}

impl Kind {
    /// The name in the text format.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// A family: samples of one name.
#[derive(Debug)]
pub struct Family {
    /// The name, which ends with the unit.
    pub name: &'static str,
    /// The type.
    pub kind: Kind,
    /// The names of the labels.
    pub labels: &'static [&'static str],
    /// The help text.
    pub help: &'static str,
    /// The condition of an alert; empty if there is none.
    pub alert: &'static str,
}

/// The text that is being written.
#[derive(Debug, Default)]
pub struct Page(String);

/// Writes the samples of one family.
#[derive(Debug)]
pub struct Samples<'a> {
    text: &'a mut String,
    family: &'static Family,
}

impl Page {
    /// Begins a family. Each family may begin once.
    pub fn family(&mut self, family: &'static Family) -> Samples<'_> {
        let Family { name, kind, help, .. } = family;
        self.line(format_args!("# HELP {name} {}", help.replace('\\', "\\\\").replace('\n', "\\n")));
        self.line(format_args!("# TYPE {name} {}", kind.name()));
        Samples { text: &mut self.0, family }
    }

    /// A family of one sample without labels.
    pub fn single(&mut self, family: &'static Family, value: impl Display) {
        self.family(family).sample([], value);
    }

    /// The whole text.
    pub fn into_text(self) -> String {
        self.0
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a `String` cannot fail.
        let _ = writeln!(self.0, "{line}");
    }
}

impl Samples<'_> {
    /// A sample, with the values of the family's labels in their order.
    pub fn sample<const N: usize>(&mut self, labels: [&str; N], value: impl Display) -> &mut Self {
        self.line("", &labels, None, value);
        self
    }

    /// The samples of a histogram: the number of values up to each bound (in the family's unit) and above the
    /// previous bound, the number above all bounds, and the sum.
    pub fn histogram<const N: usize>(
        &mut self,
        labels: [&str; N],
        bounds: impl Iterator<Item = f64>,
        counts: &[u64],
        sum: f64,
    ) -> &mut Self {
        let mut total = 0;
        let bounds = bounds.map(|bound| bound.to_string()).chain(["+Inf".to_owned()]);
        for (bound, count) in bounds.zip(counts) {
            total += count;
            self.line("_bucket", &labels, Some(("le", &bound)), total);
        }
        self.line("_sum", &labels, None, sum);
        self.line("_count", &labels, None, total);
        self
    }

    fn line(&mut self, suffix: &str, labels: &[&str], last: Option<(&str, &str)>, value: impl Display) {
        debug_assert_eq!(labels.len(), self.family.labels.len(), "{}", self.family.name);
        self.text.push_str(self.family.name);
        self.text.push_str(suffix);
        let mut separator = '{';
        for (name, label) in self.family.labels.iter().copied().zip(labels.iter().copied()).chain(last) {
            let _ = write!(self.text, "{separator}{name}=\"{}\"", escaped(label));
            separator = ',';
        }
        let end = if separator == ',' { "}" } else { "" };
        let _ = writeln!(self.text, "{end} {value}");
    }
}

fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    static PLAIN: Family = Family {
        name: "plain_total",
        kind: Kind::Counter,
        labels: &[],
        help: "A \\ and\na line.",
        alert: "",
    };
    static LABELLED: Family =
        Family { name: "labelled", kind: Kind::Gauge, labels: &["a", "b"], help: "Two.", alert: "" };
    static SPREAD: Family =
        Family { name: "spread_seconds", kind: Kind::Histogram, labels: &["a"], help: "It.", alert: "" };

    #[test]
    fn a_page_is_spelled_as_the_format_wants_it() {
        let mut page = Page::default();
        page.single(&PLAIN, u64::MAX);
        page.family(&LABELLED).sample(["1", "q\"\\\n"], -1).sample(["2", "한글"], 0.5);
        page.family(&SPREAD).histogram(["x"], [0.001, 2.5].into_iter(), &[3, 0, 2], 7.25);
        assert_eq!(
            page.into_text(),
            "# HELP plain_total A \\\\ and\\na line.\n\
             # TYPE plain_total counter\n\
             plain_total 18446744073709551615\n\
             # HELP labelled Two.\n\
             # TYPE labelled gauge\n\
             labelled{a=\"1\",b=\"q\\\"\\\\\\n\"} -1\n\
             labelled{a=\"2\",b=\"한글\"} 0.5\n\
             # HELP spread_seconds It.\n\
             # TYPE spread_seconds histogram\n\
             spread_seconds_bucket{a=\"x\",le=\"0.001\"} 3\n\
             spread_seconds_bucket{a=\"x\",le=\"2.5\"} 3\n\
             spread_seconds_bucket{a=\"x\",le=\"+Inf\"} 5\n\
             spread_seconds_sum{a=\"x\"} 7.25\n\
             spread_seconds_count{a=\"x\"} 5\n"
        );
    }
}
