//! The keys of flat configurations, and what becomes of each.

/// What becomes of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// It is carried over.
    Converted,
    /// It is not, for this reason.
    LeftOut(&'static str),
}

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Text,
    Flag,
    Number,
    List,
}

/// Keys that say something of the cluster itself.
const OF_THE_CLUSTER: &[&str] = &[
    "ALLOW_LEGACY_CLUSTER",
    "CLUSTER_CIDR",
    "CLUSTER_NAME",
    "CLUSTER_PLAN",
    "CNI",
    "CONTROL_PLANE_MACHINE_COUNT",
    "INFRASTRUCTURE_PROVIDER",
    "KUBERNETES_VERSION",
    "NAMESPACE",
    "OS_ARCH",
    "OS_NAME",
    "OS_VERSION",
    "SERVICE_CIDR",
    "SERVICE_DOMAIN",
    "WORKER_MACHINE_COUNT",
];

/// Keys that are variables of a class, each with the variable and the field in it.
pub(super) const VARIABLES: &[(&str, &str)] = &[
    ("AVI_CONTROL_PLANE_HA_PROVIDER", "aviAPIServerHAProvider"),
    ("TKG_HTTPS_PROXY", "proxy.httpsProxy"),
    ("TKG_HTTP_PROXY", "proxy.httpProxy"),
    ("TKG_IP_FAMILY", "network.ipFamily"),
    ("TKG_NO_PROXY", "proxy.noProxy"),
    ("VSPHERE_CONTROL_PLANE_DISK_GIB", "controlPlane.machine.diskGiB"),
    ("VSPHERE_CONTROL_PLANE_ENDPOINT", "apiServerEndpoint"),
    ("VSPHERE_CONTROL_PLANE_MEM_MIB", "controlPlane.machine.memoryMiB"),
    ("VSPHERE_CONTROL_PLANE_NUM_CPUS", "controlPlane.machine.numCPUs"),
    ("VSPHERE_DATACENTER", "vcenter.datacenter"),
    ("VSPHERE_DATASTORE", "vcenter.datastore"),
    ("VSPHERE_FOLDER", "vcenter.folder"),
    ("VSPHERE_NETWORK", "vcenter.network"),
    ("VSPHERE_RESOURCE_POOL", "vcenter.resourcePool"),
    ("VSPHERE_SERVER", "vcenter.server"),
    ("VSPHERE_SSH_AUTHORIZED_KEY", "user.sshAuthorizedKeys"),
    ("VSPHERE_STORAGE_POLICY_ID", "vcenter.storagePolicyID"),
    ("VSPHERE_TEMPLATE", "vcenter.template"),
    ("VSPHERE_TLS_THUMBPRINT", "vcenter.tlsThumbprint"),
    ("VSPHERE_WORKER_DISK_GIB", "worker.machine.diskGiB"),
    ("VSPHERE_WORKER_MEM_MIB", "worker.machine.memoryMiB"),
    ("VSPHERE_WORKER_NUM_CPUS", "worker.machine.numCPUs"),
];

/// Keys that are known and not carried over. Those that end in `*` are beginnings.
const LEFT_OUT: &[(&str, &str)] = &[
    ("AVI_PASSWORD", SECRET),
    ("AWS_ACCESS_KEY_ID", SECRET),
    ("AWS_SECRET_ACCESS_KEY", SECRET),
    ("AWS_SESSION_TOKEN", SECRET),
    ("AZURE_CLIENT_SECRET", SECRET),
    ("LDAP_BIND_PASSWORD", SECRET),
    ("OIDC_IDENTITY_PROVIDER_CLIENT_SECRET", SECRET),
    ("VSPHERE_PASSWORD", SECRET),
    ("VSPHERE_USERNAME", SECRET),
    ("AUTOSCALER_*", "nobody resizes pools by load here"),
    ("ENABLE_AUTOSCALER", "nobody resizes pools by load here"),
    ("ENABLE_AUDIT_LOGGING", OF_THE_CLASS),
    ("ENABLE_CEIP_PARTICIPATION", "nothing is reported to anybody"),
    ("ENABLE_DEFAULT_STORAGE_CLASS", "the release has a package for it"),
    ("ENABLE_MHC*", "health checks belong to the class"),
    ("MHC_*", "health checks belong to the class"),
    ("IDENTITY_MANAGEMENT_TYPE", AUTHENTICATION),
    ("LDAP_*", AUTHENTICATION),
    ("OIDC_*", AUTHENTICATION),
    ("TKG_HTTP_PROXY_ENABLED", "a proxy is used where one is named"),
    ("AVI_*", OF_THE_CLASS),
    ("AWS_*", OF_THE_CLASS),
    ("AZURE_*", OF_THE_CLASS),
    ("TKG_*", OF_THE_CLASS),
    ("VSPHERE_*", OF_THE_CLASS),
    ("ANTREA_*", "values of a package are in its own object, beside the ClusterBootstrap"),
];

const SECRET: &str = "credentials are not written into a manifest; the provider has its own";
const OF_THE_CLASS: &str = "the class decides it";
const AUTHENTICATION: &str = "authentication is set up in the management cluster";

/// What becomes of a key; `None` if nobody knows it.
pub(super) fn meaning(key: &str) -> Option<Meaning> {
    if OF_THE_CLUSTER.contains(&key) || VARIABLES.iter().any(|(known, _)| *known == key) {
        return Some(Meaning::Converted);
    }
    let is_it = |pattern: &str| pattern.strip_suffix('*').map_or(pattern == key, |begin| key.starts_with(begin));
    LEFT_OUT.iter().find(|(pattern, _)| is_it(pattern)).map(|(_, why)| Meaning::LeftOut(why))
}

/// How the value of a key is written.
pub(super) fn sort(key: &str) -> Sort {
    match key {
        "AVI_CONTROL_PLANE_HA_PROVIDER" => Sort::Flag,
        "TKG_NO_PROXY" | "VSPHERE_SSH_AUTHORIZED_KEY" => Sort::List,
        _ if ["_GIB", "_MIB", "_CPUS"].iter().any(|end| key.ends_with(end)) => Sort::Number,
        _ => Sort::Text,
    }
}

/// A key that is spelled almost so: at most two letters are other, missing or too many.
pub(super) fn closest(key: &str) -> Option<&'static str> {
    let known = OF_THE_CLUSTER.iter().copied().chain(VARIABLES.iter().map(|(known, _)| *known));
    let near = known.map(|known| (distance(key, known), known)).min()?;
    (near.0 <= 2).then_some(near.1)
}

/// How many letters must be changed, put in or taken out to make one text of another.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.bytes().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (j, b) in other.bytes().enumerate() {
            let above = row[j + 1];
            let value = (diagonal + usize::from(a != b)).min(above + 1).min(left + 1);
            row[j] = left;
            diagonal = above;
            left = value;
        }
        row[other.len()] = left;
    }
    row[other.len()]
}
