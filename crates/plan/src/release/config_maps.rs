//! A release as `ConfigMap`s: one for each kind of object that it has something to say about.
//!
//! `docs/releases.md` describes the format for those who write them. In short: a `ConfigMap` is named `<kind>-<X-Y-Z>`, carries
//! the version as a label, and has the defaults of the kind's `spec` as YAML in `data.spec`. `data.releaseOwned` and
//! `data.userOwned` list the fields that are not simply set where they are empty. A key that is not known is refused: a typing
//! error in one of the lists would otherwise leave fields to somebody else.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use windlass_api::kind::release::ReleaseConfigMap;
use windlass_api::label;
use windlass_api::name::Namespace;
use windlass_api::version::KubernetesVersion;

use super::defaults::{FieldDefault, FieldOwner, KindDefaults};
use super::error::{Subject, quoted, quoted_list};
use super::field::FieldPath;
use super::{ImageTag, MachineImage, Release, ReleaseError, ReleaseState, Spelling, yaml};
use crate::profile::{Profile, Profiles};

const SPEC: &str = "spec";
const RELEASE_OWNED: &str = "releaseOwned";
const USER_OWNED: &str = "userOwned";
const STATE: &str = "state";

/// The keys of `data`.
const KEYS: [&str; 4] = [SPEC, RELEASE_OWNED, USER_OWNED, STATE];

/// Where kinds carry the version of Kubernetes. The field is the release's, whether it is listed or not.
pub(crate) const VERSION_FIELDS: [(&str, &[&str]); 6] = [
    ("cluster", &["spec", "topology", "version"]),
    ("kubeadmcontrolplane", &["spec", "version"]),
    ("machine", &["spec", "version"]),
    ("machinedeployment", &["spec", "template", "spec", "version"]),
    ("machinepool", &["spec", "template", "spec", "version"]),
    ("machineset", &["spec", "template", "spec", "version"]),
];

/// Fields that belong to one object, at any depth: no release can know them.
const IDENTITY: [&str; 5] = ["clusterName", "controlPlaneEndpoint", "dataSecretName", "providerID", "selector"];

/// What would be the identity of the object itself, if it were not beside `spec`.
const OUTSIDE_SPEC: [&str; 6] = ["apiVersion", "kind", "metadata", "name", "namespace", "status"];

/// What a release may say about the metadata of what is made from a template.
const METADATA: [&str; 2] = ["annotations", "labels"];

/// The kind whose defaults have the images of Kubernetes, and where.
const KUBEADM: (&str, [&str; 3]) = ("kubeadmcontrolplane", ["spec", "kubeadmConfigSpec", "clusterConfiguration"]);

impl Release {
    /// Reads the release of a set of `ConfigMap`s: all of it, or nothing. The set is all there is of one version in one
    /// namespace; the profiles say which of it is the image of machines.
    pub fn from_config_maps(maps: &[ReleaseConfigMap], profiles: &Profiles) -> Result<Self, ReleaseError> {
        let mut read: Vec<Read> = maps.iter().map(Read::new).collect::<Result<_, _>>()?;
        // Whoever lists them may do so in any order.
        read.sort_by(|a, b| (&a.namespace, &a.kind).cmp(&(&b.namespace, &b.kind)));
        let Some(first) = read.first() else {
            let subject = Subject::new("ConfigMap", None, Some("of a release"));
            return Err(
                subject.wrong(label::RELEASE_VERSION.name, "is on none: there is no release without a ConfigMap")
            );
        };
        for (one, next) in read.iter().zip(read.iter().skip(1)) {
            one.agrees_with(next)?;
        }
        let kubernetes = kubernetes(&read)?;
        let spelling = Spelling::ConfigMaps(first.namespace.clone());
        let mut release = Self::of(spelling, first.version.clone(), kubernetes);
        release.state = first.state;
        if let Some(map) = read.iter().find(|map| map.kind == KUBEADM.0) {
            release.read_kubeadm(map)?;
        }
        for map in &mut read {
            let Some(profile) = profiles.of_map(&map.kind) else { continue };
            let image = profile.image.as_ref().map(|image| map.own_image(image.field.path())).transpose()?.flatten();
            if let (Some(name), true) = (image, profile == Profile::built_in()) {
                let key = profile.image.as_ref().map(|image| image.field.path().to_string()).unwrap_or_default();
                let name = map.subject.read(key, &name)?;
                release.images = vec![MachineImage { name, os: None, reference: None }];
            }
        }
        release.defaults = read.into_iter().map(|map| (map.kind, map.defaults)).collect();
        Ok(release.sealed())
    }

