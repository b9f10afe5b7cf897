//! Which place it is.

use std::collections::BTreeMap;

use windlass_api::name::NamespacedName;

use super::overlay::{self, Overlays};
use super::tree::{Found, Node, Tree};
use super::variable::{self, Fluxes};
use super::{File, Place, SourceError, Trigger, Wish};

/// The files, read.
pub(super) struct Reading<'a> {
    pub(super) files: &'a [File],
    /// Those that can be read, by their number.
    pub(super) trees: Vec<Option<Tree>>,
    /// Patches that stand inside of overlays, by the file and where they begin.
    inline: BTreeMap<(usize, usize), Tree>,
}

/// A place that says the release.
#[derive(Clone)]
pub(super) struct Hit<'a> {
    pub(super) file: usize,
    /// What it was read from.
    pub(super) tree: &'a Tree,
    pub(super) found: Found<'a>,
    pub(super) field: String,
}

impl<'a> Reading<'a> {
    pub(super) fn of(files: &'a [File]) -> Self {
        let is_yaml = |file: &File| ends(file, &["yaml", "yml", "json"]) || overlay::is_named(&file.path);
        let read = |file: &File| if is_yaml(file) { Tree::read(&file.text, 0).ok() } else { None };
        let trees: Vec<Option<Tree>> = files.iter().map(read).collect();
        let inside = |(number, file): (usize, &File)| {
            let read = trees[number].as_ref().map(|tree| overlay::inline(&file.path, &file.text, tree));
            read.unwrap_or_default().into_iter().map(move |(at, tree)| ((number, at), tree))
        };
        let inline = files.iter().enumerate().flat_map(inside).collect();
        Self { files, trees, inline }
    }

    /// The patch that begins at a byte of a file.
    pub(super) fn inline(&self, file: usize, at: usize) -> Option<&Tree> {
        self.inline.get(&(file, at))
    }

    /// The objects of all files.
    pub(super) fn objects(&self) -> impl Iterator<Item = (usize, &Tree, &Node)> {
        let trees = self.trees.iter().enumerate().filter_map(|(file, tree)| Some((file, tree.as_ref()?)));
        trees.flat_map(|(file, tree)| tree.objects().map(move |object| (file, tree, object)))
    }

    /// Files that should be readable, and are not. Templates are not meant to be.
    fn unread(&self) -> Vec<String> {
        let files =
            self.files.iter().zip(&self.trees).filter(|(file, tree)| tree.is_none() && !file.text.contains("{{"));
        let yaml = files.filter(|(file, _)| ends(file, &["yaml", "yml"]));
        yaml.map(|(file, _)| file.path.clone()).collect()
    }

    pub(super) fn place_of(&self, file: usize, node: &Node, field: &str) -> Place {
        let File { path, text } = &self.files[file];
        let before = text.get(..node.at.start).unwrap_or_default();
        Place { path: path.clone(), line: before.matches('\n').count() + 1, field: field.to_owned() }
    }
}

impl Hit<'_> {
    pub(super) fn place(&self, reading: &Reading<'_>) -> Place {
        reading.place_of(self.file, self.found.node, &self.field)
    }
}

/// Whether the name of a file ends so.
fn ends(file: &File, with: &[&str]) -> bool {
    file.path.rsplit_once('.').is_some_and(|(_, end)| with.iter().any(|it| end.eq_ignore_ascii_case(it)))
}

/// A manifest of the cluster.
pub(super) struct Manifest<'a> {
    pub(super) file: usize,
    pub(super) tree: &'a Tree,
    pub(super) object: &'a Node,
    /// Its name is filled in, so that it is the manifest of others, too.
    pub(super) is_filled_in: bool,
}

/// The one place that says the release of a cluster, and can be changed alone.
pub(super) fn place<'a>(reading: &'a Reading<'_>, wish: &Wish<'_>) -> Result<Hit<'a>, SourceError> {
    let hit = said_at(reading, wish)?;
    contradiction(reading, &manifests(reading, &Fluxes::of(reading), wish), wish).map_or(Ok(hit), Err)
}

