//! The picture in letters, for terminals and logs.

use std::fmt::Write;

use jiff::{SignedDuration, Timestamp};

use super::rows::{self, Mark, Row, Segment, Sign, State};
use crate::timeline::Timeline;
use crate::timeline::render::elapsed;

/// Room for names, to the left.
const NAME_WIDTH: usize = 34;
/// The least room for time: fewer columns say nothing.
const PLOT_MIN: usize = 20;

impl Timeline {
    /// The timeline as a picture of letters, so many columns wide: a line for each stage and each machine, with time from
    /// left to right.
    pub fn chart(&self, width: usize) -> String {
        let plot = width.saturating_sub(NAME_WIDTH + 2).max(PLOT_MIN);
        let end = self.events.last().map_or(self.from, |event| event.at).max(self.from);
        let scale = Scale { from: self.from, span: end.duration_since(self.from), plot };
        let mut text = format!("{:NAME_WIDTH$}  {}\n", "", scale.axis());
        for group in rows::groups(self) {
            put(&mut text, format_args!("{}", group.title));
            for row in group.rows.iter().filter(|row| !row.segments.is_empty() || row.marks.iter().any(is_drawn)) {
                put(
                    &mut text,
                    format_args!("  {:width$}  {}", name(&row.label), scale.line(row), width = NAME_WIDTH - 2),
                );
            }
        }
        text.push_str("\n█ ready  ▓ ready, of an older version  ░ coming  ▒ not ready  · going  ━ stage  ◆ etcd  ! violation or alarm\n");
        text
    }
}

/// From times to columns.
struct Scale {
    from: Timestamp,
    span: SignedDuration,
    plot: usize,
}

impl Scale {
    fn column(&self, at: Timestamp) -> usize {
        let whole = self.span.as_millis().max(1);
        let passed = at.duration_since(self.from).as_millis().clamp(0, whole);
        let last = self.plot.saturating_sub(1);
        // The quotient is no more than `last`.
        usize::try_from(passed * i128::try_from(last).unwrap_or_default() / whole).unwrap_or(last)
    }

    /// The beginning, the middle and the end.
    fn axis(&self) -> String {
        let middle = elapsed(self.span / 2);
        let end = elapsed(self.span);
        let half = self.plot / 2;
        let rest = self.plot.saturating_sub(half + middle.len());
        format!("{:half$}{middle}{end:>rest$}", elapsed(SignedDuration::ZERO))
    }

    fn line(&self, row: &Row) -> String {
        let mut letters = vec![' '; self.plot];
        for Segment { from, to, state, .. } in &row.segments {
            let (first, last) = (self.column(*from), self.column(*to));
            letters[first..=last.max(first)].fill(letter(*state));
        }
        for mark in &row.marks {
            if let Some(sign) = sign(mark.sign) {
                letters[self.column(mark.at)] = sign;
            }
        }
        letters.iter().collect::<String>().trim_end().to_owned()
    }
}

fn letter(state: State) -> char {
    match state {
        State::Stage => '━',
        State::Coming => '░',
        State::There => '█',
        State::Older => '▓',
        State::Unready => '▒',
        State::Going => '·',
    }
}

fn is_drawn(mark: &Mark) -> bool {
    sign(mark.sign).is_some()
}

/// Evictions and exceptions are too many for letters.
fn sign(sign: Sign) -> Option<char> {
    match sign {
        Sign::Member | Sign::Leader => Some('◆'),
        Sign::Alarm | Sign::Violation => Some('!'),
        Sign::Eviction | Sign::Exempted => None,
    }
}

/// The end of a name tells it from others.
fn name(label: &str) -> String {
    let width = NAME_WIDTH - 2;
    let length = label.chars().count();
    if length <= width {
        label.to_owned()
    } else {
        format!("…{}", label.chars().skip(length + 1 - width).collect::<String>())
    }
}

/// Writing to a text cannot fail.
fn put(text: &mut String, line: std::fmt::Arguments<'_>) {
    if writeln!(text, "{line}").is_err() {
        text.push('\n');
    }
}
