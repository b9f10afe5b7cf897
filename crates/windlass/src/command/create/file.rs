//! The file that a cluster is created from, and the manifest that is written beside a flat one.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::Value;
use windlass_api::name::ClusterName;
use windlass_plan::legacy::{Configuration, LegacyError};

use super::error::Error;

/// A file, or standard input.
pub struct File {
    pub path: PathBuf,
    pub text: String,
}

/// What is in a file.
pub enum Content {
    /// A cluster that is one object.
    Tanzu,
    /// Objects.
    Manifest(Vec<Value>),
    /// Keys and values.
    Flat(Configuration),
}

impl File {
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = if path.as_os_str() == "-" { io::read_to_string(io::stdin()) } else { fs::read_to_string(path) };
        let text = text.map_err(|source| Error::File { file: path.display().to_string(), source })?;
        Ok(Self { path: path.to_owned(), text })
    }

    /// As people know it.
    pub fn shown(&self) -> String {
        self.path.display().to_string()
    }

    pub fn content(&self) -> Result<Content, Error> {
        let refused = |source: LegacyError| Error::Flat { file: self.shown(), source };
        if let Some(configuration) = Configuration::read(&self.text).map_err(refused)? {
            return Ok(Content::Flat(configuration));
        }
        let documents: Result<Vec<Value>, _> = serde_saphyr::from_multiple(&self.text);
        let mut documents = documents.map_err(|error| self.unreadable(&error))?;
        documents.retain(|document| !document.is_null());
        let is_tanzu = documents.iter().any(|document| document["kind"] == "TanzuKubernetesCluster");
        Ok(if is_tanzu { Content::Tanzu } else { Content::Manifest(documents) })
    }

    pub fn unreadable(&self, error: &serde_saphyr::Error) -> Error {
        // The error itself repeats it below a picture of the place.
        let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        Error::Document { file: self.shown(), why: why.lines().next().unwrap_or_default().to_owned() }
    }

    /// The manifest of a flat configuration, to be kept beside it.
    pub fn beside(
        &self,
        name: &ClusterName,
        objects: &[Value],
        left_out: &BTreeMap<String, String>,
    ) -> Result<Beside, Error> {
        let path = self.path.with_file_name(format!("{name}.cluster.yaml"));
        let refused = |why: String| Error::Keep { file: path.display().to_string(), source: io::Error::other(why) };
        let from = self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let left_out = left_out.iter().map(|(key, why)| format!("# Not carried over: {key}: {why}.\n"));
        let head = format!("# Made of the flat configuration {from} by windlass create cluster.\n");
        let mut text: String = std::iter::once(head).chain(left_out).collect();
        for (position, object) in objects.iter().enumerate() {
            let document = serde_saphyr::to_string(object).map_err(|error| refused(error.to_string()))?;
            text.push_str(if position == 0 { "" } else { "---\n" });
            text.push_str(&document);
        }
        Ok(Beside { path, text })
    }
}

/// A manifest that is kept beside the configuration that it is made of.
pub struct Beside {
    path: PathBuf,
    text: String,
}

impl Beside {
    pub fn shown(&self) -> String {
        self.path.display().to_string()
    }

    /// Whether it is there already, as it would be written. Something else in its place is somebody's work.
    pub fn is_there(&self) -> Result<bool, Error> {
        match fs::read_to_string(&self.path) {
            Ok(text) if text == self.text => Ok(true),
            Ok(_) => Err(Error::Occupied { file: self.shown() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(Error::Keep { file: self.shown(), source }),
        }
    }

    /// Writes it: whole, or not at all, and over nothing.
    pub fn keep(&self) -> Result<(), Error> {
        if self.is_there()? {
            return Ok(());
        }
        let refused = |source: io::Error| Error::Keep { file: self.shown(), source };
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(refused)?;
        file.write_all(self.text.as_bytes()).map_err(refused)?;
        file.persist_noclobber(&self.path).map_err(|error| refused(error.error))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_wrote_is_never_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let beside = |text: &str| Beside { path: folder.path().join("a.cluster.yaml"), text: text.to_owned() };
        beside("kind: Cluster\n").keep().unwrap();
        beside("kind: Cluster\n").keep().unwrap();
        assert!(matches!(beside("kind: Other\n").keep(), Err(Error::Occupied { .. })));
        assert_eq!(fs::read_to_string(folder.path().join("a.cluster.yaml")).unwrap(), "kind: Cluster\n");
    }

    #[test]
    fn what_is_in_a_file_is_told_by_what_it_says_itself_to_be() {
        let check = |text: &str, wanted: &str| {
            let file = File { path: PathBuf::from("a.yaml"), text: text.to_owned() };
            let found = match file.content() {
                Ok(Content::Tanzu) => "tanzu",
                Ok(Content::Manifest(_)) => "manifest",
                Ok(Content::Flat(_)) => "flat",
                Err(_) => "refused",
            };
            assert_eq!(found, wanted, "{text}");
        };
        check("CLUSTER_NAME: a\nCNI: antrea\n", "flat");
        check("kind: TanzuKubernetesCluster\n", "tanzu");
        check("---\nkind: Secret\n---\n# nothing\n---\nkind: Cluster\n", "manifest");
        check("- a\n- b\n", "refused");
        check("", "refused");
        check("a: [b\n", "refused");
    }
}
