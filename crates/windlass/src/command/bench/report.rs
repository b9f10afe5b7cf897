//! Figures: one measure on several servers, several times, with what it means when they are set side by side.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde::Serialize;

use super::measure;
/// Whose server it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Server {
    /// Ours.
    Windlass,
    /// etcd alone, which knows no objects.
    Etcd,
    /// kube-apiserver on etcd.
    KubeApiserver,
}

impl Server {
    /// As people know it.
    pub fn shown(self) -> &'static str {
        match self {
            Self::Windlass => "windlass",
            Self::Etcd => "etcd alone",
            Self::KubeApiserver => "kube-apiserver + etcd",
        }
    }
}

/// What a figure counts. Of some of them less is better, of others more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    Seconds,
    Bytes,
    /// Lost writes, of which there should be none.
    Losses,
    PerSecond,
    PerCpuSecond,
    /// A part of one core.
    Share,
    Requests,
}

impl Unit {
    fn more_is_better(self) -> bool {
        matches!(self, Self::PerSecond | Self::PerCpuSecond)
    }

    fn show(self, value: f64) -> String {
        match self {
            Self::Seconds if value < 1e-3 => format!("{:.1} µs", value * 1e6),
            Self::Seconds if value < 1.0 => format!("{:.2} ms", value * 1e3),
            Self::Seconds => format!("{value:.2} s"),
            Self::Bytes if value < 1e5 => format!("{} B", grouped(value)),
            Self::Bytes => format!("{:.1} MB", value / 1e6),
            Self::Share => format!("{:.2} %", value * 100.0),
            Self::Requests if value < 1e3 => format!("{value:.1}"),
            Self::Losses | Self::PerSecond | Self::PerCpuSecond | Self::Requests => grouped(value),
        }
    }
}

/// What a figure should be: so much by itself, or so many times better than that of another server.
#[derive(Debug, Clone, Copy, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Aim {
    AtMost(f64),
    AtLeast(f64),
    TimesBetter { than: Server, times: f64 },
}

/// One measure, on every server that it was taken on.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Figure {
    /// Its number in docs/performance.md.
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<&'static str>,
    measure: String,
    unit: Unit,
    aims: Vec<Aim>,
    servers: BTreeMap<Server, Taken>,
    /// Servers that it was to be compared with, and that are not here.
    not_compared: Vec<Server>,
    /// Nobody else could be measured so.
    #[serde(skip)]
    is_alone: bool,
}

/// What was measured on one server.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Taken {
    median: f64,
    best: f64,
    worst: f64,
    /// Each round, as they came.
    rounds: Vec<f64>,
    /// How many times better ours is, by medians.
    #[serde(skip_serializing_if = "Option::is_none")]
    ours_is_better: Option<f64>,
}

impl Figure {
    /// A measure that was not taken yet.
    pub fn new(number: Option<&'static str>, measure: impl Into<String>, unit: Unit) -> Self {
        let (measure, servers) = (measure.into(), BTreeMap::new());
        Self { number, measure, unit, aims: Vec::new(), servers, not_compared: Vec::new(), is_alone: false }
    }

    /// What it should be.
    pub fn aim(mut self, aim: Aim) -> Self {
        self.aims.push(aim);
        self
    }

    /// It is about what only ours does, such as to be used without a process of its own: no server is set beside another.
    pub fn alone(mut self) -> Self {
        self.is_alone = true;
        self
    }

    /// One more round on a server.
    pub fn push(&mut self, server: Server, value: f64) {
        let start = Taken { median: 0.0, best: 0.0, worst: 0.0, rounds: Vec::new(), ours_is_better: None };
        self.servers.entry(server).or_insert(start).rounds.push(value);
    }

    /// All rounds on a server at once.
    pub fn all(mut self, server: Server, values: impl IntoIterator<Item = f64>) -> Self {
        values.into_iter().for_each(|value| self.push(server, value));
        self
    }

