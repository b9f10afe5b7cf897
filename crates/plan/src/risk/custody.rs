//! Certificates: how long they last, and whose they are.

use jiff::SignedDuration;

use super::evidence::{Certificate, CertificateSecret, Evidence};
use super::{Found, Risk, RiskId, Severity, count, parts, shown};

/// How long before its end a certificate is worth a word: as long as one month of updates.
const SOON: SignedDuration = SignedDuration::from_hours(30 * 24);

pub(super) fn check(evidence: &Evidence, found: &mut Found) {
    if !evidence.rolls.any() {
        return;
    }
    for certificate in found.read(&[RiskId::CertExpiring], &evidence.certificates) {
        found.risks.extend(expiring(certificate, evidence));
    }
    for secret in found.read(&[RiskId::SecretOwner], &evidence.certificate_secrets) {
        found.risks.extend(owner(secret, evidence));
    }
}

fn expiring(certificate: &Certificate, evidence: &Evidence) -> Option<Risk> {
    let left = evidence.at.duration_until(certificate.expires);
    if left > SOON {
        return None;
    }
    let days = count(usize::try_from(left.abs().as_hours() / 24).unwrap_or(usize::MAX), "day");
    let expired = left <= SignedDuration::ZERO;
    let (severity, message) = match (expired, certificate.renewed) {
        (true, _) => (Severity::Blocks, format!("{} expired {days} ago", certificate.what)),
        (false, true) => (Severity::Info, format!("{} expire in {days}; the update makes them anew", certificate.what)),
        (false, false) => (Severity::Risky, format!("{} expire in {days}", certificate.what)),
    };
    Some(Risk {
        severity,
        id: RiskId::CertExpiring,
        object: certificate.object.clone(),
        message,
        because: vec![format!("they last until {}", certificate.expires)],
        way_out: if expired {
            "kubeadm certs renew all, on each machine of the control plane".to_owned()
        } else {
            "nothing, if the update is done before; else kubeadm certs renew all, on each machine of the control plane"
                .to_owned()
        },
    })
}

fn owner(secret: &CertificateSecret, evidence: &Evidence) -> Option<Risk> {
    let cluster = &evidence.cluster.name;
    let object = format!("Secret {}", secret.name);
    let Some(owners) = &secret.owners else {
        return Some(Risk {
            severity: Severity::Blocks,
            id: RiskId::SecretOwner,
            object,
            message: "it is not there, and no machine can join without it".to_owned(),
            because: vec!["a new one would not fit what the machines have".to_owned()],
            way_out: format!("windlass secrets recover {cluster}"),
        });
    };
    if secret.lasts || !evidence.rolls.control_plane {
        return None;
    }
    let message = if owners.is_empty() {
        "nobody owns it: it is left behind, or cleaned up by whoever finds it".to_owned()
    } else {
        format!("it belongs to {} and not to the Cluster: it is deleted with them", shown(owners))
    };
    let (namespace, name) = parts(&secret.name);
    Some(Risk {
        severity: Severity::Risky,
        id: RiskId::SecretOwner,
        object,
        message,
        because: vec![
            "Windlass hands it over to the Cluster before it deletes a machine; others may delete one first".into(),
        ],
        way_out: format!("kubectl -n {namespace} edit secret {name}: metadata.ownerReferences, the Cluster {cluster}"),
    })
}
