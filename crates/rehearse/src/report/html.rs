//! A report as one page of HTML: no script, nothing from elsewhere, with the lanes of the run that it tells of.

use std::fmt::Write;

use windlass_sim::timeline::escaped;

use super::Report;
use super::spread::told;
use super::text::FAULTS;
use crate::matrix::FaultMatrix;

const STYLE: &str = "\
:root{color-scheme:light dark;--page:#fff;--ink:#24292f;--faint:#57606a;--line:#d8dee4;--code:#f6f8fa;--good:#1a7f37;--bad:#cf222e;\
--survived:#dafbe1;--recovered:#fff8c5;--broken:#ffcecb}\
@media (prefers-color-scheme:dark){:root{--page:#0d1117;--ink:#e6edf3;--faint:#8d96a0;--line:#30363d;--code:#161b22;--good:#3fb950;\
--bad:#f85149;--survived:#12311f;--recovered:#3a3412;--broken:#5c1f22}}\
body{font:15px/1.5 system-ui,sans-serif;max-width:1340px;margin:2rem auto;padding:0 1rem;color:var(--ink);background:var(--page);\
overflow-wrap:break-word}\
h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:1.8rem 0 .4rem}\
.verdict{font-size:1.2rem;font-weight:600;margin:.3rem 0}.good{color:var(--good)}.bad{color:var(--bad)}\
ul{margin:.2rem 0;padding-left:0;list-style:none}ul ul{padding-left:1.4rem;color:var(--faint)}\
table{border-collapse:collapse}th,td{text-align:left;padding:.25rem .6rem;border-bottom:1px solid var(--line);vertical-align:top}\
.wide{overflow-x:auto}.machines{width:100%;min-width:760px;table-layout:fixed}.machines td{overflow-wrap:anywhere}\
.machines th{width:19%}.machines th:nth-child(3){width:6rem}.machines th:nth-child(4){width:auto}\
.matrix{font-size:12px;margin-bottom:.8rem}.matrix th,.matrix td{padding:.15rem .35rem;white-space:nowrap;border:1px solid var(--line)}\
.matrix td{text-align:center}.matrix th{font-weight:500;background:var(--page)}.matrix tr>th:first-child{position:sticky;left:0}\
.matrix thead th{vertical-align:bottom}.matrix thead span{writing-mode:vertical-rl;transform:rotate(180deg)}\
.survived{background:var(--survived)}.recovered{background:var(--recovered)}.broken{background:var(--broken)}\
.key span{padding:0 .5rem;margin:0 .5rem 0 1rem;border:1px solid var(--line)}.key span:first-child{margin-left:0}\
code,pre{font:13px ui-monospace,monospace}pre{overflow-x:auto;padding:.6rem;background:var(--code);border-radius:6px}\
.lanes{overflow-x:auto}.lanes svg{min-width:860px;max-width:100%;height:auto}footer{margin:2rem 0;color:var(--faint)}";

impl Report {
    /// The report as a page of HTML that needs nothing beside it.
    pub fn html(&self) -> String {
        let mut page = Page::default();
        let title = format!("{} {}", self.cluster, self.asked);
        let class = if self.is_good() { "good" } else { "bad" };
        let headline = self.headline();
        page.put(format_args!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width\"><title>{0}</title><style>{STYLE}</style></head>\n\
             <body><h1>{0}</h1>\n<p class=\"verdict {class}\">{1}</p>\n",
            escaped(&title),
            escaped(headline.lines().nth(1).unwrap_or_default()),
        ));
        page.list(&self.verdict_lines());
        page.put(format_args!(
            "<h2>The run, machine by machine</h2>\n<div class=\"lanes\">{}</div>\n",
            self.reference.timeline.svg()
        ));
        self.machine_rows(&mut page);
        for (title, lines) in self.sections().into_iter().filter(|(_, lines)| !lines.is_empty()) {
            page.put(format_args!("<h2>{}</h2>\n", escaped(title)));
            match self.faults.as_ref().filter(|_| title == FAULTS) {
                Some(matrix) => matrix_rows(&mut page, matrix),
                None => page.list(&lines),
            }
        }
        let timeline = escaped(&self.reference.timeline.text());
        page.put(format_args!("<details><summary>The whole timeline</summary><pre>{timeline}</pre></details>\n"));
        let (seed, runs) = (self.seed, self.runs);
        page.put(format_args!("<footer>windlass rehearse, seed {seed}, {runs} runs</footer></body></html>\n"));
        page.0
    }

    fn machine_rows(&self, page: &mut Page) {
        if self.replaced.is_empty() {
            return;
        }
        page.put(format_args!(
            "<h2>Machines that are replaced, in order</h2>\n<div class=\"wide\"><table class=\"machines\">\
             <tr><th>machine<th>by<th>gone after<th>guilty</tr>\n"
        ));
        for replaced in &self.replaced {
            let guilty = replaced.because.iter().map(|field| {
                let value = |value: &Option<String>| escaped(value.as_deref().unwrap_or("nothing"));
                let (from, to) = (value(&field.from), value(&field.to));
                format!("<code>{}</code>: {from} → {to} ({})", escaped(&field.field), escaped(field.origin.as_str()))
            });
            let guilty: Vec<String> = guilty.collect();
            page.put(format_args!(
                "<tr><td>{}<td>{}<td>{}<td>{}</tr>\n",
                escaped(&replaced.machine),
                escaped(replaced.by.as_deref().unwrap_or("-")),
                told(replaced.gone_after),
                guilty.join("<br>")
            ));
        }
        page.put(format_args!("</table></div>\n"));
    }
}