    /// Takes medians and ratios, when all rounds are there.
    fn finish(&mut self, compared: &[Server]) {
        let better = self.unit.more_is_better();
        for taken in self.servers.values_mut() {
            let mut sorted = taken.rounds.clone();
            sorted.sort_by(f64::total_cmp);
            let (Some(&least), Some(&most)) = (sorted.first(), sorted.last()) else { continue };
            (taken.best, taken.worst) = if better { (most, least) } else { (least, most) };
            taken.median = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
        }
        let Some(ours) = self.servers.get(&Server::Windlass).map(|taken| taken.median) else { return };
        for (server, taken) in &mut self.servers {
            let ratio = if better { ours / taken.median } else { taken.median / ours };
            let is_compared = *server != Server::Windlass && !self.is_alone;
            taken.ours_is_better = (is_compared && ratio.is_finite()).then_some(ratio);
        }
        let missing = compared.iter().filter(|server| !self.is_alone && !self.servers.contains_key(server));
        self.not_compared = missing.copied().collect();
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let mut rows: Vec<Vec<String>> = Vec::new();
        for (server, taken) in &self.servers {
            let shown = [taken.median, taken.best, taken.worst].map(|value| self.unit.show(value));
            let mut row = vec![String::new(), String::new(), server.shown().to_owned()];
            row.extend(shown);
            row.push(taken.ours_is_better.map(|ratio| format!("{ratio:.1}")).unwrap_or_default());
            row.push(
                self.aims.iter().filter_map(|aim| self.verdict(*aim, *server, taken)).collect::<Vec<_>>().join(", "),
            );
            rows.push(row);
        }
        for server in &self.not_compared {
            let mut row = vec![String::new(), String::new(), server.shown().to_owned(), "not compared".to_owned()];
            row.resize(8, String::new());
            rows.push(row);
        }
        if let Some([number, measure, ..]) = rows.first_mut().map(Vec::as_mut_slice) {
            self.number.unwrap_or_default().clone_into(number);
            measure.clone_from(&self.measure);
        }
        rows
    }

    /// What was aimed at on a server, and whether it is so.
    fn verdict(&self, aim: Aim, server: Server, taken: &Taken) -> Option<String> {
        let (words, is_met) = match aim {
            Aim::AtMost(value) => (format!("≤ {}", self.unit.show(value)), taken.median <= value),
            Aim::AtLeast(value) => (format!("≥ {}", self.unit.show(value)), taken.median >= value),
            Aim::TimesBetter { times, .. } => (format!("≥ {times}"), taken.ours_is_better? >= times),
        };
        let of = match aim {
            Aim::TimesBetter { than, .. } => than,
            Aim::AtMost(_) | Aim::AtLeast(_) if self.is_alone => server,
            Aim::AtMost(_) | Aim::AtLeast(_) => Server::Windlass,
        };
        (of == server).then(|| format!("{words} {}", if is_met { "✔" } else { "✖ missed" }))
    }
}

/// Figures that belong together.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Section {
    title: String,
    figures: Vec<Figure>,
    /// What is to be known of them.
    notes: Vec<String>,
}

impl Section {
    /// A section; what it should have been compared with and is not will be said.
    pub fn new(title: &str, mut figures: Vec<Figure>, compared: &[Server]) -> Self {
        for figure in &mut figures {
            figure.finish(compared);
        }
        Self { title: title.to_owned(), figures, notes: Vec::new() }
    }

    /// A line below the table.
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }
}

/// All that was measured.
#[derive(Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    machine: String,
    /// The load of the machine before and after, over a minute, five and fifteen.
    load: Vec<String>,
    /// The version of each server, where it is known.
    versions: BTreeMap<Server, String>,
    /// Whether the figures can be relied upon, and why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
    sections: Vec<Section>,
}

impl Report {
    /// Nothing was measured yet.
    pub fn new(is_quick: bool) -> Self {
        let mut warnings = Vec::new();
        if cfg!(debug_assertions) {
            warnings.push("this is a debug build: its figures mean nothing");
        }
        if is_quick {
            warnings.push("a small part was measured: its figures mean nothing");
        }
        Self {
            machine: measure::machine(),
            load: vec![measure::load()],
            versions: versions(),
            warning: (!warnings.is_empty()).then(|| warnings.join("; ")),
            sections: Vec::new(),
        }
    }

    /// Something was measured.
    pub fn add(&mut self, section: Section) {
        self.sections.push(section);
    }

    /// All was measured.
    pub fn end(&mut self) {
        self.load.push(measure::load());
    }

