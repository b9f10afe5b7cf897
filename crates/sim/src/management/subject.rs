//! Which controller a key of the runner is for.

use windlass_runtime::key::Key;

use crate::actor::Actor;

/// What a key names. The kind is part of the key's name, with a slash that no object's name has; a bare name is that of
/// a `MachineDeployment`, with whose watch the runner is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    Cluster,
    ClusterInfrastructure,
    Machine,
    MachineInfrastructure,
    Bootstrap,
    MachineSet,
    MachineDeployment,
    KubeadmControlPlane,
    /// A Cluster that is made from a class.
    Topology,
    ClusterClass,
    MachineHealthCheck,
    /// An `ExtensionConfig`, which is in no namespace.
    Extension,
    Job,
}

/// All that are not bare, and what their keys begin with.
const PREFIXES: [(Subject, &str); 12] = [
    (Subject::Cluster, "cluster"),
    (Subject::ClusterInfrastructure, "wcpcluster"),
    (Subject::Machine, "machine"),
    (Subject::MachineInfrastructure, "wcpmachine"),
    (Subject::Bootstrap, "kubeadmconfig"),
    (Subject::MachineSet, "machineset"),
    (Subject::KubeadmControlPlane, "kubeadmcontrolplane"),
    (Subject::Topology, "topology"),
    (Subject::ClusterClass, "clusterclass"),
    (Subject::MachineHealthCheck, "machinehealthcheck"),
    (Subject::Extension, "extensionconfig"),
    (Subject::Job, "job"),
];

impl Subject {
    /// Who looks after objects of this kind.
    pub(super) fn actor(self) -> Actor {
        match self {
            Self::Cluster => Actor::Cluster,
            Self::ClusterInfrastructure | Self::MachineInfrastructure => Actor::Infrastructure,
            Self::Machine => Actor::Machine,
            Self::Bootstrap => Actor::Bootstrap,
            Self::MachineSet => Actor::MachineSet,
            Self::MachineDeployment => Actor::MachineDeployment,
            Self::KubeadmControlPlane => Actor::KubeadmControlPlane,
            Self::Topology | Self::ClusterClass | Self::Extension => Actor::Topology,
            Self::MachineHealthCheck => Actor::MachineHealthCheck,
            Self::Job => Actor::Job,
        }
    }

    /// The key for an object of this kind.
    pub(super) fn key(self, namespace: Option<&str>, name: &str) -> Key {
        let prefix = PREFIXES.iter().find(|(subject, _)| *subject == self).map(|(_, prefix)| *prefix);
        let name = prefix.map_or_else(|| name.to_owned(), |prefix| format!("{prefix}/{name}"));
        Key { namespace: namespace.map(str::to_owned), name }
    }

    /// What a key names: the kind, and the key of the object in its cache.
    pub(super) fn of(key: Key) -> (Self, Key) {
        let split = key.name.split_once('/').and_then(|(prefix, name)| {
            let (subject, _) = PREFIXES.iter().find(|(_, known)| *known == prefix)?;
            Some((*subject, name.to_owned()))
        });
        match split {
            Some((subject, name)) => (subject, Key { namespace: key.namespace, name }),
            None => (Self::MachineDeployment, key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_leads_back_to_what_it_names() {
        for subject in PREFIXES.map(|(subject, _)| subject).into_iter().chain([Subject::MachineDeployment]) {
            let key = subject.key(Some("default"), "my-tkc");
            assert_eq!(Subject::of(key), (subject, Key::namespaced("default", "my-tkc")));
        }
    }

    #[test]
    fn a_bare_name_is_a_deployment_whatever_it_is() {
        let key = Key::namespaced("default", "machine");
        assert_eq!(Subject::of(key.clone()), (Subject::MachineDeployment, key));
    }
}
