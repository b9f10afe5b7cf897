//! A report as a picture: the verdict, what stands in the way, and the lanes of the run that is told of, as SVG.

use windlass_sim::timeline::escaped;

use super::Report;

/// As wide as the lanes are.
const WIDTH: usize = 1312;
const MARGIN: usize = 16;
const LINE: usize = 20;
/// Longer lines are broken: so many letters fit.
const LETTERS_MAX: usize = 150;
/// No more lines than these are told of each section.
const LINES_MAX: usize = 8;

const STYLE: &str = "\
.page{fill:#fff}.told{font:13px ui-monospace,monospace;fill:#24292f}.head{font:600 17px system-ui,sans-serif;fill:#24292f}\
.title{font:600 14px system-ui,sans-serif;fill:#24292f}\
.good{fill:#1a7f37}.bad{fill:#cf222e}\
@media (prefers-color-scheme:dark){.page{fill:#0d1117}.told,.head,.title{fill:#e6edf3}.good{fill:#3fb950}.bad{fill:#f85149}}";

impl Report {
    /// The report as a picture. It has no script and refers to nothing outside of it.
    pub fn picture(&self) -> String {
        let headline = self.headline();
        let class = if self.is_good() { "head good" } else { "head bad" };
        let mut lines = headline.lines();
        let mut told = vec![("head", lines.next().unwrap_or_default().to_owned())];
        told.push((class, lines.next().unwrap_or_default().to_owned()));
        for (title, section) in self.sections().into_iter().take(3).filter(|(_, lines)| !lines.is_empty()) {
            told.push(("told", String::new()));
            told.push(("title", title.to_owned()));
            let lines = section.iter().take(LINES_MAX).flat_map(|line| broken(&format!("  {line}")));
            told.extend(lines.map(|line| ("told", line)));
        }
        let drawn = self.reference.timeline.svg();
        let top = MARGIN + told.len() * LINE + MARGIN / 2;
        let height = top + lanes_height(&drawn);
        let text: Vec<String> = told.iter().enumerate().map(|(row, (class, line))| text(row, class, line)).collect();
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
             role=\"img\"><title>{}</title><style>{STYLE}</style><rect class=\"page\" width=\"{WIDTH}\" height=\"{height}\"/>\
             {}<g transform=\"translate(0 {top})\">{}</g></svg>\n",
            escaped(headline.lines().next().unwrap_or_default()),
            text.concat(),
            drawn.trim_end()
        )
    }
}

fn text(row: usize, class: &str, line: &str) -> String {
    let y = MARGIN + row * LINE + LINE / 2;
    // Blanks at the beginning are how a line says where it belongs.
    format!("<text class=\"{class}\" x=\"{MARGIN}\" y=\"{y}\" xml:space=\"preserve\">{}</text>", escaped(line))
}

/// A line as several that fit, between its words. What goes on is further in.
fn broken(line: &str) -> Vec<String> {
    let indent = line.len() - line.trim_start().len();
    let mut lines = vec![" ".repeat(indent)];
    for word in line.split_whitespace() {
        let Some(last) = lines.last_mut() else { break };
        let is_first = last.trim().is_empty();
        if !is_first && last.chars().count() + 1 + word.chars().count() > LETTERS_MAX {
            lines.push(format!("{}{word}", " ".repeat(indent + 4)));
        } else {
            last.push_str(if is_first { "" } else { " " });
            last.push_str(word);
        }
    }
    lines
}

/// How high the lanes are, as they say themselves.
fn lanes_height(svg: &str) -> usize {
    let after = svg.split_once(" height=\"").map(|(_, rest)| rest);
    after.and_then(|rest| rest.split('"').next()?.parse().ok()).unwrap_or(400)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_height_of_lanes_is_read_from_them_and_text_is_no_markup() {
        assert_eq!(lanes_height("<svg viewBox=\"0 0 1312 271\" width=\"1312\" height=\"271\" role=\"img\">"), 271);
        assert!(text(1, "told", "<b>&").contains("&lt;b&gt;&amp;"));
    }

    #[test]
    fn a_line_that_is_too_long_goes_on_below_and_further_in() {
        assert_eq!(broken("  a b"), ["  a b"]);
        let word = "x".repeat(100);
        let lines = broken(&format!("  {word} {word}"));
        assert_eq!(lines, [format!("  {word}"), format!("      {word}")]);
        assert_eq!(broken(&"y".repeat(400)), ["y".repeat(400)], "a word is not broken");
    }
}