    /// For people: tables in Markdown, as docs/performance.md has them.
    pub fn text(&self) -> String {
        let mut lines = vec![format!("Machine: {}. Load: {}.", self.machine, self.load.join(", then "))];
        lines.extend(self.versions.iter().map(|(server, version)| format!("{}: {version}.", server.shown())));
        lines.extend(self.warning.iter().map(|warning| format!("Warning: {warning}.")));
        for section in &self.sections {
            let rows = section.figures.iter().flat_map(Figure::rows).collect::<Vec<_>>();
            let columns = ["#", "measure", "server", "median", "best", "worst", "ours is better by", "aim"];
            lines.push(format!("\n### {}\n\n{}\n", section.title, markdown(&columns, &rows)));
            lines.extend(section.notes.iter().map(|note| format!("- {note}")));
        }
        lines.join("\n")
    }
}

/// What each server says of itself.
fn versions() -> BTreeMap<Server, String> {
    let ask = |program: &Path| {
        let output = Command::new(program).arg("--version").output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).lines().next()?.trim().to_owned())
    };
    let mut versions = BTreeMap::from([(Server::Windlass, format!("windlass {}", env!("CARGO_PKG_VERSION")))]);
    if let Some(said) = windlass_reference::installed("etcd").as_deref().and_then(ask) {
        versions.insert(Server::Etcd, said);
    }
    if let Some(said) = windlass_reference::assets().and_then(|assets| ask(&assets.join("kube-apiserver"))) {
        versions.insert(Server::KubeApiserver, said);
    }
    versions
}

fn markdown(columns: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells =
            rows.iter().filter_map(|row| row.get(column).map(String::as_str)).chain(columns.get(column).copied());
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded = cells.zip(&widths).map(|(cell, width)| format!(" {cell:<width$} ")).collect::<Vec<_>>();
        format!("|{}|", padded.join("|"))
    };
    let head = line(&mut columns.iter().copied());
    let rules = widths.iter().map(|width| "-".repeat(width + 2)).collect::<Vec<_>>();
    let body = rows.iter().map(|row| line(&mut row.iter().map(String::as_str)));
    let mut lines = vec![head, format!("|{}|", rules.join("|"))];
    lines.extend(body);
    lines.join("\n")
}

/// A number, with its thousands apart.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(unit: Unit, aim: Aim) -> String {
        let mut figure = Figure::new(Some("Q0"), "m", unit).aim(aim);
        figure = figure.all(Server::Windlass, [3.0, 1.0, 2.0]).all(Server::Etcd, [8.0, 4.0, 6.0]);
        Report { sections: vec![Section::new("t", vec![figure], &[Server::KubeApiserver])], ..Report::new(true) }.text()
    }

    #[test]
    fn a_ratio_says_how_many_times_better_ours_is_and_what_is_missing_is_said() {
        let check = |text: &str, line: &str| {
            let squeezed: Vec<String> =
                text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
            assert!(squeezed.iter().any(|found| found == line), "{text}\nhas no line\n{line}");
        };
        let times = |times| Aim::TimesBetter { than: Server::Etcd, times };
        let less = taken(Unit::Losses, times(3.0));
        check(&less, "| Q0 | m | windlass | 2 | 1 | 3 | | |");
        check(&less, "| | | etcd alone | 6 | 4 | 8 | 3.0 | ≥ 3 ✔ |");
        check(&less, "| | | kube-apiserver + etcd | not compared | | | | |");
        let more = taken(Unit::PerSecond, times(1.0));
        check(&more, "| Q0 | m | windlass | 2 | 3 | 1 | | |");
        check(&more, "| | | etcd alone | 6 | 8 | 4 | 0.3 | ≥ 1 ✖ missed |");
        check(&taken(Unit::Losses, Aim::AtMost(1.0)), "| Q0 | m | windlass | 2 | 1 | 3 | | ≤ 1 ✖ missed |");
    }

    #[test]
    fn numbers_are_read_at_a_glance() {
        let check = |unit: Unit, value: f64, text: &str| assert_eq!(unit.show(value), text);
        check(Unit::Seconds, 0.000_123_4, "123.4 µs");
        check(Unit::Seconds, 0.012, "12.00 ms");
        check(Unit::Seconds, 12.0, "12.00 s");
        check(Unit::Bytes, 1_694.0, "1,694 B");
        check(Unit::Bytes, 11_900_000.0, "11.9 MB");
        check(Unit::PerCpuSecond, 1_267_049.0, "1,267,049");
        check(Unit::Share, 0.012_34, "1.23 %");
        check(Unit::Requests, 12.34, "12.3");
        check(Unit::Requests, 1_234.5, "1,234");
    }
}
