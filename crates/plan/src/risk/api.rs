//! What the release has no more: versions of kinds, kinds, labels of nodes; and custom resources that are stored as they were.

use std::collections::BTreeSet;

use windlass_api::label;
use windlass_api::version::{KubernetesVersion, facts};

use super::evidence::{ApiUse, Definition, Evidence, Selection, UnreadKind, Versions};
use super::removal::{self, Gone};
use super::{Found, Risk, RiskId, Severity, shown};

pub(super) fn check(evidence: &Evidence, found: &mut Found) {
    definitions(evidence, found);
    let ids = [RiskId::ApiRemoved, RiskId::ApiClientOld, RiskId::LabelRemoved];
    let Some(from) = found.read_one(&ids, &evidence.from) else { return };
    let Some(to) = found.read_one(&ids, &evidence.to) else { return };
    // What one minor has, every release of it has.
    if from.kubernetes.minor() == to.kubernetes.minor() {
        return;
    }
    let kinds = removal::kinds_between(&from.kubernetes, &to.kubernetes);
    if !kinds.is_empty() {
        lost_versions(evidence, &kinds, (from, to), found);
    }
    for selection in found.read(&[RiskId::LabelRemoved], &evidence.selections) {
        found.risks.extend(unlabelled(selection, from, to));
    }
}

/// What is known of the kinds that lose a version. Where none does, nothing has to be known.
fn lost_versions(evidence: &Evidence, kinds: &BTreeSet<&str>, (from, to): (&Versions, &Versions), found: &mut Found) {
    for object in found.read(&[RiskId::ApiRemoved], &evidence.objects) {
        found.risks.extend(removed(object, from, to));
    }
    for object in found.read(&[RiskId::ApiRemoved], &evidence.manifests) {
        found.risks.extend(applied(object, from, to));
    }
    clients(evidence, from, to, found);
    for UnreadKind { gap, .. } in evidence.unread_kinds.iter().filter(|unread| kinds.contains(unread.kind.as_str())) {
        found.unknown(&[RiskId::ApiRemoved, RiskId::ApiClientOld], gap);
    }
}

/// An object that nobody could read or delete any more. Where its kind goes on in another version, it is read in that.
fn removed(object: &ApiUse, from: &Versions, to: &Versions) -> Option<Risk> {
    let ApiUse { api_version, kind, .. } = object;
    let gone = removal::between(&from.kubernetes, &to.kubernetes, api_version, kind)?;
    gone.instead.is_none().then(|| Risk {
        severity: Severity::Blocks,
        id: RiskId::ApiRemoved,
        object: object.object.clone(),
        message: format!("it is a {kind} of {api_version}, which {} does not know", to.kubernetes),
        because: vec![since(&gone, object, to)],
        way_out: format!("delete {}, and do without its kind", object.object),
    })
}

fn applied(object: &ApiUse, from: &Versions, to: &Versions) -> Option<Risk> {
    let ApiUse { api_version, kind, .. } = object;
    let gone = removal::between(&from.kubernetes, &to.kubernetes, api_version, kind)?;
    let instead = gone.instead?;
    Some(Risk {
        severity: Severity::Risky,
        id: RiskId::ApiRemoved,
        object: object.object.clone(),
        message: format!(
            "its manifest was last applied as {api_version}, and cannot be applied so any more; the object itself stays"
        ),
        because: vec![since(&gone, object, to)],
        way_out: format!("apply its manifest with apiVersion: {instead}"),
    })
}

fn since(gone: &Gone, object: &ApiUse, to: &Versions) -> String {
    format!("{} has no {} of {}, as none since {}", to.kubernetes, object.kind, object.api_version, gone.since)
}

fn clients(evidence: &Evidence, from: &Versions, to: &Versions, found: &mut Found) {
    for client in found.read(&[RiskId::ApiClientOld], &evidence.clients) {
        let (api_version, kind) = (&client.api_version, &client.kind);
        let Some(gone) = removal::between(&from.kubernetes, &to.kubernetes, api_version, kind) else { continue };
        let last = client.last.map_or_else(|| "at a time that it does not say".to_owned(), |at| format!("at {at}"));
        found.raise(Risk {
            severity: Severity::Risky,
            id: RiskId::ApiClientOld,
            object: client.object.clone(),
            message: format!("{} last wrote it {last} as {api_version}, which {} refuses", client.name, to.kubernetes),
            because: vec![format!("{kind} of {api_version} is gone since {}", gone.since)],
            way_out: match gone.instead {
                Some(instead) => format!("update {} to a version that writes {instead}", client.name),
                None => format!("update {} to a version that does without {kind}", client.name),
            },
        });
    }
}

fn unlabelled(selection: &Selection, from: &Versions, to: &Versions) -> Option<Risk> {
    if selection.key != label::NODE_MASTER.name {
        return None;
    }
    let (key, instead) = (label::NODE_MASTER.name, label::NODE_CONTROL_PLANE.name);
    let (is_there, does, should): (fn(&KubernetesVersion) -> bool, _, _) = if selection.tolerates {
        (facts::has_master_taint, "tolerates the taint", "tolerate the taint")
    } else {
        (facts::has_master_label, "selects nodes by the label", "select nodes by the label")
    };
    (is_there(&from.kubernetes) && !is_there(&to.kubernetes)).then(|| Risk {
        severity: Severity::Risky,
        id: RiskId::LabelRemoved,
        object: selection.object.clone(),
        message: format!("it {does} {key}, which nodes of {} do not have", to.kubernetes),
        because: vec![format!(
            "its pods would find no node of the control plane any more; {instead} has taken its place"
        )],
        way_out: format!("{should} {instead} too, in {}", selection.object),
    })
}

fn definitions(evidence: &Evidence, found: &mut Found) {
    if !evidence.rolls.any() {
        return;
    }
    for definition in found.read(&[RiskId::CrdStoredOld], &evidence.definitions) {
        found.risks.extend(stored_old(definition));
    }
}

/// Objects may be in every version that the definition says was ever stored.
fn stored_old(definition: &Definition) -> Option<Risk> {
    let named = |name: &String| definition.versions.iter().find(|version| version.name == *name);
    let old: BTreeSet<&String> =
        definition.stored.iter().filter(|name| named(name).is_none_or(|version| !version.storage)).collect();
    let old: Vec<&String> = old.into_iter().collect();
    let current = definition.versions.iter().find(|version| version.storage)?;
    if old.is_empty() {
        return None;
    }
    let unserved: Vec<&&String> = old.iter().filter(|name| named(name).is_none_or(|version| !version.served)).collect();
    let severity = if unserved.is_empty() { Severity::Info } else { Severity::Risky };
    let because = if unserved.is_empty() {
        "a package that drops an old version of it could not read them any more".to_owned()
    } else {
        format!("{} is not served any more, so nobody can rewrite them but the definition's owner", shown(&unserved))
    };
    Some(Risk {
        severity,
        id: RiskId::CrdStoredOld,
        object: format!("CustomResourceDefinition {}", definition.name),
        message: format!("objects of it may still be stored as {}, and new ones are as {}", shown(&old), current.name),
        because: vec![because],
        way_out: format!(
            "write each of its objects once, then set status.storedVersions of {} to [{}]",
            definition.name, current.name
        ),
    })
}
