//! kustomize: what overlays make of the manifests below them.

use std::collections::BTreeSet;

use granit_parser::ScalarStyle;

use super::Wish;
use super::find::{Hit, Reading};
use super::tree::{Content, Node, Tree};

const NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
const GROUP: &str = "kustomize.config.k8s.io/";
/// What brings other files in.
const BRINGING: [&str; 3] = ["resources", "bases", "components"];
/// What changes them.
const CHANGING: [&str; 3] = ["patches", "patchesJson6902", "patchesStrategicMerge"];
/// What changes them in ways that are not looked into.
const REWRITING: [&str; 8] =
    ["replacements", "transformers", "components", "vars", "namePrefix", "nameSuffix", "replicas", "configurations"];

/// The overlays of the files.
pub(super) struct Overlays<'a> {
    reading: &'a Reading<'a>,
    all: Vec<Overlay<'a>>,
}

struct Overlay<'a> {
    file: usize,
    tree: &'a Tree,
    object: &'a Node,
}

/// Whether a file is an overlay by its name.
pub(super) fn is_named(path: &str) -> bool {
    NAMES.contains(&path.rsplit('/').next().unwrap_or(path))
}

fn is_overlay(path: &str, tree: &Tree, object: &Node) -> bool {
    match tree.text(object, &["apiVersion"]) {
        Some(version) => version.starts_with(GROUP),
        None => is_named(path),
    }
}

/// The patches that stand inside of an overlay, as blocks of text: where each begins, and what it says.
pub(super) fn inline(path: &str, text: &str, tree: &Tree) -> Vec<(usize, Tree)> {
    let overlays = tree.objects().filter(|object| is_overlay(path, tree, object));
    let blocks = overlays.flat_map(|object| patches(tree, object)).filter_map(|patch| {
        let node = patch.text?;
        let is_literal = matches!(&node.content, Content::Scalar { style: ScalarStyle::Literal, .. });
        let block = text.get(node.at.clone()).filter(|_| is_literal)?;
        // A block begins with its sign, in some readings of where it stands.
        let head = if block.starts_with('|') { block.find('\n')? + 1 } else { 0 };
        let begins = text.get(..node.at.start + head)?.rfind('\n')? + 1;
        let read = Tree::read(text.get(begins..node.at.end)?, begins).ok()?;
        Some((node.at.start, read))
    });
    blocks.collect()
}

/// One patch of an overlay.
struct Patch<'a> {
    /// The name that it is for, if it says so.
    target: Option<&'a str>,
    kind: Option<&'a str>,
    /// The file that it is in.
    path: Option<&'a str>,
    /// Its text, if it stands in the overlay.
    text: Option<&'a Node>,
}

fn patches<'a>(tree: &'a Tree, object: &'a Node) -> Vec<Patch<'a>> {
    let of = |node: &'a Node| {
        let Some(text) = node.scalar() else {
            let target = tree.text(node, &["target", "name"]);
            let kind = tree.text(node, &["target", "kind"]);
            let text = tree.at(node, &["patch"]).map(|found| found.meant);
            return Patch { target, kind, path: tree.text(node, &["path"]), text };
        };
        // What is listed alone is a file, or a patch.
        let is_path = !text.contains('\n');
        Patch { target: None, kind: None, path: is_path.then_some(text), text: (!is_path).then_some(node) }
    };
    CHANGING.iter().flat_map(|key| tree.list(object, &[key])).map(of).collect()
}

impl<'a> Overlays<'a> {
    pub(super) fn of(reading: &'a Reading<'_>) -> Self {
        let is_overlay = |file: usize, tree: &Tree, object: &Node| is_overlay(&reading.files[file].path, tree, object);
        let all = reading.objects().filter(|(file, tree, object)| is_overlay(*file, tree, object));
        let all = all.map(|(file, tree, object)| Overlay { file, tree, object }).collect();
        Self { reading, all }
    }

    /// Whether an overlay makes something else of a file that it brings.
    pub(super) fn change(&self, file: usize) -> bool {
        self.all.iter().any(|overlay| {
            let is_there = |key: &&str| overlay.tree.at(overlay.object, &[key]).is_some();
            REWRITING.iter().chain(&CHANGING).any(is_there) && self.brought(overlay).contains(&file)
        })
    }