    /// The images that kubeadm is told about.
    fn read_kubeadm(&mut self, map: &Read) -> Result<(), ReleaseError> {
        let text = |parts: &[&str]| {
            let path = FieldPath::new(KUBEADM.1.iter().chain(parts).map(|part| (*part).to_owned()).collect());
            let value = map.defaults.fields.get(&path).map(|field| &field.value);
            let text = value.map(|value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned));
            match text {
                None => Ok((path, None)),
                Some(Some(text)) => Ok((path, Some(text))),
                Some(None) => Err(map.subject.wrong(path.to_string(), "is no text; accepted is text in quotes")),
            }
        };
        let (_, repository) = text(&["imageRepository"])?;
        let component = |place: &[&str]| {
            let (path, tag) = text(&[place, &["imageTag"]].concat())?;
            let (_, own) = text(&[place, &["imageRepository"]].concat())?;
            let Some(tag) = tag else { return Ok(None) };
            let Some(repository) = own.or_else(|| repository.clone()) else {
                let problem = "has no imageRepository beside it or in clusterConfiguration; \
                               without one it depends on kubeadm which image it is";
                return Err(map.subject.wrong(path.to_string(), problem));
            };
            Ok(Some(ImageTag { repository, tag }))
        };
        self.etcd = component(&["etcd", "local"])?;
        self.coredns = component(&["dns"])?;
        self.image_repository = repository;
        Ok(())
    }
}

/// The version of Kubernetes that the kinds agree on.
fn kubernetes(maps: &[Read]) -> Result<KubernetesVersion, ReleaseError> {
    let mut versions = maps.iter().filter_map(|map| map.kubernetes.as_ref().map(|(key, version)| (map, key, version)));
    let Some((first, first_key, version)) = versions.next() else {
        let subject = maps.first().map_or_else(|| Subject::new("ConfigMap", None, None), |map| map.subject.clone());
        let kinds = VERSION_FIELDS.map(|(kind, _)| kind);
        let problem = format!(
            "has no version of Kubernetes, and neither has another ConfigMap of the release; \
                               accepted is one for any of {}",
            quoted_list(kinds)
        );
        return Err(subject.wrong(format!("data.{SPEC}"), problem));
    };
    for (map, key, other) in versions {
        if other != version {
            let problem =
                format!("is {other}, and {first_key} of {} is {version}: a release has one version", first.subject);
            return Err(map.subject.wrong(key, problem));
        }
    }
    Ok(version.clone())
}

/// A `ConfigMap` of a release, read.
struct Read {
    subject: Subject,
    namespace: Namespace,
    kind: String,
    version: KubernetesVersion,
    state: ReleaseState,
    /// The version of Kubernetes, and the key that it was found at.
    kubernetes: Option<(String, KubernetesVersion)>,
    defaults: KindDefaults,
}

impl Read {
    fn new(map: &ReleaseConfigMap) -> Result<Self, ReleaseError> {
        let metadata = &map.metadata;
        let subject = Subject::new("ConfigMap", metadata.namespace.as_deref(), metadata.name.as_deref());
        let namespace = subject.read("metadata.namespace", metadata.namespace.as_deref().unwrap_or_default())?;
        let (kind, version) = name(&subject, metadata.name.as_deref().unwrap_or_default())?;
        check_label(&subject, metadata.labels.as_ref(), &version)?;
        check_keys(&subject, map)?;

        let Some(text) = map.data.get(SPEC) else {
            return Err(subject.wrong(format!("data.{SPEC}"), "is missing; accepted are the defaults of spec, as YAML"));
        };
        let spec: Option<Map<String, Value>> = read_yaml(&subject, SPEC, text)?;
        let Some(spec) = spec.filter(|spec| !spec.is_empty()) else {
            return Err(subject.wrong(format!("data.{SPEC}"), "is empty; accepted is at least one field"));
        };
        let mut fields = BTreeMap::new();
        check_identity(&subject, &spec)?;
        flatten(&subject, &mut vec![SPEC.to_owned()], spec, &mut fields)?;
        let mut defaults = KindDefaults { fields };
        let owners = owners(&subject, map)?;
        own(&subject, &mut defaults, &owners)?;
        let kubernetes = own_version(&subject, &kind, &mut defaults)?;
        let state = state(&subject, map)?;
        Ok(Self { subject, namespace, kind, version, state, kubernetes, defaults })
    }

