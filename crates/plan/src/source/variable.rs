//! Variables that Flux fills in (`postBuild.substitute`).

use windlass_api::name::NamespacedName;

use super::find::{Hit, Reading};
use super::tree::{Content, Node, Tree};

const GROUP: &str = "kustomize.toolkit.fluxcd.io/";
const SUBSTITUTE: [&str; 3] = ["spec", "postBuild", "substitute"];

/// What fills variables in.
pub(super) struct Fluxes<'a>(Vec<Flux<'a>>);

struct Flux<'a> {
    file: usize,
    tree: &'a Tree,
    object: &'a Node,
}

/// The name of the variable that a text consists of: `${release}`, or with what it is otherwise: `${release:=1.2.3}`.
pub(super) fn name(text: &str) -> Option<&str> {
    let inside = text.trim_end().strip_prefix("${")?.strip_suffix('}')?;
    let name = inside.split(':').next().unwrap_or(inside);
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (!name.is_empty() && name.bytes().all(is_name)).then_some(name)
}

impl<'a> Fluxes<'a> {
    pub(super) fn of(reading: &'a Reading<'_>) -> Self {
        let is_flux = |tree: &Tree, object: &Node| {
            let version = tree.text(object, &["apiVersion"]).unwrap_or_default();
            version.starts_with(GROUP) && tree.text(object, &["kind"]) == Some("Kustomization")
        };
        let all = reading.objects().filter(|(_, tree, object)| is_flux(tree, object));
        Self(all.map(|(file, tree, object)| Flux { file, tree, object }).collect())
    }

    /// Whether a manifest becomes that of a cluster when it is filled in.
    pub(super) fn fill_in(&self, name: &str, namespace: Option<&str>, cluster: &NamespacedName) -> bool {
        self.0.iter().any(|flux| flux.makes(name, namespace, cluster))
    }

    /// Where a variable is set for a cluster whose manifest is in a file.
    pub(super) fn set(
        &self,
        reading: &Reading<'_>,
        cluster: &NamespacedName,
        variable: &str,
        file: usize,
        is_filled_in: bool,
    ) -> Vec<Hit<'a>> {
        let name = |flux: &Flux<'_>| flux.values().any(|value| value == cluster.name.as_str());
        let path = &reading.files[file].path;
        let hit = |flux: &Flux<'a>| {
            let field = [SUBSTITUTE.as_slice(), &[variable]].concat();
            let found = flux.tree.at(flux.object, &field)?;
            Some(Hit { file: flux.file, tree: flux.tree, found, field: field.join(".") })
        };
        let setting = || self.0.iter().filter(|flux| flux.values_of(variable).is_some());
        let chosen: Vec<&Flux<'a>> = if is_filled_in {
            setting().filter(|flux| name(flux)).collect()
        } else {
            // Those that bring this very file, if they say so.
            let bring: Vec<_> = setting().filter(|flux| flux.brings(path)).collect();
            if bring.is_empty() { setting().collect() } else { bring }
        };
        chosen.into_iter().filter_map(hit).collect()
    }
}

impl<'a> Flux<'a> {
    fn entries(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let found = self.tree.at(self.object, &SUBSTITUTE);
        let entries = match found.map(|found| &found.meant.content) {
            Some(Content::Map(entries)) => entries.as_slice(),
            _ => &[],
        };
        entries.iter().filter_map(|(key, value)| Some((key.scalar()?, value.scalar()?)))
    }

    fn values(&self) -> impl Iterator<Item = &'a str> {
        self.entries().map(|(_, value)| value)
    }

    fn values_of(&self, variable: &str) -> Option<&'a str> {
        self.entries().find(|(key, _)| *key == variable).map(|(_, value)| value)
    }

    /// Whether a manifest becomes that of a cluster.
    fn makes(&self, name: &str, namespace: Option<&str>, cluster: &NamespacedName) -> bool {
        let is_namespace = namespace.is_none_or(|it| self.filled_in(it) == cluster.namespace.as_str());
        name.contains("${") && self.filled_in(name) == cluster.name.as_str() && is_namespace
    }

    fn filled_in(&self, text: &str) -> String {
        let fill = |text: String, (key, value): (&str, &str)| text.replace(&format!("${{{key}}}"), value);
        self.entries().fold(text.to_owned(), fill)
    }

    /// Whether it brings a file: one in its folder, or below.
    fn brings(&self, path: &str) -> bool {
        let folder = self.tree.text(self.object, &["spec", "path"]).unwrap_or_default();
        let folder = folder.trim_start_matches("./").trim_matches('/');
        !folder.is_empty() && path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
    }
}
