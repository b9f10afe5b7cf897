//! The catalogue of checks: ids that never change their meaning.

use std::fmt;

use serde::{Serialize, Serializer};

use super::Severity;

/// A check of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "`RiskId::about` says what each is, to people too")]
pub enum RiskId {
    ApiRemoved,
    ApiClientOld,
    SkewKubelet,
    SkewEtcd,
    PdbNever,
    PdbAtLimit,
    DrainLocalData,
    DrainBarePod,
    WebhookBlocksNodes,
    WebhookSlow,
    CrdStoredOld,
    CertExpiring,
    SecretOwner,
    BackupStale,
    Quota,
    IpPool,
    ImageMissing,
    ReleaseUnsigned,
    PkgIncompatible,
    PkgUnmanaged,
    PkgAhead,
    NodeUnhealthy,
    EtcdUnhealthy,
    UpdateInProgress,
    UpdateFailedBefore,
    Hold,
    WindowTooShort,
    GitopsDrift,
    LabelRemoved,
}

impl RiskId {
    /// All of them, in the order of the catalogue.
    pub const ALL: [Self; 29] = [
        Self::ApiRemoved,
        Self::ApiClientOld,
        Self::SkewKubelet,
        Self::SkewEtcd,
        Self::PdbNever,
        Self::PdbAtLimit,
        Self::DrainLocalData,
        Self::DrainBarePod,
        Self::WebhookBlocksNodes,
        Self::WebhookSlow,
        Self::CrdStoredOld,
        Self::CertExpiring,
        Self::SecretOwner,
        Self::BackupStale,
        Self::Quota,
        Self::IpPool,
        Self::ImageMissing,
        Self::ReleaseUnsigned,
        Self::PkgIncompatible,
        Self::PkgUnmanaged,
        Self::PkgAhead,
        Self::NodeUnhealthy,
        Self::EtcdUnhealthy,
        Self::UpdateInProgress,
        Self::UpdateFailedBefore,
        Self::Hold,
        Self::WindowTooShort,
        Self::GitopsDrift,
        Self::LabelRemoved,
    ];

    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ApiRemoved => "API-REMOVED",
            Self::ApiClientOld => "API-CLIENT-OLD",
            Self::SkewKubelet => "SKEW-KUBELET",
            Self::SkewEtcd => "SKEW-ETCD",
            Self::PdbNever => "PDB-NEVER",
            Self::PdbAtLimit => "PDB-AT-LIMIT",
            Self::DrainLocalData => "DRAIN-LOCAL-DATA",
            Self::DrainBarePod => "DRAIN-BARE-POD",
            Self::WebhookBlocksNodes => "WEBHOOK-BLOCKS-NODES",
            Self::WebhookSlow => "WEBHOOK-SLOW",
            Self::CrdStoredOld => "CRD-STORED-OLD",
            Self::CertExpiring => "CERT-EXPIRING",
            Self::SecretOwner => "SECRET-OWNER",
            Self::BackupStale => "BACKUP-STALE",
            Self::Quota => "QUOTA",
            Self::IpPool => "IP-POOL",
            Self::ImageMissing => "IMAGE-MISSING",
            Self::ReleaseUnsigned => "RELEASE-UNSIGNED",
            Self::PkgIncompatible => "PKG-INCOMPATIBLE",
            Self::PkgUnmanaged => "PKG-UNMANAGED",
            Self::PkgAhead => "PKG-AHEAD",
            Self::NodeUnhealthy => "NODE-UNHEALTHY",
            Self::EtcdUnhealthy => "ETCD-UNHEALTHY",
            Self::UpdateInProgress => "UPDATE-IN-PROGRESS",
            Self::UpdateFailedBefore => "UPDATE-FAILED-BEFORE",
            Self::Hold => "HOLD",
            Self::WindowTooShort => "WINDOW-TOO-SHORT",
            Self::GitopsDrift => "GITOPS-DRIFT",
            Self::LabelRemoved => "LABEL-REMOVED",
        }
    }

    /// What it is about, in a sentence.
    pub fn about(self) -> &'static str {
        match self {
            Self::ApiRemoved => "objects of a kind, or written in a version of it, that the release has no more",
            Self::ApiClientOld => "a client still writes in such a version",
            Self::SkewKubelet => "a kubelet is too far from the API servers of the release",
            Self::SkewEtcd => "etcd cannot go from what a member runs to what the release has in one step",
            Self::PdbNever => "a budget never lets a pod go whose node is to be drained",
            Self::PdbAtLimit => "a budget lets no pod go right now, because others are not ready",
            Self::DrainLocalData => "data on a node that goes with it",
            Self::DrainBarePod => "a pod that nobody makes again elsewhere",
            Self::WebhookBlocksNodes => "nodes cannot join or live while a webhook does not answer",
            Self::WebhookSlow => "a webhook or an API of others that makes requests slow, or does not answer",
            Self::CrdStoredOld => "custom resources may be stored in a version that is on its way out",
            Self::CertExpiring => "a certificate that has expired, or does so soon",
            Self::SecretOwner => "a certificate of the cluster is lost, or goes with a machine",
            Self::BackupStale => "there is no recent backup of etcd",
            Self::Quota => "no spare quota for the machines that a roll has more than before",
            Self::IpPool => "no spare addresses for them",
            Self::ImageMissing => "an image that a package of the release needs is not there",
            Self::ReleaseUnsigned => "nobody vouches for the release",
            Self::PkgIncompatible => "a package of the release does not fit its Kubernetes, or the cluster's choices",
            Self::PkgUnmanaged => "a package that somebody else has brought in stays as it is",
            Self::PkgAhead => "the network is that of the new release while nodes and API servers are of the old one",
            Self::NodeUnhealthy => "a node or a machine is not well",
            Self::EtcdUnhealthy => "a member of etcd does not answer, does not vote or raises an alarm",
            Self::UpdateInProgress => "another update is under way",
            Self::UpdateFailedBefore => "the last update, or one to the same release, has failed",
            Self::Hold => "somebody holds the cluster, a pool or a machine",
            Self::WindowTooShort => "the update takes longer than its window",
            Self::GitopsDrift => "a repository has the last word on the cluster's object",
            Self::LabelRemoved => "something goes by a label or taint of nodes that the release has no more",
        }
    }

    /// How bad it can be, besides unknown.
    pub fn severities(self) -> &'static [Severity] {
        use Severity::{Blocks, Info, Risky};
        match self {
            Self::BackupStale | Self::ReleaseUnsigned | Self::WindowTooShort => &[],
            Self::SkewKubelet | Self::SkewEtcd | Self::IpPool | Self::PkgIncompatible => &[Blocks],
            Self::ApiRemoved
            | Self::PdbNever
            | Self::WebhookBlocksNodes
            | Self::SecretOwner
            | Self::Quota
            | Self::ImageMissing
            | Self::NodeUnhealthy
            | Self::EtcdUnhealthy
            | Self::UpdateFailedBefore
            | Self::Hold => &[Blocks, Risky],
            Self::CertExpiring => &[Blocks, Risky, Info],
            Self::DrainLocalData | Self::CrdStoredOld | Self::PkgAhead => &[Risky, Info],
            Self::ApiClientOld
            | Self::PdbAtLimit
            | Self::DrainBarePod
            | Self::WebhookSlow
            | Self::PkgUnmanaged
            | Self::UpdateInProgress
            | Self::GitopsDrift
            | Self::LabelRemoved => &[Risky],
        }
    }

    /// Why nothing here can decide it; `None` where something does.
    pub fn undecided(self) -> Option<&'static str> {
        match self {
            Self::BackupStale => Some("nothing here makes backups of etcd, and no object says when there was one"),
            Self::ReleaseUnsigned => Some("releases carry no signature that could be looked at"),
            Self::WindowTooShort => Some("clusters have no windows yet"),
            _ => None,
        }
    }
}

impl fmt::Display for RiskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for RiskId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
