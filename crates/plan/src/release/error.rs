//! Why something is no release.

use std::error::Error;
use std::fmt;

use windlass_api::name::ImageName;

use super::manifest::ManifestError;

/// What a cause is cut to. It ends up in a status, beside others.
const CAUSE_CHARACTERS_MAX: usize = 300;

/// What a text that is quoted is cut to.
const QUOTED_CHARACTERS_MAX: usize = 80;

/// What a key is cut to. No key is so long; a path of fields might be.
const KEY_CHARACTERS_MAX: usize = 512;

/// Something that is no release. Nothing of it is used. Every refusal names the object and the key.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    /// An image of something else.
    #[error(
        "VirtualMachineImage {image} is no release: it has no annotation {}",
        windlass_api::annotation::DISTRIBUTION
    )]
    NoDistribution {
        /// Its name.
        image: ImageName,
    },
    /// A text is too long to be looked at.
    #[error("{object}: {key} has {length} bytes; at most {max} are read", max = super::yaml::TEXT_BYTES_MAX)]
    TooLong {
        /// The object.
        object: String,
        /// The key.
        key: String,
        /// How long it is.
        length: usize,
    },
    /// A text is not what it should be: no JSON, no YAML, no version, no name.
    #[error("{object}: {key} cannot be read")]
    Unreadable {
        /// The object.
        object: String,
        /// The key.
        key: String,
        /// What is wrong.
        #[source]
        source: Cause,
    },
    /// The key of an add-on ends in no name.
    #[error("{object}: {key} names no add-on")]
    AddonName {
        /// The object.
        object: String,
        /// The annotation.
        key: String,
        /// What is wrong.
        #[source]
        source: Cause,
    },
    /// An add-on's manifests cannot be used.
    #[error("{object}: the manifests of {key} cannot be used")]
    Manifest {
        /// The object.
        object: String,
        /// The annotation.
        key: String,
        /// What is wrong.
        #[source]
        source: ManifestError,
    },
    /// What is there is readable, and wrong.
    #[error("{object}: {key} {problem}")]
    Wrong {
        /// The object.
        object: String,
        /// The key.
        key: String,
        /// What is wrong, and what would be right.
        problem: String,
    },
}

impl ReleaseError {
    /// The object that is malformed: `Package antrea.tanzu.vmware.com.1.7.2`.
    pub fn object(&self) -> String {
        match self {
            Self::NoDistribution { image } => format!("VirtualMachineImage {image}"),
            Self::TooLong { object, .. }
            | Self::Unreadable { object, .. }
            | Self::AddonName { object, .. }
            | Self::Manifest { object, .. }
            | Self::Wrong { object, .. } => object.clone(),
        }
    }

    /// The key in it: an annotation, a label, or the path of a field.
    pub fn key(&self) -> &str {
        match self {
            Self::NoDistribution { .. } => windlass_api::annotation::DISTRIBUTION.name,
            Self::TooLong { key, .. }
            | Self::Unreadable { key, .. }
            | Self::AddonName { key, .. }
            | Self::Manifest { key, .. }
            | Self::Wrong { key, .. } => key,
        }
    }
}

/// An object that is being read, to complain about.
#[derive(Debug, Clone)]
pub(super) struct Subject(String);

impl Subject {
    /// An object of a kind. Where it should have a name and has none, the complaint says so.
    pub(super) fn new(kind: &str, namespace: Option<&str>, name: Option<&str>) -> Self {
        let name = name.filter(|name| !name.is_empty());
        Self(match (namespace, name) {
            (_, None) => format!("{kind} without a name"),
            (Some(namespace), Some(name)) => format!("{kind} {}/{}", cut_name(namespace), cut_name(name)),
            (None, Some(name)) => format!("{kind} {}", cut_name(name)),
        })
    }

    pub(super) fn wrong(&self, key: impl Into<String>, problem: impl Into<String>) -> ReleaseError {
        ReleaseError::Wrong { object: self.0.clone(), key: shown_key(key), problem: problem.into() }
    }

    pub(super) fn unreadable(&self, key: impl Into<String>, source: &dyn Error) -> ReleaseError {
        ReleaseError::Unreadable { object: self.0.clone(), key: shown_key(key), source: Cause::new(source) }
    }

    pub(super) fn addon_name(&self, key: &str, source: &dyn Error) -> ReleaseError {
        ReleaseError::AddonName { object: self.0.clone(), key: shown_key(key), source: Cause::new(source) }
    }

    pub(super) fn manifest(&self, key: &str, source: ManifestError) -> ReleaseError {
        ReleaseError::Manifest { object: self.0.clone(), key: shown_key(key), source }
    }

    /// Refuses a text before it is looked at.
    pub(super) fn check_length(&self, key: &str, text: &str) -> Result<(), ReleaseError> {
        if text.len() <= super::yaml::TEXT_BYTES_MAX {
            return Ok(());
        }
        Err(ReleaseError::TooLong { object: self.0.clone(), key: shown_key(key), length: text.len() })
    }

    /// A value that travels as text.
    pub(super) fn read<T>(&self, key: impl Into<String>, text: &str) -> Result<T, ReleaseError>
    where
        T: std::str::FromStr<Err: Error>,
    {
        text.parse().map_err(|source| self.unreadable(key, &source))
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What another library, or a parser of ours, says about a text. It quotes the text, which may be long and hostile: so it is
/// cut, and it is one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause(String);

impl Cause {
    pub(super) fn new(error: &dyn Error) -> Self {
        Self::of(&error.to_string())
    }

    pub(super) fn of(text: &str) -> Self {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        Self(cut(&line, CAUSE_CHARACTERS_MAX))
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Cause {}

/// The text in quotes, and not more of it than people can use.
pub(crate) fn quoted(text: &str) -> String {
    format!("{:?}", cut(text, QUOTED_CHARACTERS_MAX))
}

/// Texts in quotes, with commas between them; not more of them than people can use.
pub(crate) fn quoted_list<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    const SHOWN_MAX: usize = 8;
    let texts: Vec<&str> = texts.into_iter().collect();
    let mut shown: Vec<String> = texts.iter().take(SHOWN_MAX).map(|text| quoted(text)).collect();
    if texts.len() > SHOWN_MAX {
        shown.push(format!("{} more", texts.len() - SHOWN_MAX));
    }
    shown.join(", ")
}

/// A name is at most 253 characters long where it was checked by anybody.
pub(super) fn cut_name(name: &str) -> String {
    one_line(&cut(name, 253))
}

fn shown_key(key: impl Into<String>) -> String {
    one_line(&cut(&key.into(), KEY_CHARACTERS_MAX))
}

/// The text, without what would begin a line of its own.
fn one_line(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}

fn cut(text: &str, characters_max: usize) -> String {
    match text.char_indices().nth(characters_max) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}