/// The matrix: faults down, steps across. A cell says in a few letters what became of it, and what broke is told below.
fn matrix_rows(page: &mut Page, matrix: &FaultMatrix) {
    page.put(format_args!(
        "<p>{}</p>\n<p class=\"key\"><span class=\"survived\">✔</span>as if nothing had been \
         <span class=\"recovered\">+8m</span>well in the end, so much later <span class=\"broken\">✖</span>broken \
         <span>&nbsp;</span>nothing there to bite</p>\n<div class=\"wide\"><table class=\"matrix\"><thead><tr><th>",
        escaped(&matrix.head())
    ));
    for step in &matrix.steps {
        page.put(format_args!("<th><span>{}</span>", escaped(step)));
    }
    page.put(format_args!("</tr></thead>\n"));
    for row in &matrix.rows {
        page.put(format_args!("<tr><th>{} {}", escaped(&row.id), escaped(&row.fault)));
        for step in &matrix.steps {
            match row.cells.iter().find(|cell| cell.step == *step) {
                Some(cell) => page.put(format_args!(
                    "<td class=\"{}\" title=\"{}: {}\">{}",
                    cell.outcome.class(),
                    escaped(&cell.outcome.to_string()),
                    escaped(&cell.replay),
                    escaped(&cell.outcome.short())
                )),
                None => page.put(format_args!("<td>")),
            }
        }
        page.put(format_args!("</tr>\n"));
    }
    page.put(format_args!("</table></div>\n"));
    page.list(&matrix.broken_lines());
}

#[derive(Default)]
struct Page(String);

impl Page {
    /// Writing to a text cannot fail.
    fn put(&mut self, part: std::fmt::Arguments<'_>) {
        if self.0.write_fmt(part).is_err() {
            self.0.push('\n');
        }
    }

    /// Lines as a list; what is indented belongs to the line before it.
    fn list(&mut self, lines: &[String]) {
        if lines.is_empty() {
            return;
        }
        self.put(format_args!("<ul>\n"));
        let mut is_within = false;
        for line in lines {
            match (is_within, line.starts_with(' ')) {
                (false, true) => self.put(format_args!("<ul>\n")),
                (true, false) => self.put(format_args!("</ul>\n")),
                _ => {}
            }
            is_within = line.starts_with(' ');
            self.put(format_args!("<li>{}\n", escaped(line.trim_start())));
        }
        self.put(format_args!("{}</ul>\n", if is_within { "</ul>\n" } else { "" }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_comes_from_elsewhere_is_markup() {
        let mut page = Page::default();
        page.list(&["<a href=\"x\">&".into()]);
        assert!(page.0.contains("<li>&lt;a href=&quot;x&quot;&gt;&amp;\n"), "{}", page.0);
    }

    #[test]
    fn lists_within_lists_are_closed() {
        let mut page = Page::default();
        page.list(&["a".into(), "    b".into(), "c".into(), "    d".into()]);
        assert_eq!(page.0.matches("<ul>").count(), page.0.matches("</ul>").count());
        assert_eq!(page.0.matches("<li>").count(), 4);
    }
}
