//! Infrastructure profiles: which kind of template the machines of a provider are made from, and where in it image, class and
//! storage class are. They are data: a document of this form each, in a `ConfigMap` beside Windlass.
//!
//! ```yaml
//! apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
//! template: DevMachineTemplate
//! cluster: DevCluster
//! image: {field: spec.template.spec.backend.docker.customImage, required: false}
//! ```
//!
//! One is built in. A profile that cannot be read spoils no other; whoever needs it is told what is wrong with which field.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use windlass_api::kind::{ContractReference, bootstrap, cluster_api, control_plane, wcp};

use crate::release::{Cause, FieldPath, quoted, quoted_list, yaml};

/// Where profiles are: where Windlass itself is, so that nobody adds one who may not change Windlass.
pub const NAMESPACE: &str = "windlass-system";

/// The key of `data` that a profile is at.
pub const KEY: &str = "profile";

/// Profiles that come with Windlass, by name. They count once they are installed.
pub const SHIPPED: [(&str, &str); 2] = [
    ("cluster-api-dev", include_str!("profile/cluster-api-dev.yaml")),
    ("cluster-api-docker", include_str!("profile/cluster-api-docker.yaml")),
];

/// Where in every template the machine is: Cluster API's contract has it so.
const MACHINE: [&str; 3] = ["spec", "template", "spec"];

/// How the name of a template's kind ends, by the same contract.
const SUFFIX: &str = "Template";

/// Groups whose kinds are Cluster API's own.
const NOT_INFRASTRUCTURE: [&str; 3] = [cluster_api::GROUP, bootstrap::GROUP, control_plane::GROUP];

/// What is known of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// The group of its kinds.
    pub group: String,
    /// The version of them.
    pub version: String,
    /// The kind of the templates that machines are made from.
    pub template: String,
    /// The kind of what a cluster needs once. Only simulations want to know.
    pub cluster: Option<String>,
    /// The image that a machine is made from.
    pub image: Option<ImagePlace>,
    /// How much of everything a machine has.
    pub class: Option<MachineField>,
    /// Where its disks are.
    pub storage_class: Option<MachineField>,
}

/// Where the image is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImagePlace {
    /// The field.
    pub field: MachineField,
    /// Whether a release has to say it.
    pub need: ImageNeed,
}

/// Whether a release has to say which image machines are made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageNeed {
    /// It has to.
    Required,
    /// It may: without one the provider goes by the version.
    Optional,
}

/// A field of a template, within the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineField(FieldPath);

impl MachineField {
    /// The field, from the top of the template.
    pub fn path(&self) -> &FieldPath {
        &self.0
    }

    /// What a machine (`spec.template.spec` of a template) has there.
    pub fn of<'a>(&self, machine: &'a Value) -> Option<&'a Value> {
        self.within().try_fold(machine, |place, part| place.get(part)).filter(|found| !found.is_null())
    }

    /// The parts of the path within the machine.
    pub fn within(&self) -> impl Iterator<Item = &str> {
        self.0.parts().skip(MACHINE.len())
    }

    fn contains(&self, other: &Self) -> bool {
        self.0.contains(&other.0)
    }
}

/// Something that is no profile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{object}: {key} {problem}")]
pub struct ProfileError {
    /// Where it was found: a `ConfigMap`, or a file.
    pub object: String,
    /// The key in it.
    pub key: String,
    /// What is wrong, and what would be right.
    pub problem: String,
}

/// A profile as it is written.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Written {
    api_version: String,
    template: String,
    cluster: Option<String>,
    image: Option<WrittenImage>,
    class: Option<String>,
    storage_class: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WrittenImage {
    field: String,
    #[serde(default = "required")]
    required: bool,
}

const fn required() -> bool {
    true
}

impl Profile {
    /// Reads a profile. `object` is where it was found.
    pub fn read(object: &str, text: &str) -> Result<Self, ProfileError> {
        let subject = Subject(object);
        if text.len() > yaml::TEXT_BYTES_MAX {
            return Err(
                subject.wrong("", format!("has {} bytes; at most {} are read", text.len(), yaml::TEXT_BYTES_MAX))
            );
        }
        let written: Written =
            yaml::document(text).map_err(|cause: Cause| subject.wrong("", format!("cannot be read: {cause}")))?;
        let (group, version) = subject.api_version(&written.api_version)?;
        subject.kind("template", &written.template)?;
        if written.template.strip_suffix(SUFFIX).is_none_or(str::is_empty) {
            let problem = format!("is {}; the kind of a template ends in {SUFFIX}", quoted(&written.template));
            return Err(subject.wrong("template", problem));
        }
        if let Some(cluster) = &written.cluster {
            subject.kind("cluster", cluster)?;
        }
        let place = |key: &str, text: &Option<String>| text.as_deref().map(|text| subject.field(key, text)).transpose();
        let image = written.image.map(|image| {
            let need = if image.required { ImageNeed::Required } else { ImageNeed::Optional };
            Ok(ImagePlace { field: subject.field("image.field", &image.field)?, need })
        });
        let profile = Self {
            group,
            version,
            template: written.template,
            cluster: written.cluster,
            image: image.transpose()?,
            class: place("class", &written.class)?,
            storage_class: place("storageClass", &written.storage_class)?,
        };
        profile.fields_are_apart(&subject)?;
        Ok(profile)
    }

