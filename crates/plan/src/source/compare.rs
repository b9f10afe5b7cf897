//! Whether what files say of clusters is what the clusters are asked to be.
//!
//! Of the release it is told which of the two is older, wherever the files say it: in a manifest, a patch of an overlay, or a
//! variable. Every other field of a manifest is compared as it is written; what files do not say is nobody's business here. A manifest
//! that overlays patch is not what is applied, so only the release is compared.

use std::cmp::Ordering;
use std::fmt;

use serde::Serialize;
use serde_json::Value;
use windlass_api::label;
use windlass_api::name::{NamespacedName, ObjectName};
use windlass_api::version::{KubernetesVersion, VersionPrefix};

use super::find::{self, Manifest, Reading};
use super::overlay::Overlays;
use super::tree::{Content, Found, Tree};
use super::variable::{self, Fluxes};
use super::{File, Place, SourceError, Trigger, Wish};
use crate::diff::secret::text_at;

/// How what a file says stands to a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Standing {
    /// The file would lead back: somebody changed the cluster past it.
    Older,
    /// It is another, and neither is older.
    Drifts,
    /// The file is ahead: it is not applied yet.
    Newer,
}

/// A value that a file and a cluster have otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Where the file has it.
    pub place: Place,
    /// The object that it is of: `Cluster/org-acme/wl`.
    pub object: String,
    /// What the file says.
    pub said: String,
    /// What the cluster has; nothing where it has no such field, or is not there.
    pub live: Option<String>,
    /// Which of the two is ahead.
    pub standing: Standing,
}

/// What files and clusters come to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Comparison {
    /// The clusters that the files have, as they are called.
    pub compared: Vec<String>,
    /// Clusters that no file has.
    pub elsewhere: Vec<String>,
    /// What is otherwise, in the order of the files.
    pub differences: Vec<Difference>,
    /// Clusters of which the files do not say one thing, and why.
    pub unclear: Vec<(String, SourceError)>,
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Older => "older",
            Self::Drifts => "drifts",
            Self::Newer => "newer",
        })
    }
}

/// Kinds that are clusters.
const KINDS: [&str; 2] = ["TanzuKubernetesCluster", "Cluster"];
/// What the server writes, or what only says which object it is.
const OF_THE_SERVER: [&str; 10] = [
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "resourceVersion",
    "generation",
    "managedFields",
    "ownerReferences",
    "finalizers",
    "selfLink",
];

/// Compares what the files say with the clusters that are there.
pub fn compare(files: &[File], clusters: &[Value]) -> Comparison {
    let reading = Reading::of(files);
    let (fluxes, overlays) = (Fluxes::of(&reading), Overlays::of(&reading));
    let mut comparison = Comparison::default();
    for live in clusters {
        let Some(one) = One::of(live) else { continue };
        one.compare(&reading, &fluxes, &overlays, &mut comparison);
    }
    comparison.differences.extend(not_there(&reading, clusters));
    comparison.differences.sort_by(|a, b| a.place.cmp(&b.place));
    comparison
}

/// A cluster that is there.
struct One<'a> {
    live: &'a Value,
    kind: &'a str,
    name: NamespacedName,
}

impl<'a> One<'a> {
    fn of(live: &'a Value) -> Option<Self> {
        let text = |field: &str| live["metadata"][field].as_str();
        let (namespace, name) = (text("namespace")?.parse().ok()?, ObjectName::new(text("name")?).ok()?);
        let kind = live["kind"].as_str().filter(|kind| KINDS.contains(kind))?;
        Some(Self { live, kind, name: NamespacedName { namespace, name } })
    }

    fn object(&self) -> String {
        format!("{}/{}", self.kind, self.name)
    }

