//! `windlass release diff`: what is another in one release than in another.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use windlass_api::name::ClusterName;
use windlass_api::version::{KubernetesVersion, VersionPrefix};

use super::{summaries, the_one};
use crate::changed::Changed;
use crate::client::Connection;
use crate::error::{Exit, Failure};
use crate::output;
use crate::release::Summary;

/// Show what differs between two releases: Kubernetes, etcd, images, add-ons and packages
///
/// What one of them does not have has a dash. With --for, add-ons that the cluster does not have are left out; what an upgrade would do
/// to it, machine by machine, is what `windlass plan` says.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  windlass release diff v1.16.7 v1.17.4 --for my-tkc")]
pub struct Diff {
    /// The one release, or the beginning of its version if only one begins so
    from: VersionPrefix,
    /// The other
    to: VersionPrefix,
    /// Only what this cluster has
    #[arg(long = "for", value_name = "CLUSTER")]
    cluster: Option<ClusterName>,
    /// Write it as a document instead, for scripts, or the names of the releases
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Changed>,
    #[command(flatten)]
    connection: Connection,
}

/// What `release diff -o` writes.
#[derive(Serialize, schemars::JsonSchema)]
pub struct ReleaseDiff {
    from: KubernetesVersion,
    to: KubernetesVersion,
    /// The cluster that it is looked at for.
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<ClusterName>,
    changes: Vec<Change>,
}

/// A part that is another.
#[derive(Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
struct Change {
    /// What it is: `kubernetes`, `addon/antrea`.
    part: String,
    /// What the one release has; nothing if it has no such part.
    from: Option<String>,
    /// What the other has.
    to: Option<String>,
}

impl Diff {
    pub async fn run(self) -> Result<Exit, Failure> {
        let management = self.connection.open().await?;
        let has = match &self.cluster {
            Some(cluster) => {
                let addons = management.cluster(cluster).await?.status.map(|status| status.addons).unwrap_or_default();
                Some(addons.into_values().map(|addon| addon.name.to_lowercase()).collect::<BTreeSet<_>>())
            }
            None => None,
        };
        let all = summaries(&management).await?;
        let (from, to) = (the_one(&self.from, all.clone())?, the_one(&self.to, all)?);
        let mut changes = changes(&from, &to);
        if let Some(has) = &has {
            // What the later release brings for the first time comes to every cluster, but for what others were chosen instead of.
            changes.retain(|change| match change.part.strip_prefix("addon/") {
                Some(addon) => change.from.is_none() || has.contains(&addon.to_lowercase()),
                None => true,
            });
        }
        let diff = ReleaseDiff { from: from.version, to: to.version, cluster: self.cluster, changes };
        match self.output {
            Some(format) => format.tell(&format!("release/{}\nrelease/{}", diff.from, diff.to), "ReleaseDiff", diff)?,
            None => diff.print()?,
        }
        Ok(Exit::Done)
    }
}

/// Everything that a release is made of, by what it is.
fn parts(release: &Summary) -> BTreeMap<String, String> {
    let mut parts = BTreeMap::new();
    let mut part = |name: String, value: &str| {
        if !value.is_empty() {
            parts.insert(name, value.to_owned());
        }
    };
    part("kubernetes".to_owned(), release.kubernetes.as_str());
    part("etcd".to_owned(), &release.etcd);
    part("machine image".to_owned(), &release.image);
    for addon in &release.addons {
        part(format!("addon/{}", addon.name), &addon.version);
    }
    let object = release.object.as_ref();
    let images: Vec<&str> = object.iter().flat_map(|object| &object.os_images).map(String::as_str).collect();
    part("OS images".to_owned(), &images.join(", "));
    for package in object.iter().flat_map(|object| &object.packages) {
        // The name that all versions share, then the version.
        let version = package.match_indices('.').map(|(dot, _)| dot);
        let dot = version.into_iter().find(|dot| package[dot + 1..].starts_with(|c: char| c.is_ascii_digit()));
        let (name, version) = dot.map_or((package.as_str(), ""), |dot| (&package[..dot], &package[dot + 1..]));
        part(format!("package/{name}"), version);
    }
    if let Some(object) = object {
        part("state".to_owned(), if object.deactivated { "deactivated" } else { "active" });
    }
    parts
}

fn changes(from: &Summary, to: &Summary) -> Vec<Change> {
    let (from, to) = (parts(from), parts(to));
    let names: BTreeSet<&String> = from.keys().chain(to.keys()).collect();
    let change =
        |name: &String| Change { part: name.clone(), from: from.get(name).cloned(), to: to.get(name).cloned() };
    names.into_iter().map(change).filter(|change| change.from != change.to).collect()
}

impl ReleaseDiff {
    fn print(&self) -> Result<(), output::Error> {
        if self.changes.is_empty() {
            let are = if self.from == self.to { "is one release" } else { "have the same in them" };
            return output::data(&format!("{} and {}: that {are}", self.from, self.to));
        }
        let rows = self.changes.iter().map(|change| {
            vec![change.part.clone(), output::cell(change.from.as_ref()), output::cell(change.to.as_ref())]
        });
        output::data(&output::table(&["PART", self.from.as_str(), self.to.as_str()], rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::release::Addon;

    fn release(version: &str, addons: &[(&str, &str)]) -> Summary {
        let addon = |(name, version): &(&str, &str)| Addon { name: (*name).to_owned(), version: (*version).to_owned() };
        Summary {
            version: version.parse().unwrap(),
            kubernetes: version.parse().unwrap(),
            etcd: "v3.4.3".to_owned(),
            addons: addons.iter().map(addon).collect(),
            image: String::new(),
            digest: String::new(),
            object: None,
            label: None,
        }
    }

    #[test]
    fn what_comes_goes_and_changes_is_one_row_each() {
        let from = release("v1.16.7", &[("antrea", "0.1"), ("authsvc", "1"), ("old", "1")]);
        let to = release("v1.17.4", &[("antrea", "0.2"), ("authsvc", "1"), ("new", "2")]);
        let changes = changes(&from, &to);
        let told: Vec<_> = changes.iter().map(|it| (it.part.as_str(), it.from.as_deref(), it.to.as_deref())).collect();
        assert_eq!(
            told,
            [
                ("addon/antrea", Some("0.1"), Some("0.2")),
                ("addon/new", None, Some("2")),
                ("addon/old", Some("1"), None),
                ("kubernetes", Some("v1.16.7"), Some("v1.17.4")),
            ]
        );
    }
}
