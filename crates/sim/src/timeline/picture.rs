//! A timeline as a picture: a line for each stage and each machine, with time from left to right, as SVG.
//!
//! ```text
//! default/my-tkc           0:00      0:05      0:10
//!   packages               ▂▂
//!   control plane             ▂▂▂▂▂▂▂▂▂
//!   workers                            ▂▂▂▂▂▂▂▂
//! control plane
//!   my-tkc-cp-0            ██████████░░
//!   my-tkc-cp-0-1             ▒▒▒▒▒▒██████████████
//! ```
//! The picture has no script and refers to nothing outside of it. What a mark or a bar stands for is in its `title`, which
//! browsers show when it is pointed at.

mod plain;
mod rows;

use std::fmt::Write;

use jiff::{SignedDuration, Timestamp};

use self::rows::{Group, Mark, Row, Segment, Sign, State};
use super::Timeline;
use super::render::elapsed;

/// Room for names, to the left.
const GUTTER: f64 = 340.0;
/// Room for time.
const PLOT: f64 = 960.0;
const MARGIN: f64 = 16.0;
/// Room for the half of the last time that stands over the edge.
const EDGE: f64 = 20.0;
const ROW_HEIGHT: f64 = 18.0;
const BAR_HEIGHT: f64 = 10.0;
/// Above a group: its name.
const TITLE_HEIGHT: f64 = 26.0;
/// Above everything: times. Below: what the colours mean.
const AXIS_HEIGHT: f64 = 24.0;
const LEGEND_HEIGHT: f64 = 34.0;
/// More names of times than this would run into each other.
const TICKS_MAX: i64 = 10;
/// Names that are longer are cut: so many letters fit into the gutter.
const NAME_MAX: usize = 42;

/// Steps between times that people can add up, in seconds.
const STEPS: [i64; 16] = [1, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400];

const STYLE: &str = "\
text{font:12px system-ui,sans-serif;fill:#24292f}\
.group{font-weight:600}.time{font-size:11px;fill:#6e7781}.back{fill:#fff}\
.grid{stroke:#d8dee4;stroke-width:1}.stage{fill:#8250df}.coming{fill:#a8c7fa}.there{fill:#1a7f37}.older{fill:#7ab88a}\
.unready{fill:#d4a72c}.going{fill:#afb8c1}.member{fill:#0550ae;stroke:#fff}.leader{fill:#8250df;stroke:#fff}.eviction{fill:#bc4c00}\
.exempted{fill:#d4a72c}.violation{fill:#cf222e}.alarm{fill:#cf222e}\
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.time{fill:#8d96a0}.back{fill:#0d1117}.grid{stroke:#30363d}\
.there{fill:#3fb950}.older{fill:#28663a}.coming{fill:#2f5d9e}.going{fill:#484f58}.member{fill:#79c0ff}}";

impl Timeline {
    /// The timeline as a picture, in SVG: lines for stages and machines, of each cluster in it.
    pub fn svg(&self) -> String {
        let groups = rows::groups(self);
        let end = self.events.last().map_or(self.from, |event| event.at).max(self.from);
        let rows: usize = groups.iter().map(|group| group.rows.len()).sum();
        let body = ROW_HEIGHT * count(rows) + TITLE_HEIGHT * count(groups.len());
        let height = MARGIN * 2.0 + AXIS_HEIGHT + body + LEGEND_HEIGHT;
        let width = MARGIN * 2.0 + GUTTER + PLOT + EDGE;
        let mut canvas = Canvas { svg: String::new(), from: self.from, span: end.duration_since(self.from) };
        canvas.put(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
             height=\"{height:.0}\" role=\"img\"><title>What happened, and when</title><style>{STYLE}</style>\
             <rect class=\"back\" width=\"{width:.0}\" height=\"{height:.0}\"/>"
        ));
        canvas.axis(MARGIN + AXIS_HEIGHT, body);
        let mut y = MARGIN + AXIS_HEIGHT;
        for group in &groups {
            y = canvas.group(group, y);
        }
        canvas.legend(y + LEGEND_HEIGHT * 0.6);
        canvas.put(format_args!("</svg>\n"));
        canvas.svg
    }
}

/// What is drawn on.
struct Canvas {
    svg: String,
    from: Timestamp,
    span: SignedDuration,
}

impl Canvas {
    /// Writing to a text cannot fail.
    fn put(&mut self, part: std::fmt::Arguments<'_>) {
        if self.svg.write_fmt(part).is_err() {
            self.svg.push('\n');
        }
    }

    /// Where a time is, from left to right.
    fn x(&self, at: Timestamp) -> f64 {
        let whole = self.span.as_secs_f64().max(1.0);
        let part = at.duration_since(self.from).as_secs_f64() / whole;
        MARGIN + GUTTER + PLOT * part.clamp(0.0, 1.0)
    }