    /// The image that machines are made from. The field is the release's: what is on the image and the version belong together.
    fn own_image(&mut self, path: &FieldPath) -> Result<Option<String>, ReleaseError> {
        let Some(field) = self.defaults.fields.get_mut(path) else { return Ok(None) };
        let key = path.to_string();
        if field.owner == FieldOwner::User {
            return Err(self.subject.wrong(key, "is the image of the release, and cannot be in data.userOwned"));
        }
        field.owner = FieldOwner::Release;
        match field.value.as_str().filter(|text| !text.is_empty()) {
            Some(text) => Ok(Some(text.to_owned())),
            None => Err(self.subject.wrong(key, "is no name; accepted is that of a machine image, as text")),
        }
    }

    /// Whether another one, which is next to it in order, can be of the same release.
    fn agrees_with(&self, next: &Self) -> Result<(), ReleaseError> {
        let differs = |key: &str, own: &str, other: &str| {
            let problem = format!("is {}, and that of {} is {}", quoted(other), self.subject, quoted(own));
            Err(next.subject.wrong(key, problem))
        };
        if self.namespace != next.namespace {
            return differs("metadata.namespace", self.namespace.as_str(), next.namespace.as_str());
        }
        if self.version != next.version {
            let [own, other] = [self, next].map(|map| label::RELEASE_VERSION.text(&map.version));
            return differs(label::RELEASE_VERSION.name, &own, &other);
        }
        if self.kind == next.kind {
            return Err(next.subject.wrong("metadata.name", format!("is one for {} once more", quoted(&next.kind))));
        }
        if self.state != next.state {
            return differs(&format!("data.{STATE}"), self.state.as_str(), next.state.as_str());
        }
        Ok(())
    }
}

/// The kind and the version in the name of a `ConfigMap`.
fn name(subject: &Subject, text: &str) -> Result<(String, KubernetesVersion), ReleaseError> {
    let key = "metadata.name";
    let form = "accepted are a kind in lower case and a version, as in machinepool-21-0-0";
    let Some((kind, version)) = text.split_once('-') else {
        return Err(subject.wrong(key, format!("is {}, which has no version in it; {form}", quoted(text))));
    };
    if kind.is_empty() || !kind.chars().all(|character| character.is_ascii_lowercase() || character.is_ascii_digit()) {
        return Err(subject.wrong(key, format!("is {}, which begins with no kind; {form}", quoted(text))));
    }
    let version = KubernetesVersion::from_dashed(version).map_err(|source| subject.unreadable(key, &source))?;
    Ok((kind.to_owned(), version))
}

/// The label is what a release is found by; the name is what people see. They say the same.
fn check_label(
    subject: &Subject,
    labels: Option<&BTreeMap<String, String>>,
    version: &KubernetesVersion,
) -> Result<(), ReleaseError> {
    let key = label::RELEASE_VERSION.name;
    let wanted = quoted(&label::RELEASE_VERSION.text(version));
    let Some(text) = labels.and_then(|labels| labels.get(key)) else {
        return Err(subject.wrong(key, format!("is missing; the name of the ConfigMap asks for {wanted}")));
    };
    let found: KubernetesVersion = subject.read(key, text)?;
    if found != *version {
        return Err(subject.wrong(key, format!("is {}, and should be {wanted}, as the name has it", quoted(text))));
    }
    Ok(())
}

fn check_keys(subject: &Subject, map: &ReleaseConfigMap) -> Result<(), ReleaseError> {
    if let Some(key) = map.binary_data.keys().next() {
        return Err(subject.wrong(format!("binaryData.{key}"), "is not known; a release is in data"));
    }
    for (key, text) in &map.data {
        if !KEYS.contains(&key.as_str()) {
            let problem = format!("is not known; accepted are {}", quoted_list(KEYS));
            return Err(subject.wrong(format!("data.{key}"), problem));
        }
        subject.check_length(&format!("data.{key}"), text)?;
    }
    Ok(())
}

fn read_yaml<T: serde::de::DeserializeOwned>(subject: &Subject, key: &str, text: &str) -> Result<T, ReleaseError> {
    yaml::document(text).map_err(|source| subject.unreadable(format!("data.{key}"), &source))
}

/// Refuses what tells one object from another.
fn check_identity(subject: &Subject, spec: &Map<String, Value>) -> Result<(), ReleaseError> {
    let Some(key) = OUTSIDE_SPEC.iter().find(|key| spec.contains_key(**key)) else { return Ok(()) };
    let problem = "is not a default: data.spec has the fields within spec, and the object itself is its owner's";
    Err(subject.wrong(format!("spec.{key}"), problem))
}