    /// Where overlays say the release of a cluster whose manifests are in these files.
    pub(super) fn hits(&self, wish: &Wish<'_>, homes: &[usize]) -> Vec<Hit<'a>> {
        let mut hits = Vec::new();
        for overlay in &self.all {
            let brought = self.brought(overlay);
            // A base that is not in these files may have the cluster.
            let is_about = homes.is_empty() || homes.iter().any(|file| brought.contains(file));
            if !is_about {
                continue;
            }
            hits.extend(
                patches(overlay.tree, overlay.object).into_iter().flat_map(|it| self.patched(overlay, &it, wish)),
            );
            if homes.iter().any(|file| brought.contains(file)) {
                hits.extend(Self::labelled(overlay, wish));
            }
        }
        hits.sort_by_key(|hit| (hit.file, hit.found.node.at.start));
        hits
    }

    /// The files that an overlay brings in, also through others.
    fn brought(&self, overlay: &Overlay<'a>) -> BTreeSet<usize> {
        let mut brought = BTreeSet::new();
        let mut left = vec![overlay.file];
        while let Some(file) = left.pop() {
            for overlay in self.all.iter().filter(|overlay| overlay.file == file) {
                let listed = BRINGING.iter().flat_map(|key| overlay.tree.list(overlay.object, &[key]));
                for path in listed.filter_map(Node::scalar) {
                    left.extend(self.files_at(overlay.file, path).into_iter().filter(|file| brought.insert(*file)));
                }
            }
        }
        brought
    }

    /// The file of a path that an overlay names, or the overlay in a folder.
    fn files_at(&self, overlay: usize, path: &str) -> Vec<usize> {
        let home = self.reading.files[overlay].path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let Some(path) = joined(home, path) else { return Vec::new() };
        let is_it = |it: &str| it == path || NAMES.iter().any(|name| joined(&path, name).as_deref() == Some(it));
        let files = self.reading.files.iter().enumerate().filter(|(_, file)| is_it(&file.path));
        files.map(|(file, _)| file).collect()
    }

    fn patched(&self, overlay: &Overlay<'a>, patch: &Patch<'a>, wish: &Wish<'_>) -> Vec<Hit<'a>> {
        let is_for = patch.target.is_none_or(|name| name == wish.cluster.name.as_str())
            && patch.kind.is_none_or(|kind| kind == wish.trigger.kind());
        if !is_for {
            return Vec::new();
        }
        let inline =
            patch.text.and_then(|node| Some((overlay.file, self.reading.inline(overlay.file, node.at.start)?)));
        let files = patch.path.map(|path| self.files_at(overlay.file, path)).unwrap_or_default();
        let files = files.into_iter().filter_map(|file| Some((file, self.reading.trees[file].as_ref()?)));
        let is_targeted = patch.target.is_some();
        let within = |(file, tree): (usize, &'a Tree)| -> Vec<Hit<'a>> {
            let found = tree.documents.iter().filter_map(|node| said(tree, node, wish, is_targeted));
            found.map(|(found, field)| Hit { file, tree, found, field }).collect()
        };
        inline.into_iter().chain(files).flat_map(within).collect()
    }

    /// A label that it gives to everything.
    fn labelled(overlay: &Overlay<'a>, wish: &Wish<'_>) -> Vec<Hit<'a>> {
        let Some(label) = wish.trigger.label() else { return Vec::new() };
        let Overlay { file, tree, object } = *overlay;
        let common = tree.at(object, &["commonLabels", label]);
        let pairs = tree.list(object, &["labels"]).into_iter().filter_map(|node| tree.at(node, &["pairs", label]));
        let found = common.into_iter().chain(pairs);
        found.map(|found| Hit { file, tree, found, field: format!("labels.{label}") }).collect()
    }
}

/// Where a patch says the release: as a part of the object, or as an operation.
fn said<'a>(
    tree: &'a Tree,
    patch: &'a Node,
    wish: &Wish<'_>,
    is_targeted: bool,
) -> Option<(super::tree::Found<'a>, String)> {
    if let Content::List(operations) = &patch.content {
        let pointer = wish.trigger.pointer();
        let sets = |node: &&Node| {
            let op = tree.text(node, &["op"]);
            tree.text(node, &["path"]) == Some(&pointer) && matches!(op, Some("add" | "replace"))
        };
        // The last one wins.
        let operation = operations.iter().rfind(sets).filter(|_| is_targeted)?;
        return Some((tree.at(operation, &["value"])?, format!("value of {pointer}")));
    }
    let is_kind = tree.text(patch, &["kind"]).is_none_or(|kind| kind == wish.trigger.kind());
    let name = tree.text(patch, &["metadata", "name"]);
    let is_name = is_targeted || name == Some(wish.cluster.name.as_str());
    let found = tree.at(patch, wish.trigger.path()).filter(|_| is_kind && is_name)?;
    Some((found, wish.trigger.field()))
}

/// A path from a folder. `None` where it leads out of the repository, or to another host.
fn joined(folder: &str, path: &str) -> Option<String> {
    if path.contains("://") {
        return None;
    }
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}
