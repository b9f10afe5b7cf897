//! The values of packages: where they are, and whether they are where they are needed. What is secret in them is not here.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::clone::Reference;

/// The file of a Secret that values are in.
pub const FILE: &str = "values.yaml";

/// What was found of something that values are made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The version of its kind.
    pub api_version: String,
    /// Its metadata.
    pub metadata: Value,
    /// The Secret with the values, and the digest of what is in it.
    pub secret: Result<(String, String), String>,
}

/// What was found, by what was looked for.
pub type FoundValues = BTreeMap<Reference, Found>;

/// A digest of what is in a Secret. It tells two of them apart, and nothing about what is in them.
pub fn digest<'a>(data: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> String {
    let sorted: BTreeMap<&str, &[u8]> = data.into_iter().collect();
    let mut hash = Sha256::new();
    for (key, value) in sorted {
        for part in [key.as_bytes(), value] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
    }
    let nibbles = hash.finalize().into_iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    nibbles.filter_map(|nibble| char::from_digit(nibble.into(), 16)).collect()
}

/// Values that are in a `ClusterBootstrap` itself, as a file.
pub(super) fn text(inline: &Map<String, Value>) -> Result<String, String> {
    serde_saphyr::to_string(inline).map_err(|error| error.to_string())
}
