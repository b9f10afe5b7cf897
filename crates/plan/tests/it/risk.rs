//! Risks: each check of the catalogue raised, not raised, and not known.

mod cause;
mod quiet;
mod raised;
mod sample;
mod table;

use std::collections::BTreeSet;

use windlass_plan::risk::evidence::{Evidence, Rolls};
use windlass_plan::risk::{Known, Risk, RiskId, Severity, assess};

use sample::well;

/// What a cluster is changed to, and what is then said of it.
pub struct Raised {
    id: RiskId,
    severity: Severity,
    object: &'static str,
    /// Words that the message has.
    says: &'static [&'static str],
    change: fn(&mut Evidence),
}

/// What a cluster is changed to that is no such risk.
pub struct Quiet {
    id: RiskId,
    change: fn(&mut Evidence),
}

/// What is found of a cluster that was well, and was changed.
fn found(change: impl FnOnce(&mut Evidence)) -> Vec<Risk> {
    let mut evidence = well();
    change(&mut evidence);
    assess(&evidence)
}

#[test]
fn of_a_cluster_that_is_well_nothing_is_said() {
    assert_eq!(found(|_| ()), []);
}

#[test]
fn every_risk_is_raised_with_its_object_and_the_reason() {
    for row in raised::rows() {
        let risks = found(row.change);
        let [risk] = &risks[..] else { panic!("{}: {risks:#?}", row.id) };
        assert_eq!((risk.id, risk.severity, risk.object.as_str()), (row.id, row.severity, row.object), "{risk:#?}");
        for words in row.says {
            assert!(risk.message.contains(words), "{words:?} is not in {:?}", risk.message);
        }
        assert!(!risk.way_out.is_empty(), "{risk:#?}");
        assert!(row.id.severities().contains(&row.severity), "{}: {} is not declared", row.id, row.severity);
    }
}

#[test]
fn what_is_almost_a_risk_is_none() {
    for row in quiet::rows() {
        let risks = found(row.change);
        let named: Vec<&Risk> = risks.iter().filter(|risk| risk.id == row.id).collect();
        assert!(named.is_empty(), "{named:#?}");
    }
}

#[test]
fn every_check_has_a_row_that_raises_it_for_each_severity_and_one_that_does_not() {
    let raised: BTreeSet<(RiskId, Severity)> = raised::rows().iter().map(|row| (row.id, row.severity)).collect();
    let quiet: BTreeSet<RiskId> = quiet::rows().iter().map(|row| row.id).collect();
    for id in RiskId::ALL {
        assert_eq!(id.undecided().is_some(), id.severities().is_empty(), "{id}");
        assert_eq!(quiet.contains(&id), id.undecided().is_none(), "{id}");
        for severity in Severity::ALL {
            assert_eq!(raised.contains(&(id, severity)), id.severities().contains(&severity), "{id} {severity}");
        }
    }
}

#[test]
fn what_was_not_read_is_unknown_and_what_is_not_there_is_not() {
    let mut unknown = BTreeSet::new();
    let mut check = |forget: fn(&mut Evidence), what: &str, ids: &[RiskId]| {
        let risks = found(forget);
        let all: BTreeSet<RiskId> = risks.iter().map(|risk| risk.id).collect();
        assert_eq!(all, ids.iter().copied().collect(), "{risks:#?}");
        for risk in &risks {
            assert_eq!(
                (risk.severity, risk.message.as_str()),
                (Severity::Unknown, format!("unknown because {what} could not be read").as_str())
            );
            assert_eq!(risk.because, ["nobody may"]);
        }
        unknown.extend(all);
    };
    macro_rules! forgets {
        ($($field:ident, $what:literal: $($id:ident)+;)+) => {
            $(check(|evidence| evidence.$field = Known::unread($what, "nobody may"), $what, &[$(RiskId::$id),+]);)+
        };
    }
    forgets! {
        from, "the release": ApiRemoved ApiClientOld LabelRemoved;
        to, "the release": ApiRemoved ApiClientOld LabelRemoved SkewKubelet SkewEtcd PkgIncompatible;
        objects, "objects": ApiRemoved;
        manifests, "manifests": ApiRemoved;
        clients, "managedFields": ApiClientOld;
        selections, "DaemonSets": LabelRemoved;
        nodes, "Nodes": SkewKubelet PdbNever PdbAtLimit DrainLocalData DrainBarePod NodeUnhealthy;
        members, "members": SkewEtcd EtcdUnhealthy;
        pods, "Pods": PdbNever PdbAtLimit DrainLocalData DrainBarePod ImageMissing;
        budgets, "PodDisruptionBudgets": PdbNever PdbAtLimit;
        webhooks, "webhooks": WebhookBlocksNodes WebhookSlow;
        api_services, "APIServices": WebhookSlow;
        definitions, "definitions": CrdStoredOld;
        certificates, "certificates": CertExpiring;
        certificate_secrets, "Secrets": SecretOwner;
        surges, "MachineDeployments": Quota IpPool;
        quotas, "ResourceQuotas": Quota;
        address_pools, "pools": IpPool;
        packages, "packages": ImageMissing PkgIncompatible;
        not_offered, "choices": PkgIncompatible;
        unmanaged, "add-ons": PkgUnmanaged;
        ahead, "versions": PkgAhead;
        machines, "Machines": NodeUnhealthy;
        updates, "ClusterUpdates": UpdateInProgress UpdateFailedBefore;
        holds, "holds": Hold;
        keepers, "the cluster": GitopsDrift;
    }
    let decided: BTreeSet<RiskId> = RiskId::ALL.into_iter().filter(|id| id.undecided().is_none()).collect();
    assert_eq!(unknown, decided, "every check lacks something when its evidence is not there");
}