    fn axis(&mut self, top: f64, height: f64) {
        let seconds = self.span.as_secs();
        let step = STEPS.into_iter().find(|step| seconds / step <= TICKS_MAX).unwrap_or(seconds / TICKS_MAX + 1);
        let mut second = 0;
        while second <= seconds {
            let after = SignedDuration::from_secs(second);
            let Ok(at) = self.from.checked_add(after) else { return };
            let (x, bottom, name) = (self.x(at), top + height, elapsed(after));
            self.put(format_args!(
                "<line class=\"grid\" x1=\"{x:.1}\" y1=\"{top:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\"/>\
                 <text class=\"time\" text-anchor=\"middle\" x=\"{x:.1}\" y=\"{:.1}\">{name}</text>",
                top - 8.0
            ));
            second += step;
        }
    }

    /// Draws a group, and says where the next begins.
    fn group(&mut self, group: &Group, top: f64) -> f64 {
        let title = escaped(&group.title);
        self.put(format_args!(
            "<text class=\"group\" x=\"{MARGIN:.1}\" y=\"{:.1}\">{title}</text>",
            top + TITLE_HEIGHT - 8.0
        ));
        let mut y = top + TITLE_HEIGHT;
        for row in &group.rows {
            self.row(row, y);
            y += ROW_HEIGHT;
        }
        y
    }

    fn row(&mut self, row: &Row, top: f64) {
        let middle = top + ROW_HEIGHT / 2.0;
        let name = escaped(&cut(&row.label));
        self.put(format_args!("<text x=\"{:.1}\" y=\"{:.1}\">{name}</text>", MARGIN + 12.0, middle + 4.0));
        for Segment { from, to, state, title } in &row.segments {
            let (left, right) = (self.x(*from), self.x(*to));
            // What is over in an instant is still to be seen.
            let width = (right - left).max(1.5);
            let (class, title) = (state.class(), escaped(title));
            self.put(format_args!(
                "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{BAR_HEIGHT:.1}\" \
                 rx=\"2\"><title>{title}</title></rect>",
                middle - BAR_HEIGHT / 2.0
            ));
        }
        for Mark { at, sign, title } in &row.marks {
            let x = self.x(*at);
            self.mark(*sign, x, middle, title);
        }
    }

    fn mark(&mut self, sign: Sign, x: f64, y: f64, title: &str) {
        let (class, title) = (sign.class(), escaped(title));
        let size = 5.0;
        let (up, down, left, right) = (y - size, y + size, x - size, x + size);
        match sign {
            Sign::Member | Sign::Leader => self.put(format_args!(
                "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"><title>{title}</title></circle>"
            )),
            Sign::Eviction => self.put(format_args!(
                "<path class=\"{class}\" d=\"M{left:.1} {up:.1}L{right:.1} {up:.1}L{x:.1} {down:.1}Z\">\
                 <title>{title}</title></path>"
            )),
            Sign::Exempted | Sign::Violation | Sign::Alarm => self.put(format_args!(
                "<path class=\"{class}\" d=\"M{x:.1} {up:.1}L{right:.1} {y:.1}L{x:.1} {down:.1}L{left:.1} {y:.1}Z\">\
                 <title>{title}</title></path>"
            )),
        }
    }

    /// What the colours mean.
    fn legend(&mut self, y: f64) {
        let mut x = MARGIN;
        for (state, text) in State::LEGEND {
            let class = state.class();
            self.put(format_args!(
                "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{:.1}\" width=\"14\" height=\"{BAR_HEIGHT:.1}\" rx=\"2\"/>\
                 <text class=\"time\" x=\"{:.1}\" y=\"{:.1}\">{text}</text>",
                y - BAR_HEIGHT / 2.0,
                x + 20.0,
                y + 4.0
            ));
            x += 20.0 + room(text);
        }
        for (sign, text) in Sign::LEGEND {
            self.mark(sign, x + 7.0, y, text);
            self.put(format_args!("<text class=\"time\" x=\"{:.1}\" y=\"{:.1}\">{text}</text>", x + 20.0, y + 4.0));
            x += 20.0 + room(text);
        }
    }
}

/// About as much as a text needs, with some air.
fn room(text: &str) -> f64 {
    count(text.chars().count()) * 6.2 + 18.0
}

/// Numbers of rows and letters are small.
fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

/// A name that fits, with its end, which tells machines apart.
fn cut(name: &str) -> String {
    let letters = name.chars().count();
    if letters <= NAME_MAX {
        return name.to_owned();
    }
    let end: String = name.chars().skip(letters - NAME_MAX + 1).collect();
    format!("…{end}")
}

/// A text as XML and HTML have it, in content and in attributes between double quotes.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // Nothing but these three of what cannot be seen may stand in XML.
            letter if letter.is_control() && !matches!(letter, '\t' | '\n' | '\r') => escaped.push(' '),
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests;
