//! A cluster of which everything is known, and nothing is wrong with it; and parts to make it otherwise.

use windlass_plan::risk::Known::{self, Read};
use windlass_plan::risk::evidence::{
    Budget, CertificateSecret, Definition, DefinitionVersion, Evidence, Machine, Member, Node, Pod, Quantity, Quota,
    Rolls, Surge, Versions, Webhook,
};

fn versions(distribution: &str, etcd: &str) -> Known<Versions> {
    let distribution: windlass_api::version::KubernetesVersion = distribution.parse().unwrap();
    Read(Versions { kubernetes: distribution.clone(), distribution, etcd: Some(etcd.to_owned()) })
}

/// The cluster goes from one release to another.
pub fn goes(evidence: &mut Evidence, from: &str, to: &str) {
    evidence.from = versions(from, "3.5.9");
    evidence.to = versions(to, "3.5.9");
}

/// Three machines of the control plane, two workers, all well; an upgrade replaces them all.
pub fn well() -> Evidence {
    let at = "2026-01-02T00:00:00Z".parse().unwrap();
    let mut evidence = Evidence::nothing("default/my-tkc".parse().unwrap(), at, Rolls::ALL);
    evidence.from = versions("v1.24.9", "3.5.6");
    evidence.to = versions("v1.25.4", "3.5.9");
    evidence.packages = Read(Vec::new());
    evidence.ahead = Read(Vec::new());
    evidence.unmanaged = Read(Vec::new());
    evidence.not_offered = Read(Vec::new());
    let nodes = ["cp-0", "cp-1", "cp-2", "w-0", "w-1"];
    evidence.machines = Read(nodes.map(machine).into());
    evidence.surges = Read(vec![surge("the control plane"), surge("the pool workers")]);
    evidence.health_checks = Read(Vec::new());
    evidence.quotas = Read(Vec::new());
    evidence.address_pools = Read(Vec::new());
    evidence.certificates = Read(Vec::new());
    evidence.certificate_secrets = Read(vec![secret(Some(&["Cluster/my-tkc"]), true)]);
    evidence.updates = Read(Vec::new());
    evidence.holds = Read(Vec::new());
    evidence.keepers = Read(Vec::new());
    evidence.members = Read((1..).zip(["cp-0", "cp-1", "cp-2"]).map(|(id, name)| member(id, name)).collect());
    evidence.nodes = Read(nodes.map(node).into());
    evidence.pods = Read(vec![pod("web/web-0", "w-0"), pod("web/web-1", "w-1")]);
    evidence.budgets = Read(Vec::new());
    evidence.volumes = Read(Vec::new());
    evidence.webhooks = Read(Vec::new());
    evidence.api_services = Read(Vec::new());
    evidence.definitions = Read(Vec::new());
    evidence.objects = Read(Vec::new());
    evidence.manifests = Read(Vec::new());
    evidence.clients = Read(Vec::new());
    evidence.selections = Read(Vec::new());
    evidence
}

/// What was read, to be changed.
pub fn of<T>(known: &mut Known<T>) -> &mut T {
    let Read(read) = known else { panic!("it was not read") };
    read
}

pub fn machine(node: &str) -> Machine {
    Machine {
        name: format!("my-tkc-{node}"),
        control_plane: node.starts_with("cp"),
        node: Some(node.to_owned()),
        deleting: false,
        phase: "Running".to_owned(),
    }
}

pub fn surge(role: &str) -> Surge {
    Surge {
        role: role.to_owned(),
        machines: 1,
        cpus: Some(Quantity::units(4)),
        memory: Some(Quantity::units(16 << 30)),
        why: "maxSurge 1".to_owned(),
    }
}

pub fn secret(owners: Option<&[&str]>, lasts: bool) -> CertificateSecret {
    let owners = owners.map(|owners| owners.iter().map(|owner| (*owner).to_owned()).collect());
    CertificateSecret { name: "default/my-tkc-ca".to_owned(), owners, lasts }
}

pub fn member(id: u64, name: &str) -> Member {
    let version = Some("3.5.6".parse().unwrap());
    Member { id, name: name.to_owned(), healthy: true, learner: false, version, alarms: Read(Vec::new()) }
}

pub fn node(name: &str) -> Node {
    Node {
        name: name.to_owned(),
        control_plane: name.starts_with("cp"),
        kubelet: Some("v1.24.9".parse().unwrap()),
        unwell: Vec::new(),
        cordoned: false,
        drain_timeout_seconds: None,
    }
}

pub fn pod(name: &str, node: &str) -> Pod {
    Pod {
        name: name.to_owned(),
        node: Some(node.to_owned()),
        owner: Some("ReplicaSet/web".to_owned()),
        package: None,
        stays: false,
        ended: false,
        pending: false,
        not_ready: None,
        scratch: Vec::new(),
        claims: Vec::new(),
        pull_failures: Vec::new(),
    }
}

/// A budget of both pods that says how many must be available.
pub fn budget(name: &str, min_available: u32) -> Budget {
    Budget {
        name: name.to_owned(),
        pods: vec!["web/web-0".to_owned(), "web/web-1".to_owned()],
        min_available: Some(min_available.into()),
        max_unavailable: None,
        expected: Some(2),
        lets_unready_go: false,
    }
}

pub fn quota(resource: &str, hard: i64, used: i64) -> Quota {
    let (hard, used) = (Quantity::units(hard), Read(Quantity::units(used)));
    Quota { name: "default/limits".to_owned(), resource: resource.to_owned(), hard, used }
}

/// A webhook that is asked about nodes, and whose service has so many ready pods.
pub fn webhook(ready: Option<u32>) -> Webhook {
    Webhook {
        configuration: "ValidatingWebhookConfiguration policy".to_owned(),
        name: "policy.example.dev".to_owned(),
        fails_closed: true,
        timeout_seconds: 10,
        node_resources: vec!["nodes".to_owned()],
        answers: "the service policy/webhook".to_owned(),
        ready_pods: Read(ready),
    }
}

/// A definition that stores `v1`, and may have stored others; `served` says which versions still are.
pub fn definition(stored: &[&str], served: &[&str]) -> Definition {
    let version = |name: &&str| DefinitionVersion { name: (*name).to_owned(), served: true, storage: *name == "v1" };
    Definition {
        name: "widgets.example.dev".to_owned(),
        stored: stored.iter().map(|name| (*name).to_owned()).collect(),
        versions: served.iter().map(version).collect(),
    }
}
