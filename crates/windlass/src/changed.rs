//! How a command that changes an object tells which.

use serde::Serialize;

use crate::output::{self, Document, Format};

/// What is written instead of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Changed {
    Json,
    Yaml,
    Name,
}

impl Changed {
    /// Writes it: the name of the object that was changed (`clusterupdate.windlass.dev/my-tkc-1`), or a document of that kind.
    pub fn tell(self, name: &str, kind: &'static str, report: impl Serialize) -> Result<(), output::Error> {
        self.object(name, &Document::new(kind, report))
    }

    /// Writes it: the name of the object, or what it is.
    pub fn object(self, name: &str, object: &impl Serialize) -> Result<(), output::Error> {
        match self {
            Self::Json => output::document(Format::Json, object),
            Self::Yaml => output::document(Format::Yaml, object),
            Self::Name => output::data(name),
        }
    }
}
