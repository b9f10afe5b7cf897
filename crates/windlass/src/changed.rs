//! What a command that is about one object writes for scripts: which object it is, or all that there is to tell.

use serde::Serialize;
use windlass_api::name::ClusterName;

use crate::output::{self, Document, Format};

/// What is written instead of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Changed {
    Json,
    Yaml,
    Name,
}

impl Changed {
    /// Writes what there is to tell of a cluster, or its name.
    pub fn tell_cluster(
        self,
        cluster: &ClusterName,
        kind: &'static str,
        report: impl Serialize,
    ) -> Result<(), output::Error> {
        self.tell(&cluster_name(cluster), kind, report)
    }

    /// Writes what there is to tell of an update, or its name.
    pub fn tell_update(self, update: &str, kind: &'static str, report: impl Serialize) -> Result<(), output::Error> {
        self.tell(&format!("clusterupdate.windlass.dev/{update}"), kind, report)
    }

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

/// A cluster, as `kubectl -o name` writes it.
pub fn cluster_name(cluster: &ClusterName) -> String {
    format!("tanzukubernetescluster.run.tanzu.vmware.com/{cluster}")
}

/// A Cluster of a class, in the same way.
pub fn class_cluster_name(cluster: &ClusterName) -> String {
    format!("cluster.cluster.x-k8s.io/{cluster}")
}
