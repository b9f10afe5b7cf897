//! The names of what a cluster is made of, as functions: no name is ever drawn, so a write whose outcome is unknown can be
//! repeated.
//!
//! A name grows in three steps. Each is used for kinds of its own, and in each, different inputs give different names.
//!
//! | step | example | names |
//! |---|---|---|
//! | the role | `my-tkc-workers-np1` | what lives as long as the role: a `MachineDeployment` |
//! | … and ordinal: the base | `my-tkc-control-plane-0` | nothing by itself; a machine carries it through its replacements |
//! | … and update id | `my-tkc-control-plane-0-1280807` | machines with all that belongs to them, and templates |
//!
//! Cutting a name where it is too long is not enough. cluster-api-upgrade-tool does so to make room for the id; two long
//! bases then have one replacement between them, and the second machine is removed without any. Here a name is *plain*
//! only if it fits and reads back as what it was made from; otherwise it ends in a hash of that.
//!
//! **Different inputs, different names:** a plain name can be read back, so no two inputs have the same one. A hashed name
//! ends in `-x` and 25 digits of base 36, and no text that ends so is ever read back, so no name is both. Two hashed names
//! are the same only if 128 bits are: among a million hashed names, 10^12 / 2^129 = 1.5e-27.

use std::fmt;

use super::rule::{LABEL_MAX_BYTES, SUBDOMAIN_MAX_BYTES};
use super::{ClusterName, MachineName, ObjectName, PoolName, UpdateId, hash};

/// How long a name may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameLimit {
    /// 63 characters: the name becomes the value of a label, or the name of a host.
    LabelValue,
    /// 253 characters: it is only the name of an object.
    Object,
}

impl NameLimit {
    /// The limit as a number.
    pub fn max_bytes(self) -> usize {
        match self {
            Self::LabelValue => LABEL_MAX_BYTES,
            Self::Object => SUBDOMAIN_MAX_BYTES,
        }
    }
}

/// What a machine is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// It runs the control plane.
    ControlPlane,
    /// It belongs to a pool of workers.
    Workers(PoolName),
}

const CONTROL_PLANE: &str = "-control-plane";
const WORKERS: &str = "-workers-";

impl Role {
    /// The name of what a cluster has once for each role: `my-tkc-control-plane`, `my-tkc-workers-np1`.
    pub fn object_name(&self, cluster: &ClusterName, limit: NameLimit) -> ObjectName {
        let (plain, pool) = match self {
            Self::ControlPlane => (format!("{cluster}{CONTROL_PLANE}"), None),
            Self::Workers(pool) => (format!("{cluster}{WORKERS}{pool}"), Some(pool.as_str())),
        };
        let reads_back = read_role(&plain) == Some((cluster.as_str(), pool));
        match pool {
            None => fitted(plain, reads_back, limit, &["control plane", cluster.as_str()]),
            Some(pool) => fitted(plain, reads_back, limit, &["workers", cluster.as_str(), pool]),
        }
    }
}

/// The cluster, and the pool if it is one, of which this is the plain name.
fn read_role(text: &str) -> Option<(&str, Option<&str>)> {
    if looks_hashed(text) {
        return None;
    }
    match text.split_once(WORKERS) {
        Some((cluster, pool)) => Some((cluster, Some(pool))),
        None => text.strip_suffix(CONTROL_PLANE).map(|cluster| (cluster, None)),
    }
}

/// One of the things that an update makes for a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Child<'a> {
    /// The cluster that it is for.
    pub cluster: &'a ClusterName,
    /// The update that makes it. A cluster is created by its update 0.
    pub update: UpdateId,
    /// What it is for.
    pub role: &'a Role,
    /// Which one of those that have the same role.
    pub ordinal: u32,
}

impl Child<'_> {
    /// The name without the update, which stays the same when the machine is replaced: `my-tkc-control-plane-0`.
    pub fn base(&self) -> MachineName {
        // With the longest of everything this is 63 + 9 + 63 + 1 + 10 = 146 characters: only an ambiguous role is hashed.
        let role = self.role.object_name(self.cluster, NameLimit::Object);
        MachineName(numbered(role.as_str(), self.ordinal.into(), NameLimit::Object).0)
    }

    /// The name: `my-tkc-control-plane-0-1280807`.
    pub fn name(&self, limit: NameLimit) -> MachineName {
        replacement_name(&self.base(), self.update, limit)
    }
}

