//! What a `ResourceQuota` counts of a cluster's machines: the names of its resources, each spelled once.

/// What a resource of a quota counts, as far as it has to do with machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Machines of Cluster API.
    Machines,
    /// Machines of the infrastructure: one for each of the above.
    InfrastructureMachines,
    /// What machines are told when they boot: one for each.
    BootstrapConfigs,
    /// Secrets, of which one is made for each machine.
    Secrets,
    /// Processors.
    Processors,
    /// Memory.
    Memory,
}

impl Counted {
    /// What a resource counts; `None` if machines do not come into it.
    pub fn of(resource: &str) -> Option<Self> {
        Some(match resource {
            "count/machines.cluster.x-k8s.io" => Self::Machines,
            "count/virtualmachines.vmoperator.vmware.com" | "count/wcpmachines.infrastructure.cluster.vmware.com" => {
                Self::InfrastructureMachines
            }
            "count/kubeadmconfigs.bootstrap.cluster.x-k8s.io" => Self::BootstrapConfigs,
            "count/secrets" | "secrets" => Self::Secrets,
            "cpu" | "requests.cpu" | "limits.cpu" => Self::Processors,
            "memory" | "requests.memory" | "limits.memory" => Self::Memory,
            _ => return None,
        })
    }

    /// Whether it counts machines and nothing else.
    pub fn is_machines(self) -> bool {
        matches!(self, Self::Machines | Self::InfrastructureMachines)
    }

    /// The kind whose objects are counted, or say how much of it they are.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Machines => "Machine",
            Self::InfrastructureMachines | Self::Processors | Self::Memory => "WCPMachine",
            Self::BootstrapConfigs => "KubeadmConfig",
            Self::Secrets => "Secret",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_counts_machines_what_is_made_for_them_or_what_they_have() {
        let check = |resource: &str, counted: Option<Counted>| assert_eq!(Counted::of(resource), counted, "{resource}");
        check("count/machines.cluster.x-k8s.io", Some(Counted::Machines));
        check("count/wcpmachines.infrastructure.cluster.vmware.com", Some(Counted::InfrastructureMachines));
        check("secrets", Some(Counted::Secrets));
        check("requests.cpu", Some(Counted::Processors));
        check("limits.memory", Some(Counted::Memory));
        check("services", None);
        check("machines.cluster.x-k8s.io", None);
    }
}