    /// No two of the fields are one, nor is one within another.
    fn fields_are_apart(&self, subject: &Subject<'_>) -> Result<(), ProfileError> {
        let fields: Vec<_> = self.fields().collect();
        for (position, (key, field)) in fields.iter().enumerate() {
            let earlier = fields.iter().take(position);
            let met = earlier.clone().find(|(_, other)| other.contains(field) || field.contains(other));
            if let Some((other, _)) = met {
                return Err(subject.wrong(key, format!("is {}, which is what {other} is about, too", field.path())));
            }
        }
        Ok(())
    }

    fn fields(&self) -> impl Iterator<Item = (&'static str, &MachineField)> {
        let image = self.image.as_ref().map(|image| ("image.field", &image.field));
        let class = self.class.as_ref().map(|field| ("class", field));
        let storage_class = self.storage_class.as_ref().map(|field| ("storageClass", field));
        image.into_iter().chain(class).chain(storage_class)
    }

    /// The one that is built in.
    pub fn built_in() -> &'static Self {
        static WCP: LazyLock<Profile> = LazyLock::new(|| {
            let field = |name: &str| MachineField(FieldPath::of(&[&MACHINE[..], &[name]].concat()));
            Profile {
                group: wcp::GROUP.to_owned(),
                version: "v1alpha2".to_owned(),
                template: "WCPMachineTemplate".to_owned(),
                cluster: Some("WCPCluster".to_owned()),
                image: Some(ImagePlace { field: field("imageName"), need: ImageNeed::Required }),
                class: Some(field("className")),
                storage_class: Some(field("storageClass")),
            }
        });
        &WCP
    }

    /// The group and version of its kinds.
    pub fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }

    /// The kind of the machines that its templates make.
    pub fn machine(&self) -> &str {
        self.template.strip_suffix(SUFFIX).unwrap_or(&self.template)
    }

    /// How `ConfigMap`s of releases call its templates.
    pub fn map_kind(&self) -> String {
        self.template.to_ascii_lowercase()
    }

    /// Whether a reference is to one of its templates.
    pub fn is_of(&self, reference: &ContractReference) -> bool {
        self.template == reference.kind && self.group == reference.api_group
    }

    /// How objects refer to one of its templates.
    pub fn reference(&self, name: &str) -> ContractReference {
        ContractReference { api_group: self.group.clone(), kind: self.template.clone(), name: name.to_owned() }
    }

    /// The field that a release has to say, if it has to say any.
    pub fn required_image(&self) -> Option<&FieldPath> {
        self.image.as_ref().filter(|image| image.need == ImageNeed::Required).map(|image| image.field.path())
    }
}

impl Serialize for Profile {
    /// Its kind: what is looked at whole is what was made by it.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}/{}", self.api_version(), self.template))
    }
}

/// Where a profile was found, to complain about.
struct Subject<'a>(&'a str);