/// The name of the machine that takes the place of another in an update: `<base>-<update id>`.
///
/// The base is the name of the first machine in the row, carried along as an annotation; the names of later ones do not
/// grow.
pub fn replacement_name(base: &MachineName, update: UpdateId, limit: NameLimit) -> MachineName {
    MachineName(numbered(base.as_str(), update.0, limit).0)
}

/// How many digits of a digest are in a name. What is in the object is compared with all of them.
const DIGEST_DIGITS: usize = 16;

/// The name of what keeps a release for a cluster: `my-tkc-release-44136fa355b3678a`, with the beginning of the digest of what
/// the release says. It always reads back: the digits are as many as ever.
pub fn kept_release_name(cluster: &ClusterName, digest: &str) -> ObjectName {
    let digits = digest.rsplit(':').next().unwrap_or_default();
    let digits: String = digits.chars().filter(char::is_ascii_hexdigit).take(DIGEST_DIGITS).collect();
    let plain = format!("{cluster}-release-{}", digits.to_ascii_lowercase());
    fitted(plain, digits.len() == DIGEST_DIGITS, NameLimit::Object, &["release", cluster.as_str(), digest])
}

/// A name and a number. It always reads back: the number is what follows the last dash.
fn numbered(base: &str, number: u64, limit: NameLimit) -> ObjectName {
    let number = number.to_string();
    fitted(format!("{base}-{number}"), true, limit, &[base, &number])
}

/// The plain name if it fits and reads back; otherwise as much of it as there is room for, and the hash of its parts.
pub(super) fn fitted(plain: String, reads_back: bool, limit: NameLimit, parts: &[&str]) -> ObjectName {
    if reads_back && plain.len() <= limit.max_bytes() {
        return ObjectName(plain.into_boxed_str());
    }
    // For a label: 63 - 2 - 25 = 36 characters for people to recognise it by.
    let room = limit.max_bytes() - HASH_MARK.len() - hash::BASE36_DIGITS;
    let kept: String = plain.chars().take(room).collect();
    // A dash may not follow a dot.
    let mut name = kept.trim_end_matches(['.', '-']).to_owned();
    name.push_str(HASH_MARK);
    name.extend(hash::base36(hash::of(parts)));
    ObjectName(name.into_boxed_str())
}

/// What comes before a hash. The letter keeps it from being taken for a number.
const HASH_MARK: &str = "-x";

/// Whether a text ends like a hashed name.
pub(super) fn looks_hashed(text: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.rsplit_once(HASH_MARK).is_some_and(|(_, end)| end.len() == hash::BASE36_DIGITS && end.bytes().all(is_digit))
}

/// The Secrets of a cluster, under the names by which Cluster API and kubeadm know them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClusterSecret {
    /// The authority that signs certificates of the Kubernetes API.
    CertificateAuthority,
    /// The authority of etcd.
    Etcd,
    /// The authority behind the aggregation layer.
    FrontProxy,
    /// The key that signs tokens of service accounts.
    ServiceAccount,
    /// How to reach the cluster as its administrator.
    Kubeconfig,
}

impl ClusterSecret {
    /// The four that must outlive every machine: without them no machine can join.
    pub const CERTIFICATES: [Self; 4] =
        [Self::CertificateAuthority, Self::Etcd, Self::FrontProxy, Self::ServiceAccount];

    /// The name of this Secret of a cluster: `my-tkc-ca`.
    pub fn object_name(self, cluster: &ClusterName) -> ObjectName {
        ObjectName(format!("{cluster}-{self}").into_boxed_str())
    }
}

impl serde::Serialize for ClusterSecret {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for ClusterSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CertificateAuthority => "ca",
            Self::Etcd => "etcd",
            Self::FrontProxy => "proxy",
            Self::ServiceAccount => "sa",
            Self::Kubeconfig => "kubeconfig",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workers(pool: &str) -> Role {
        Role::Workers(PoolName::new(pool).unwrap())
    }

    fn check(cluster: &str, role: &Role, ordinal: u32, update: &str, name: &str) {
        let cluster = ClusterName::new(cluster).unwrap();
        let child = Child { cluster: &cluster, update: update.parse().unwrap(), role, ordinal };
        assert_eq!(child.name(NameLimit::LabelValue).as_str(), name);
    }

    #[test]
    fn a_name_that_fits_can_be_read_by_people() {
        check("my-tkc", &Role::ControlPlane, 0, "1280807", "my-tkc-control-plane-0-1280807");
        check("my-tkc", &workers("np1"), 2, "1280807", "my-tkc-workers-np1-2-1280807");
        check("my-tkc", &workers("workers"), 2, "1280807", "my-tkc-workers-workers-2-1280807");
    }