/// The one place that says the release of a cluster.
pub(super) fn said_at<'a>(reading: &'a Reading<'_>, wish: &Wish<'_>) -> Result<Hit<'a>, SourceError> {
    let fluxes = Fluxes::of(reading);
    let manifests = manifests(reading, &fluxes, wish);
    let overlays = Overlays::of(reading);
    let homes: Vec<usize> = manifests.iter().map(|manifest| manifest.file).collect();
    let is_meant = |hit: &Hit<'_>| wish.only.is_none_or(|only| is_below(&reading.files[hit.file].path, only));
    let patched: Vec<Hit<'a>> = overlays.hits(wish, &homes).into_iter().filter(is_meant).collect();
    let mut hits = if patched.is_empty() { said(reading, &fluxes, &manifests, wish)? } else { patched };
    hits.retain(is_meant);
    hits.dedup_by_key(|hit| (hit.file, hit.found.node.at.start));
    match (hits.pop(), hits.is_empty()) {
        (Some(hit), true) => Ok(hit),
        (Some(hit), false) => {
            hits.push(hit);
            Err(SourceError::Ambiguous { places: hits.iter().map(|hit| hit.place(reading)).collect() })
        }
        (None, _) => Err(nowhere(reading, &manifests, wish)),
    }
}

/// Whether a file is another one, or in a folder.
fn is_below(path: &str, folder: &str) -> bool {
    let folder = folder.trim_start_matches("./").trim_end_matches('/');
    path.strip_prefix(folder).is_some_and(|rest| folder.is_empty() || rest.is_empty() || rest.starts_with('/'))
}

/// What the manifests themselves say; a variable is looked up.
fn said<'a>(
    reading: &'a Reading<'_>,
    fluxes: &Fluxes<'a>,
    manifests: &[Manifest<'a>],
    wish: &Wish<'_>,
) -> Result<Vec<Hit<'a>>, SourceError> {
    let mut hits = Vec::new();
    for Manifest { file, tree, object, is_filled_in } in manifests {
        let Some(found) = tree.at(object, wish.trigger.path()) else { continue };
        let hit = Hit { file: *file, tree, found, field: wish.trigger.field() };
        match found.meant.scalar().and_then(variable::name) {
            Some(name) => {
                let set = fluxes.set(reading, wish.cluster, name, *file, *is_filled_in);
                if set.is_empty() {
                    return Err(SourceError::Variable { place: hit.place(reading), variable: name.to_owned() });
                }
                hits.extend(set);
            }
            None if *is_filled_in => return Err(SourceError::Shared { place: hit.place(reading) }),
            None => hits.push(hit),
        }
    }
    Ok(hits)
}

/// The manifests of a cluster. One without a namespace may be in any.
pub(super) fn manifests<'a>(reading: &'a Reading<'_>, fluxes: &Fluxes<'a>, wish: &Wish<'_>) -> Vec<Manifest<'a>> {
    let own = reading.objects().filter_map(|(file, tree, object)| {
        if !is_of_kind(tree, object, wish.trigger) {
            return None;
        }
        let name = tree.text(object, &["metadata", "name"])?;
        let namespace = tree.text(object, &["metadata", "namespace"]);
        let is_plain = name == wish.cluster.name.as_str() && is_namespace(namespace, wish.cluster);
        let is_filled_in = !is_plain && fluxes.fill_in(name, namespace, wish.cluster);
        (is_plain || is_filled_in).then_some(Manifest { file, tree, object, is_filled_in })
    });
    own.collect()
}

fn is_namespace(namespace: Option<&str>, cluster: &NamespacedName) -> bool {
    namespace.is_none_or(|it| it == cluster.namespace.as_str() || variable::name(it).is_some())
}

fn is_of_kind(tree: &Tree, object: &Node, trigger: Trigger) -> bool {
    let group = tree.text(object, &["apiVersion"]).and_then(|version| version.split_once('/')).map(|(group, _)| group);
    tree.text(object, &["kind"]) == Some(trigger.kind()) && group == Some(trigger.group())
}

/// The other field of a distribution. It is the more exact one, and wins.
fn contradiction(reading: &Reading<'_>, manifests: &[Manifest<'_>], wish: &Wish<'_>) -> Option<SourceError> {
    if wish.trigger != Trigger::Distribution {
        return None;
    }
    manifests.iter().find_map(|Manifest { file, tree, object, .. }| {
        let found = tree.at(object, &["spec", "distribution", "fullVersion"])?;
        let is_empty = matches!(found.meant.scalar(), Some("" | "null" | "~"));
        let place = reading.place_of(*file, found.node, "spec.distribution.fullVersion");
        (!is_empty).then_some(SourceError::Contradiction { place })
    })
}

fn nowhere(reading: &Reading<'_>, manifests: &[Manifest<'_>], wish: &Wish<'_>) -> SourceError {
    let place = |manifest: &Manifest<'_>| reading.place_of(manifest.file, manifest.object, wish.trigger.kind());
    let places: Vec<Place> = manifests.iter().map(place).collect();
    if places.is_empty() {
        let (kind, cluster) = (wish.trigger.kind(), wish.cluster.clone());
        return SourceError::NoCluster { kind, cluster, unread: reading.unread() };
    }
    SourceError::NoField { places, field: wish.trigger.field() }
}