impl Subject<'_> {
    fn wrong(&self, key: &str, problem: impl Into<String>) -> ProfileError {
        let key = if key.is_empty() { KEY.to_owned() } else { format!("{KEY}.{key}") };
        ProfileError { object: self.0.to_owned(), key, problem: problem.into() }
    }

    fn api_version(&self, text: &str) -> Result<(String, String), ProfileError> {
        let key = "apiVersion";
        let form = "accepted are a group and a version, as in infrastructure.cluster.x-k8s.io/v1beta2";
        let odd = || self.wrong(key, format!("is {}; {form}", quoted(text)));
        let (group, version) = text.split_once('/').ok_or_else(odd)?;
        let is_plain = |part: &str| {
            let inside = part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
            inside && !part.is_empty() && !part.starts_with('-') && !part.ends_with('-')
        };
        let is_version = version.strip_prefix('v').is_some_and(|rest| {
            rest.starts_with(|first: char| first.is_ascii_digit()) && is_plain(version) && !version.contains('-')
        });
        if group.len() > 253 || !group.contains('.') || !group.split('.').all(is_plain) || !is_version {
            return Err(odd());
        }
        if NOT_INFRASTRUCTURE.contains(&group) {
            let problem = format!("is {}: kinds of this group are Cluster API's own; {form}", quoted(text));
            return Err(self.wrong(key, problem));
        }
        Ok((group.to_owned(), version.to_owned()))
    }

    fn kind(&self, key: &str, text: &str) -> Result<(), ProfileError> {
        let inside = text.chars().all(|character| character.is_ascii_alphanumeric());
        if inside && text.starts_with(|first: char| first.is_ascii_uppercase()) && text.len() <= 63 {
            return Ok(());
        }
        Err(self.wrong(key, format!("is {}, which is no kind; accepted is one as in DevMachineTemplate", quoted(text))))
    }

    fn field(&self, key: &str, text: &str) -> Result<MachineField, ProfileError> {
        let path: FieldPath = text.parse().map_err(|error| self.wrong(key, format!("is {}: {error}", quoted(text))))?;
        let machine = FieldPath::of(&MACHINE);
        if !machine.contains(&path) || path == machine {
            let problem = format!("is {path}; accepted is a field of the machine, within {machine}");
            return Err(self.wrong(key, problem));
        }
        Ok(MachineField(path))
    }
}

/// The profiles that there are: the built-in one, those that were added, and what is wrong with all others.
#[derive(Debug, Clone)]
pub struct Profiles {
    /// By the names that releases call them by.
    known: BTreeMap<String, Profile>,
    malformed: Vec<ProfileError>,
}

impl Default for Profiles {
    fn default() -> Self {
        let built_in = Profile::built_in();
        Self { known: BTreeMap::from([(built_in.map_kind(), built_in.clone())]), malformed: Vec::new() }
    }
}

impl Profiles {
    /// The built-in one, and those of these `ConfigMap`s of [`NAMESPACE`]: their names, and what is at [`KEY`]. Two about one kind
    /// count only if they say the same: nobody could tell which was meant.
    pub fn read<'a>(maps: impl IntoIterator<Item = (&'a str, Option<&'a str>)>) -> Self {
        let mut profiles = Self::default();
        let mut from: BTreeMap<String, &str> = BTreeMap::new();
        let mut maps: Vec<_> = maps.into_iter().collect();
        // Whoever lists them may do so in any order.
        maps.sort_unstable();
        let mut refused = Vec::new();
        for (name, text) in maps {
            let object = format!("ConfigMap {NAMESPACE}/{name}: data");
            let subject = Subject(&object);
            let read = match text {
                Some(text) => Profile::read(&object, text),
                None => Err(subject.wrong("", "is missing; accepted is a profile, as YAML")),
            };
            let profile = match read {
                Ok(profile) => profile,
                Err(error) => {
                    profiles.malformed.push(error);
                    continue;
                }
            };
            let kind = profile.map_kind();
            match profiles.known.get(&kind) {
                Some(known) if *known == profile => {}
                Some(_) => {
                    let other =
                        from.get(&kind).map_or("built into Windlass".to_owned(), |map| format!("in ConfigMap {map}"));
                    let problem = format!("is {}, and another profile about it is {other}", quoted(&profile.template));
                    profiles.malformed.push(subject.wrong("template", problem));
                    refused.push(kind);
                }
                None => {
                    from.insert(kind.clone(), name);
                    profiles.known.insert(kind, profile);
                }
            }
        }
        profiles.known.retain(|kind, _| !(refused.contains(kind) && from.contains_key(kind)));
        profiles
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Profile> {
        self.known.values()
    }

    /// Those that were added to the built-in one.
    pub fn added(&self) -> impl Iterator<Item = &Profile> {
        self.iter().filter(|profile| *profile != Profile::built_in())
    }

    /// What is wrong with those that cannot be read.
    pub fn malformed(&self) -> &[ProfileError] {
        &self.malformed
    }

    /// The profile of the templates that a reference is to.
    pub fn of(&self, reference: &ContractReference) -> Option<&Profile> {
        self.iter().find(|profile| profile.is_of(reference))
    }

    /// The profile of the templates that releases call so.
    pub fn of_map(&self, kind: &str) -> Option<&Profile> {
        self.known.get(kind)
    }

    /// What a person can do about a kind of templates that no profile is about: one line.
    pub fn way_out(&self) -> String {
        let known = quoted_list(self.iter().map(|profile| profile.template.as_str()));
        let malformed =
            self.malformed.first().map(|error| format!("; one cannot be read: {error}")).unwrap_or_default();
        format!("there are profiles for {known}; windlass install --profile FILE adds one{malformed}")
    }
}
