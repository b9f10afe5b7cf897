//! What people see of a snapshot.

use std::collections::BTreeSet;
use std::path::Path;

use jiff::SignedDuration;
use serde_json::Value;
use windlass_rehearse::snapshot::{Change, Changed, ClusterSummary, Field, SnapshotDiff, SnapshotSummary};

use crate::output::{cell, table, took};

/// A value that is longer is cut: whoever needs all of it has `-o`.
const VALUE_MAX: usize = 100;

fn number(count: usize, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {many}") }
}

/// What was written.
pub fn taken(dir: &Path, summary: &SnapshotSummary) -> String {
    let objects: usize = summary.management.values().chain(summary.workloads.values()).sum();
    format!(
        "{}: {}, {}, {}",
        dir.display(),
        number(summary.clusters.len(), "cluster", "clusters"),
        number(objects, "object", "objects"),
        number(summary.gaps.len(), "gap", "gaps"),
    )
}

/// What is in a snapshot: clusters, kinds, gaps.
pub fn summary(dir: &Path, summary: &SnapshotSummary, age: SignedDuration) -> String {
    let head = format!("{}   taken {} ({} ago) by {}", dir.display(), summary.taken_at, took(age), summary.taken_by);
    let clusters = summary.clusters.iter().map(cluster);
    let header = ["CLUSTER", "VERSION", "CONTROL PLANE", "WORKERS", "NODES", "PODS", "ETCD"];
    let mut parts = vec![head];
    if !summary.clusters.is_empty() {
        parts.push(table(&header, clusters));
    }
    let kinds: BTreeSet<&String> = summary.management.keys().chain(summary.workloads.keys()).collect();
    let kept = |kind: &String| if summary.only_data.contains_key(kind) { "kept" } else { "restored" };
    let rows = kinds.into_iter().map(|kind| {
        let [management, workloads] = [&summary.management, &summary.workloads].map(|counts| cell(counts.get(kind)));
        vec![kind.clone(), management, workloads, kept(kind).to_owned()]
    });
    parts.push(table(&["KIND", "MANAGEMENT", "WORKLOADS", "IN A REHEARSAL"], rows));
    parts.push(gaps(summary));
    parts.join("\n\n")
}

fn cluster(cluster: &ClusterSummary) -> Vec<String> {
    let ClusterSummary { cluster, version, control_plane, workers, nodes, pods, members } = cluster;
    let well = members.iter().filter(|member| member.healthy).count();
    let etcd = (!members.is_empty()).then(|| format!("{well}/{} healthy", members.len()));
    vec![
        cluster.to_string(),
        cell(version.as_ref()),
        control_plane.to_string(),
        workers.to_string(),
        cell(*nodes),
        cell(*pods),
        cell(etcd),
    ]
}

fn gaps(summary: &SnapshotSummary) -> String {
    if summary.gaps.is_empty() {
        return "No gaps: everything could be read.".to_owned();
    }
    let lines = summary.gaps.iter().map(|gap| format!("  {}: {}\n    way out: {}", gap.what, gap.why, gap.way_out));
    format!("{}:\n{}", number(summary.gaps.len(), "gap", "gaps"), lines.collect::<Vec<_>>().join("\n"))
}

/// What differs between two snapshots.
pub fn diff(diff: &SnapshotDiff) -> String {
    if diff.is_empty() {
        return "Nothing has changed.".to_owned();
    }
    let mut lines = Vec::new();
    let mut of = None;
    for object in &diff.objects {
        if of != Some(&object.cluster) {
            let blank = if of.is_some() { "\n" } else { "" };
            let place = object.cluster.as_ref().map_or("management".to_owned(), ToString::to_string);
            lines.push(format!("{blank}{place}"));
            of = Some(&object.cluster);
        }
        lines.push(changed(object));
    }
    let count = |is: fn(&Change) -> bool| diff.objects.iter().filter(|object| is(&object.change)).count();
    let added = count(|change| matches!(change, Change::Added));
    let removed = count(|change| matches!(change, Change::Removed));
    let altered = diff.objects.len() - added - removed;
    lines.push(format!("\n{added} added, {removed} removed, {altered} changed"));
    lines.join("\n")
}

fn changed(object: &Changed) -> String {
    let slash = if object.namespace.is_empty() { "" } else { "/" };
    let name = format!("{} {}{slash}{}", object.kind, object.namespace, object.name);
    match &object.change {
        Change::Added => format!("  + {name}"),
        Change::Removed => format!("  - {name}"),
        Change::Changed { fields } => {
            let fields: Vec<String> = fields.iter().map(field).collect();
            format!("  ~ {name}\n{}", fields.join("\n"))
        }
    }
}

fn field(field: &Field) -> String {
    let [before, after] = [&field.before, &field.after].map(|side| side.as_ref().map_or("(none)".to_owned(), short));
    format!("      {}: {before} -> {after}", field.path)
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(VALUE_MAX) {
        Some((end, _)) => format!("{}… ({} characters)", &text[..end], text.chars().count()),
        None => text,
    }
}