    #[test]
    fn a_name_that_does_not_fit_ends_in_a_hash() {
        check(
            "a-cluster-with-a-rather-long-name-of-its-own",
            &Role::ControlPlane,
            0,
            "1280807",
            "a-cluster-with-a-rather-long-name-of-x2429udu5mm5ff6e9vf4lxa0dk",
        );
        check(
            "a-cluster-with-a-rather-long-name-of-its-own",
            &Role::ControlPlane,
            1,
            "1280807",
            "a-cluster-with-a-rather-long-name-of-x9oxzwtg3vvt45ui8yxoy4wvth",
        );
    }

    #[test]
    fn names_that_would_be_the_same_are_told_apart() {
        let name = |cluster: &str, role: &Role| {
            role.object_name(&ClusterName::new(cluster).unwrap(), NameLimit::Object).as_str().to_owned()
        };
        assert_eq!(name("a", &workers("b-workers-c")), "a-workers-b-workers-c");
        let ambiguous = name("a-workers-b", &workers("c"));
        assert!(ambiguous.starts_with("a-workers-b-workers-c-x"), "{ambiguous}");

        assert_eq!(name("a", &workers("b-control-plane")), "a-workers-b-control-plane");
        let ambiguous = name("a-workers-b", &Role::ControlPlane);
        assert!(ambiguous.starts_with("a-workers-b-control-plane-x"), "{ambiguous}");
    }

    #[test]
    fn a_pool_that_is_named_like_a_hashed_name_does_not_take_it() {
        let hashed = workers("c").object_name(&ClusterName::new("a-workers-b").unwrap(), NameLimit::Object);
        let pool = hashed.as_str().strip_prefix("a-workers-").unwrap();
        let other = workers(pool).object_name(&ClusterName::new("a").unwrap(), NameLimit::Object);
        assert_ne!(other, hashed);
    }

    #[test]
    fn two_long_bases_that_differ_at_their_ends_have_different_replacements() {
        let update: UpdateId = "1280807".parse().unwrap();
        // Beside the id there is room for 253 - 1 - 7 = 245 characters: cut there, as was done before, both are the same.
        let names: Vec<MachineName> = ["a", "b"]
            .into_iter()
            .map(|end| MachineName::new(&format!("{}{end}", "m".repeat(249))).unwrap())
            .map(|base| replacement_name(&base, update, NameLimit::Object))
            .collect();
        assert_ne!(names[0], names[1]);
        assert!(names.iter().all(|name| name.as_str().len() == 253));
    }

    #[test]
    fn a_replacement_is_named_after_the_first_machine_in_the_row() {
        let base = MachineName::new("cp-abc").unwrap();
        let name = |update: &str| replacement_name(&base, update.parse().unwrap(), NameLimit::Object).to_string();
        assert_eq!(name("1"), "cp-abc-1");
        assert_eq!(name("2"), "cp-abc-2");
    }

    #[test]
    fn a_release_is_kept_under_the_beginning_of_its_digest() {
        let name = |digest: &str| kept_release_name(&ClusterName::new("my-tkc").unwrap(), digest).to_string();
        assert_eq!(name("sha256:44136fa355b3678a1146ad16f7e8649e"), "my-tkc-release-44136fa355b3678a");
        let odd = name("none at all");
        assert!(odd.starts_with("my-tkc-release-") && ObjectName::new(&odd).is_ok(), "{odd}");
    }

    #[test]
    fn a_name_is_cut_where_a_name_may_end() {
        let base = MachineName::new(&format!("{}.{}", "m".repeat(35), "n".repeat(60))).unwrap();
        let name = replacement_name(&base, "7".parse().unwrap(), NameLimit::LabelValue);
        assert!(name.as_str().starts_with(&format!("{}-x", "m".repeat(35))), "{name}");
        assert_eq!(MachineName::new(name.as_str()).as_ref(), Ok(&name));
    }

    #[test]
    fn the_secrets_of_a_cluster_have_the_names_that_others_look_for() {
        let cluster = ClusterName::new("my-tkc").unwrap();
        let names = ClusterSecret::CERTIFICATES.map(|secret| secret.object_name(&cluster).to_string());
        assert_eq!(names, ["my-tkc-ca", "my-tkc-etcd", "my-tkc-proxy", "my-tkc-sa"]);
        assert_eq!(ClusterSecret::Kubeconfig.object_name(&cluster).as_str(), "my-tkc-kubeconfig");
    }
}