    /// The fields by which its release is asked for.
    fn triggers(&self) -> &'static [Trigger] {
        let of_class = [Trigger::ReleaseVersion, Trigger::ReleaseName, Trigger::Topology].as_slice();
        if self.kind == Trigger::Distribution.kind() { &[Trigger::Distribution] } else { of_class }
    }

    fn compare(
        &self,
        reading: &Reading<'_>,
        fluxes: &Fluxes<'_>,
        overlays: &Overlays<'_>,
        comparison: &mut Comparison,
    ) {
        let mut is_there = false;
        for trigger in self.triggers() {
            let wish = Wish { cluster: &self.name, trigger: *trigger, to: "", only: None };
            match find::said_at(reading, &wish) {
                Ok(hit) => {
                    is_there = true;
                    let said = hit.found.meant.scalar().unwrap_or_default().trim_end();
                    let other = release(*trigger, said, self.live);
                    comparison.differences.extend(other.map(|(live, standing)| Difference {
                        place: hit.place(reading),
                        object: self.object(),
                        said: said.to_owned(),
                        live,
                        standing,
                    }));
                }
                Err(SourceError::NoCluster { .. }) => {}
                Err(SourceError::NoField { .. }) => is_there = true,
                Err(refusal) => {
                    is_there = true;
                    comparison.unclear.push((self.object(), refusal));
                }
            }
        }
        let any = Wish { cluster: &self.name, trigger: self.triggers()[0], to: "", only: None };
        for manifest in find::manifests(reading, fluxes, &any) {
            // What is filled in or patched is not what is applied.
            if !manifest.is_filled_in && !overlays.change(manifest.file) {
                comparison.differences.extend(self.fields(reading, &manifest));
            }
        }
        let list = if is_there { &mut comparison.compared } else { &mut comparison.elsewhere };
        list.push(self.object());
    }

    /// The fields of a manifest that the cluster has otherwise.
    fn fields(&self, reading: &Reading<'_>, manifest: &Manifest<'_>) -> Vec<Difference> {
        let tree = manifest.tree;
        let mut walk = Walk { tree, path: Vec::new(), others: Vec::new() };
        // Of another version of its kind, fields may be called otherwise.
        let is_same = tree.text(manifest.object, &["apiVersion"]) == self.live["apiVersion"].as_str();
        let start = tree.start(manifest.object);
        for part in ["metadata", "spec"] {
            let Some(found) = tree.get(start, part).filter(|_| part == "metadata" || is_same) else { continue };
            walk.note_field(part, found, Some(&self.live[part]));
        }
        let triggers: Vec<String> = self.triggers().iter().map(|trigger| trigger.field()).collect();
        let others = walk.others.into_iter().filter(|(field, ..)| !triggers.contains(field));
        let difference = |(field, found, live): (String, Found<'_>, Option<String>)| Difference {
            place: reading.place_of(manifest.file, found.node, &field),
            object: self.object(),
            said: text_at(&field, found.meant.scalar().unwrap_or_default()),
            live: live.map(|live| text_at(&field, &live)),
            standing: Standing::Drifts,
        };
        others.map(difference).collect()
    }
}

/// What of a manifest is otherwise, field by field.
struct Walk<'a> {
    tree: &'a Tree,
    path: Vec<String>,
    others: Vec<(String, Found<'a>, Option<String>)>,
}

impl<'a> Walk<'a> {
    fn note_field(&mut self, name: &str, found: Found<'a>, live: Option<&Value>) {
        self.path.push(name.to_owned());
        self.walk(found, live.filter(|live| !live.is_null()));
        self.path.pop();
    }

    fn walk(&mut self, found: Found<'a>, live: Option<&Value>) {
        match &found.meant.content {
            Content::Map(_) => {
                for key in self.tree.keys(found) {
                    let is_ours = self.path.len() == 1 && self.path[0] == "metadata" && OF_THE_SERVER.contains(&key);
                    let value = self.tree.get(found, key).filter(|_| !is_ours && key != LAST_APPLIED);
                    if let Some(value) = value {
                        self.note_field(key, value, live.and_then(|live| live.get(key)));
                    }
                }
            }
            Content::List(items) => {
                for (number, item) in items.iter().enumerate() {
                    let item = self.tree.start(item);
                    let name = self.tree.get(item, "name").and_then(|name| name.meant.scalar());
                    let is_it = |live: &&Value| name.is_some_and(|name| live["name"] == name);
                    let listed = live.and_then(Value::as_array);
                    let live = listed.and_then(|all| match name {
                        Some(_) => all.iter().find(is_it),
                        None => all.get(number),
                    });
                    let place = format!("[{}]", name.map_or_else(|| number.to_string(), str::to_owned));
                    self.note_field(&place, item, live);
                }
            }
            Content::Scalar { value, .. } => {
                if !found.meant.is_null() && !value.contains("${") && !live.is_some_and(|live| is_same(value, live)) {
                    self.others.push((self.field(), found, live.map(shown)));
                }
            }
            Content::Alias(_) => {}
        }
    }