#[test]
fn parts_of_what_was_read_can_be_unknown_too() {
    let check = |change: fn(&mut Evidence), id: RiskId| {
        let risks = found(change);
        assert!(matches!(&risks[..], [Risk { severity: Severity::Unknown, .. }]) && risks[0].id == id, "{risks:#?}");
    };
    let volumes = |evidence: &mut Evidence| {
        evidence.volumes = Known::unread("PersistentVolumes", "nobody may");
        sample::of(&mut evidence.pods)[0].claims = vec!["web/data".to_owned()];
    };
    check(volumes, RiskId::DrainLocalData);
    let used = |evidence: &mut Evidence| {
        let used = Known::unread("what is used", "its status is empty");
        let quota = sample::quota("count/machines.cluster.x-k8s.io", 5, 5);
        evidence.quotas = Known::Read(vec![windlass_plan::risk::evidence::Quota { used, ..quota }]);
    };
    check(used, RiskId::Quota);
    let alarms = |evidence: &mut Evidence| {
        sample::of(&mut evidence.members)[0].alarms = Known::unread("alarms", "nobody may");
    };
    check(alarms, RiskId::EtcdUnhealthy);
    let endpoints = |evidence: &mut Evidence| {
        let ready_pods = Known::unread("Services", "nobody may");
        let webhook = sample::webhook(None);
        evidence.webhooks = Known::Read(vec![windlass_plan::risk::evidence::Webhook { ready_pods, ..webhook }]);
    };
    check(endpoints, RiskId::WebhookBlocksNodes);
    let dates = |evidence: &mut Evidence| {
        let certificate = raised::certificate("2036-01-01T00:00:00Z", false);
        let undated = windlass_plan::risk::evidence::Certificate {
            expires: Known::unread("the dates of certificates", "it cannot be read"),
            ..certificate.clone()
        };
        evidence.certificates = Known::Read(vec![certificate, undated]);
    };
    check(dates, RiskId::CertExpiring);
    let addresses = |evidence: &mut Evidence| {
        let pool = raised::addresses(6, 5);
        let endless = windlass_plan::risk::evidence::AddressPool {
            addresses: Known::unread("how many addresses there are", "nobody says so"),
            ..pool.clone()
        };
        evidence.address_pools = Known::Read(vec![pool, endless]);
    };
    check(addresses, RiskId::IpPool);
}

#[test]
fn of_kinds_that_lose_a_version_all_have_to_be_known() {
    let risks = found(|evidence| evidence.unread_kinds = vec![quiet::unread("CronJob")]);
    let said: Vec<(RiskId, Severity, &str)> =
        risks.iter().map(|risk| (risk.id, risk.severity, risk.object.as_str())).collect();
    let unknown = |id| (id, Severity::Unknown, "CronJob objects");
    assert_eq!(said, [unknown(RiskId::ApiRemoved), unknown(RiskId::ApiClientOld)]);
}

#[test]
fn where_no_machine_is_replaced_nothing_about_machines_is_said() {
    let mut evidence = Evidence::nothing(well().cluster, well().at, Rolls::NONE);
    sample::goes(&mut evidence, "v1.24.9", "v1.24.9");
    let said: Vec<String> = assess(&evidence).iter().map(ToString::to_string).collect();
    assert!(said.is_empty(), "{said:?}");
}

#[test]
fn the_worst_comes_first_and_what_is_the_same_in_every_word_comes_once() {
    let change = |evidence: &mut Evidence| {
        for row in raised::rows().iter().filter(|row| matches!(row.id, RiskId::Hold | RiskId::DrainBarePod)) {
            (row.change)(evidence);
        }
        let held = sample::of(&mut evidence.holds)[0].clone();
        let differently = windlass_plan::risk::evidence::Hold { way_out: "ask".to_owned(), ..held.clone() };
        sample::of(&mut evidence.holds).extend([held, differently]);
    };
    let risks = found(change);
    let severities: Vec<Severity> = risks.iter().map(|risk| risk.severity).collect();
    assert!(severities.is_sorted(), "{risks:#?}");
    let held = risks.iter().filter(|risk| risk.id == RiskId::Hold).count();
    assert_eq!(held, 2, "one that is told twice, and one with another way out: {risks:#?}");
    assert_eq!(risks, found(change), "and always in this order");
}
