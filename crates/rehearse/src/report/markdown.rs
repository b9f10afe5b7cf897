//! A report as Markdown, for a commit or a ticket.

use std::fmt::Write;

use super::Report;
use super::spread::told;

impl Report {
    /// The report as Markdown.
    pub fn markdown(&self) -> String {
        let mut page = Page::default();
        page.line(format_args!("# {} {}\n", escaped(&self.cluster.to_string()), escaped(&self.asked)));
        let headline = self.headline();
        let verdict = headline.lines().nth(1).unwrap_or_default();
        page.line(format_args!("**{}**\n", escaped(verdict)));
        for line in self.verdict_lines() {
            page.line(format_args!("- {}", escaped(&line)));
        }
        self.machine_table(&mut page);
        for (title, lines) in self.sections() {
            if lines.is_empty() {
                continue;
            }
            page.line(format_args!("\n## {title}\n"));
            for line in lines {
                // What is indented belongs to the line before it.
                let depth = if line.starts_with(' ') { "  " } else { "" };
                page.line(format_args!("{depth}- {}", escaped(line.trim_start())));
            }
        }
        page.line(format_args!("\nSeed {}, {} runs.", self.seed, self.runs));
        page.0
    }

    fn machine_table(&self, page: &mut Page) {
        if self.replaced.is_empty() {
            return;
        }
        page.line(format_args!("\n## Machines that are replaced, in order\n"));
        page.line(format_args!("| machine | by | gone after | guilty |\n|---|---|---|---|"));
        for replaced in &self.replaced {
            let guilty = replaced.because.iter().map(|field| {
                let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
                format!("`{}`: {} → {} ({})", field.field, value(&field.from), value(&field.to), field.origin.as_str())
            });
            let guilty: Vec<String> = guilty.collect();
            page.line(format_args!(
                "| {} | {} | {} | {} |",
                escaped(&replaced.machine),
                escaped(replaced.by.as_deref().unwrap_or("-")),
                told(replaced.gone_after),
                cell(&guilty.join("<br>"))
            ));
        }
    }
}

#[derive(Default)]
struct Page(String);

impl Page {
    /// Writing to a text cannot fail.
    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        if writeln!(self.0, "{line}").is_err() {
            self.0.push('\n');
        }
    }
}

/// A text in which nothing is markup.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\n' | '\r' => escaped.push(' '),
            '\\' | '`' | '*' | '[' | ']' | '|' | '#' => {
                escaped.push('\\');
                escaped.push(letter);
            }
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// A cell of a table with markup of our own in it.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_from_elsewhere_is_no_markup() {
        assert_eq!(escaped("a*b <img> [x](y)\n# z"), "a\\*b &lt;img&gt; \\[x\\](y) \\# z");
        assert_eq!(escaped("v1.16.7+vmware.1-guest.1"), "v1.16.7+vmware.1-guest.1");
    }
}