/// The fields of a mapping, each with its path. A list is one field: there is no telling whose an element is.
fn flatten(
    subject: &Subject,
    path: &mut Vec<String>,
    mapping: Map<String, Value>,
    fields: &mut BTreeMap<FieldPath, FieldDefault>,
) -> Result<(), ReleaseError> {
    let within_metadata = path.last().is_some_and(|last| last == "metadata");
    for (key, value) in mapping {
        path.push(key);
        let here = FieldPath::new(path.clone());
        let key = path.last().map(String::as_str).unwrap_or_default();
        if !FieldPath::is_part(key) {
            let problem = format!("has {} in it, which cannot be the name of a field", quoted(key));
            path.pop();
            return Err(subject.wrong(FieldPath::new(path.clone()).to_string(), problem));
        }
        let is_reference = key.ends_with("Ref") || key.ends_with("Refs");
        if is_reference || IDENTITY.contains(&key) || (within_metadata && !METADATA.contains(&key)) {
            let problem = "is not a default: it belongs to one object, and no release can know it";
            return Err(subject.wrong(here.to_string(), problem));
        }
        match value {
            Value::Null => return Err(subject.wrong(here.to_string(), "has no value; accepted is one, or no field")),
            Value::Object(mapping) if !mapping.is_empty() => flatten(subject, path, mapping, fields)?,
            value => {
                fields.insert(here, FieldDefault { value, owner: FieldOwner::SetIfEmpty });
            }
        }
        path.pop();
    }
    Ok(())
}

/// The fields that are listed as somebody's.
fn owners(subject: &Subject, map: &ReleaseConfigMap) -> Result<Vec<(FieldPath, FieldOwner, String)>, ReleaseError> {
    let mut owners = Vec::new();
    for (key, owner) in [(RELEASE_OWNED, FieldOwner::Release), (USER_OWNED, FieldOwner::User)] {
        let Some(text) = map.data.get(key) else { continue };
        let listed: Vec<String> = read_yaml(subject, key, text)?;
        for (position, text) in listed.iter().enumerate() {
            let at = format!("data.{key}[{position}]");
            owners.push((subject.read(at.as_str(), text)?, owner, at));
        }
    }
    Ok(owners)
}

/// Gives fields to their owners. A field has one: it may be listed once, itself or with all that it is within.
fn own(
    subject: &Subject,
    defaults: &mut KindDefaults,
    owners: &[(FieldPath, FieldOwner, String)],
) -> Result<(), ReleaseError> {
    let mut owned: BTreeSet<FieldPath> = BTreeSet::new();
    for (path, owner, at) in owners {
        let within = defaults.fields.iter_mut().filter(|(field, _)| path.contains(field));
        let mut found = false;
        for (field, default) in within {
            found = true;
            if !owned.insert(field.clone()) {
                return Err(subject.wrong(at.as_str(), format!("is {path}, and {field} has an owner already")));
            }
            default.owner = *owner;
        }
        if !found {
            let problem = format!("is {path}, and data.{SPEC} has no such field");
            return Err(subject.wrong(at.as_str(), problem));
        }
    }
    Ok(())
}

/// The version of Kubernetes among the defaults of a kind. It is what an update is about, so nobody else can own it.
fn own_version(
    subject: &Subject,
    kind: &str,
    defaults: &mut KindDefaults,
) -> Result<Option<(String, KubernetesVersion)>, ReleaseError> {
    let Some((_, parts)) = VERSION_FIELDS.iter().find(|(known, _)| *known == kind) else { return Ok(None) };
    let path = FieldPath::new(parts.iter().map(|part| (*part).to_owned()).collect());
    let Some(field) = defaults.fields.get_mut(&path) else { return Ok(None) };
    let key = path.to_string();
    if field.owner == FieldOwner::User {
        return Err(subject.wrong(key, "is the version of the release, and cannot be in data.userOwned"));
    }
    field.owner = FieldOwner::Release;
    let Some(text) = field.value.as_str() else {
        return Err(subject.wrong(key, "is no version; accepted is text such as \"v1.21.4\""));
    };
    let version = subject.read(key.as_str(), text)?;
    Ok(Some((key, version)))
}

fn state(subject: &Subject, map: &ReleaseConfigMap) -> Result<ReleaseState, ReleaseError> {
    let Some(text) = map.data.get(STATE) else { return Ok(ReleaseState::default()) };
    let found = ReleaseState::ALL.into_iter().find(|state| state.as_str() == text.trim());
    found.ok_or_else(|| {
        let accepted = quoted_list(ReleaseState::ALL.map(ReleaseState::as_str));
        subject.wrong(format!("data.{STATE}"), format!("is {}; accepted are {accepted}", quoted(text)))
    })
}
