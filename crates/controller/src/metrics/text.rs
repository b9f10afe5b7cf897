//! The text format of Prometheus, as far as it is needed: families of gauges, counters and histograms.

/// What sort of numbers a family has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    /// Goes up and down.
    Gauge,
    /// Only goes up.
    Counter,
    /// Counts by size.
    Histogram,
}

impl Sort {
    fn as_str(self) -> &'static str {
        match self {
            Self::Gauge => "gauge",
            Self::Counter => "counter",
            Self::Histogram => "histogram",
        }
    }
}

/// Labels of a sample, in the order in which they are shown.
pub(super) type Labels<'a> = &'a [(&'a str, &'a str)];

/// A page of samples.
#[derive(Debug, Default)]
pub(super) struct Page(String);

impl Page {
    /// Begins a family. What follows until the next one is of it.
    pub(super) fn family(&mut self, name: &str, sort: Sort, help: &str) {
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {}", sort.as_str()));
    }

    /// A whole number.
    pub(super) fn sample(&mut self, name: &str, labels: Labels<'_>, value: u64) {
        self.line(format_args!("{name}{} {value}", shown(labels)));
    }

    /// Durations, counted by how long they were.
    pub(super) fn histogram(&mut self, name: &str, labels: Labels<'_>, histogram: &Histogram) {
        let mut below = 0;
        for (bound, count) in histogram.bounds.iter().zip(&histogram.counts) {
            below += count;
            let bound = seconds(*bound);
            let labels: Vec<_> = labels.iter().copied().chain([("le", bound.as_str())]).collect();
            self.sample(&format!("{name}_bucket"), &labels, below);
        }
        let labels_of_all: Vec<_> = labels.iter().copied().chain([("le", "+Inf")]).collect();
        self.sample(&format!("{name}_bucket"), &labels_of_all, histogram.count);
        self.line(format_args!("{name}_sum{} {}", shown(labels), seconds(histogram.sum_millis)));
        self.sample(&format!("{name}_count"), labels, histogram.count);
    }

    pub(super) fn text(self) -> String {
        self.0
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        self.0.push_str(&line.to_string());
        self.0.push('\n');
    }
}

/// Durations, counted by how long they were.
#[derive(Debug, Clone)]
pub(super) struct Histogram {
    bounds: &'static [u64],
    counts: Vec<u64>,
    count: u64,
    sum_millis: u64,
}

impl Histogram {
    /// Nothing counted yet. The bounds are in milliseconds, and rise.
    pub(super) fn new(bounds: &'static [u64]) -> Self {
        Self { bounds, counts: vec![0; bounds.len()], count: 0, sum_millis: 0 }
    }

    /// Counts one.
    pub(super) fn observe(&mut self, millis: u64) {
        let place = self.bounds.iter().position(|bound| millis <= *bound);
        if let Some(count) = place.and_then(|place| self.counts.get_mut(place)) {
            *count += 1;
        }
        self.count += 1;
        self.sum_millis = self.sum_millis.saturating_add(millis);
    }
}

/// Milliseconds in seconds, which is the unit of all durations.
fn seconds(millis: u64) -> String {
    let (whole, rest) = (millis / 1_000, millis % 1_000);
    if rest == 0 { whole.to_string() } else { format!("{whole}.{rest:03}").trim_end_matches('0').to_owned() }
}

fn shown(labels: Labels<'_>) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let pairs: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    format!("{{{}}}", pairs.join(","))
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_escaped_and_histograms_add_up() {
        let mut page = Page::default();
        page.family("a", Sort::Gauge, "What it is.");
        page.sample("a", &[("of", "x\"y\\z\n")], 1);
        let mut histogram = Histogram::new(&[10, 60_000]);
        for millis in [0, 2_050, 61_000] {
            histogram.observe(millis);
        }
        page.histogram("b_seconds", &[("of", "x")], &histogram);
        let expected = [
            "# HELP a What it is.",
            "# TYPE a gauge",
            r#"a{of="x\"y\\z\n"} 1"#,
            r#"b_seconds_bucket{of="x",le="0.01"} 1"#,
            r#"b_seconds_bucket{of="x",le="60"} 2"#,
            r#"b_seconds_bucket{of="x",le="+Inf"} 3"#,
            r#"b_seconds_sum{of="x"} 63.05"#,
            r#"b_seconds_count{of="x"} 3"#,
        ];
        assert_eq!(page.text().lines().collect::<Vec<_>>(), expected);
    }
}
