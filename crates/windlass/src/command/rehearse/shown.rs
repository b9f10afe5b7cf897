//! How reports are shown: as text, as documents, as files and as pictures.

use std::path::{Path, PathBuf};

use serde::Serialize;
use windlass_api::name::ClusterName;
use windlass_rehearse::report::Report;

use super::Error;
use crate::changed::Changed;
use crate::output;

/// A file that a report is written to.
pub struct File {
    format: Format,
    path: PathBuf,
}

#[derive(Clone, Copy)]
enum Format {
    Markdown,
    Html,
}

/// What `rehearse -o` writes of several updates.
#[derive(Serialize, schemars::JsonSchema)]
pub struct ReportList<'a> {
    items: Vec<&'a Report>,
}

/// The files that are asked for: pairs of a format and a path.
pub fn files(words: &[String]) -> Result<Vec<File>, Error> {
    let file = |pair: &[String]| {
        let [format, path] = pair else { return Err(Error::ReportFormat { format: pair.concat() }) };
        let format = match format.as_str() {
            "md" => Format::Markdown,
            "html" => Format::Html,
            other => return Err(Error::ReportFormat { format: other.to_owned() }),
        };
        Ok(File { format, path: path.into() })
    };
    words.chunks(2).map(file).collect()
}

/// Writes reports to files. The second one of several has a `-2` in the name of its file.
pub fn write(reports: &[&Report], files: &[File]) -> Result<(), Error> {
    for File { format, path } in files {
        for (index, report) in reports.iter().enumerate() {
            let text = match format {
                Format::Markdown => report.markdown(),
                Format::Html => report.html(),
            };
            let path = numbered(path, index);
            std::fs::write(&path, text).map_err(|source| Error::ReportFile { path, source })?;
        }
    }
    Ok(())
}

/// Draws each of them.
pub fn draw(reports: &[&Report], path: Option<&Path>) -> Result<(), Error> {
    let Some(path) = path else { return Ok(()) };
    for (index, report) in reports.iter().enumerate() {
        let path = numbered(path, index);
        std::fs::write(&path, report.picture()).map_err(|source| Error::Picture { path, source })?;
    }
    Ok(())
}

fn numbered(path: &Path, index: usize) -> PathBuf {
    if index == 0 {
        return path.to_owned();
    }
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{}", index + 1));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// One document: a report, or a list of them; or the names of the objects that the clusters are asked for with.
pub fn document(format: Changed, told: &[(ClusterName, Vec<Report>)], names: &[String]) -> Result<(), output::Error> {
    match told {
        _ if format == Changed::Name => output::data(&names.join("\n")),
        [(cluster, reports)] => match reports.as_slice() {
            [one] => format.tell_cluster(cluster, "RehearsalReport", one),
            items => format.tell_cluster(cluster, "RehearsalReportList", ReportList { items: items.iter().collect() }),
        },
        many => {
            let items = many.iter().flat_map(|(_, reports)| reports).collect();
            format.tell("", "RehearsalReportList", ReportList { items })
        }
    }
}

/// All of it for people: of several clusters a table first.
pub fn text(told: &[(ClusterName, Vec<Report>)], timeline: bool) -> String {
    let mut parts: Vec<String> = Vec::new();
    if told.len() > 1 {
        parts.push(summary(told));
    }
    for report in told.iter().flat_map(|(_, reports)| reports) {
        parts.push(report.text());
        if timeline {
            parts.push(report.reference.text());
        }
    }
    parts.join("\n")
}

fn summary(told: &[(ClusterName, Vec<Report>)]) -> String {
    let rows = told.iter().map(|(cluster, reports)| {
        let is_good = reports.iter().all(Report::is_good);
        let total = |each: fn(&Report) -> jiff::SignedDuration| reports.iter().map(each).sum::<jiff::SignedDuration>();
        let machines: usize = reports.iter().map(|report| report.replaced.len()).sum();
        let last = reports.last().map(|report| report.verdict.to_string()).unwrap_or_default();
        vec![
            cluster.to_string(),
            if is_good { "✔ good" } else { "✖ bad" }.to_owned(),
            output::took(total(|report| report.took.p50)),
            output::took(total(|report| report.took.p90)),
            machines.to_string(),
            reports.iter().map(|report| report.risks.len()).sum::<usize>().to_string(),
            last,
        ]
    });
    let table = output::table(&["CLUSTER", "RESULT", "P50", "P90", "MACHINES", "RISKS", "END"], rows);
    format!("{table}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_several_updates_have_names_of_their_own() {
        let check = |path: &str, index: usize, expected: &str| {
            assert_eq!(numbered(Path::new(path), index), Path::new(expected));
        };
        check("a/b.svg", 0, "a/b.svg");
        check("a/b.svg", 1, "a/b-2.svg");
        check("b", 1, "b-2");
        check("b.1.svg", 1, "b.1-2.svg");
    }
}