    fn field(&self) -> String {
        let mut field = String::new();
        for part in &self.path {
            if !field.is_empty() && !part.starts_with('[') {
                field.push('.');
            }
            field.push_str(part);
        }
        field
    }
}

/// What kubectl keeps of what it applied.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

fn is_same(said: &str, live: &Value) -> bool {
    match live {
        Value::String(text) => text == said.trim_end() || text == said,
        Value::Number(number) => number.to_string() == said || number.as_f64() == said.parse().ok(),
        Value::Bool(truth) => truth.to_string() == said,
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

fn shown(live: &Value) -> String {
    live.as_str().map_or_else(|| live.to_string(), str::to_owned)
}

/// What a cluster has of a release, and how what a file says stands to it; `None` if they agree.
fn release(trigger: Trigger, said: &str, live: &Value) -> Option<(Option<String>, Standing)> {
    let text = |pointer: &str| live.pointer(pointer).and_then(Value::as_str);
    let label = |name: &str| live["metadata"]["labels"][name].as_str();
    // The more exact one first.
    let has: Vec<&str> = match trigger {
        Trigger::Distribution => [text("/spec/distribution/fullVersion"), text("/spec/distribution/version")],
        Trigger::Topology => [label(label::RELEASE.name), text("/spec/topology/version")],
        Trigger::ReleaseName => [label(label::RELEASE.name), None],
        Trigger::ReleaseVersion => [label(label::RELEASE_VERSION.name), None],
    }
    .into_iter()
    .flatten()
    .collect();
    let exact = *has.first()?;
    if has.iter().any(|live| *live == said || begins(said, live)) {
        return None;
    }
    let standing = match order(said, exact) {
        Some(Ordering::Less) => Standing::Older,
        Some(Ordering::Greater) => Standing::Newer,
        Some(Ordering::Equal) | None => Standing::Drifts,
    };
    Some((Some(exact.to_owned()), standing))
}

/// Whether what was said is the version, or the beginning of it.
fn begins(said: &str, live: &str) -> bool {
    let parsed = said.parse::<VersionPrefix>().ok().zip(live.parse::<KubernetesVersion>().ok());
    parsed.is_some_and(|(said, live)| said.matches(&live))
}

/// Which is older: by all that versions have, or by the numbers that both have.
fn order(said: &str, live: &str) -> Option<Ordering> {
    if let (Ok(said), Ok(live)) = (said.parse::<KubernetesVersion>(), live.parse::<KubernetesVersion>()) {
        return Some(said.cmp(&live));
    }
    let numbers = |text: &str| -> Option<Vec<u64>> {
        let text = text.trim_start_matches('v').split(['+', '-']).next().unwrap_or_default();
        text.split('.').map(|number| number.parse().ok()).collect()
    };
    let (said, live) = (numbers(said)?, numbers(live)?);
    said.iter().zip(&live).map(|(said, live)| said.cmp(live)).find(|order| order.is_ne())
}

/// Manifests of clusters that are not there: they are still to be applied.
fn not_there(reading: &Reading<'_>, clusters: &[Value]) -> Vec<Difference> {
    let is_live = |kind: &str, namespace: Option<&str>, name: &str| {
        let mut all = clusters.iter();
        all.any(|live| {
            let meta = &live["metadata"];
            live["kind"] == kind && meta["name"] == name && namespace.is_none_or(|it| meta["namespace"] == it)
        })
    };
    let manifests = reading.objects().filter_map(|(file, tree, object)| {
        let kind = tree.text(object, &["kind"]).filter(|kind| KINDS.contains(kind))?;
        let group = tree.text(object, &["apiVersion"])?.split_once('/')?.0;
        let name = tree.text(object, &["metadata", "name"]).filter(|name| variable::name(name).is_none())?;
        let namespace = tree.text(object, &["metadata", "namespace"]).filter(|it| variable::name(it).is_none());
        let is_ours = Trigger::ALL.iter().any(|trigger| trigger.kind() == kind && trigger.group() == group);
        // A patch has the name of what it changes, and nothing that a cluster needs.
        let is_whole = tree.at(object, &["spec"]).is_some();
        (is_ours && is_whole && !is_live(kind, namespace, name)).then(|| Difference {
            place: reading.place_of(file, object, kind),
            object: [Some(kind), namespace, Some(name)].into_iter().flatten().collect::<Vec<_>>().join("/"),
            said: "a cluster".to_owned(),
            live: None,
            standing: Standing::Newer,
        })
    });
    manifests.collect()
}
