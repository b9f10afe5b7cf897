//! Room for the machines that there are more than before, while a role is rolled and when it grows.

use windlass_api::quota::Counted;

use super::evidence::{AddressPool, Addresses, Evidence, Quantity, Quota, Surge};
use super::{Found, Risk, RiskId, Severity, are};

pub(super) fn check(evidence: &Evidence, found: &mut Found) {
    let ids = [RiskId::Quota, RiskId::IpPool];
    let none = evidence.surges.read().is_none_or(|surges| surges.iter().all(|surge| surge.machines == 0));
    if !evidence.rolls.any() && none {
        return;
    }
    let Some(surges) = found.read_one(&ids, &evidence.surges) else { return };
    let rolled: Vec<&Surge> = surges.iter().filter(|surge| surge.machines > 0).collect();
    if rolled.is_empty() {
        return;
    }
    for quota in found.read(&[RiskId::Quota], &evidence.quotas) {
        let counted = rolled.iter().filter_map(|surge| Some((*surge, needed(quota, surge)?)));
        for (surge, need) in counted.collect::<Vec<_>>() {
            let Some(used) = found.read_one(&[RiskId::Quota], &quota.used) else { break };
            found.risks.extend(too_little(quota, *used, surge, need));
        }
    }
    for pool in found.read(&[RiskId::IpPool], &evidence.address_pools) {
        let Some(addresses) = found.read_one(&[RiskId::IpPool], &pool.addresses) else { continue };
        found.risks.extend(rolled.iter().find_map(|surge| no_address(pool, *addresses, surge)));
    }
}

/// How much of it the new machines take, and whether Kubernetes itself counts that.
fn needed(quota: &Quota, surge: &Surge) -> Option<Need> {
    let each = match Counted::of(&quota.resource)? {
        Counted::Processors => surge.cpus,
        Counted::Memory => surge.memory,
        // Each is made once for each machine. A provider may have its own beside them.
        Counted::Machines | Counted::InfrastructureMachines | Counted::BootstrapConfigs | Counted::Secrets => {
            return Some(Need { amount: Quantity::units(i64::from(surge.machines)), is_enforced: true });
        }
    }?;
    Some(Need { amount: each.times(surge.machines), is_enforced: false })
}

#[derive(Clone, Copy)]
struct Need {
    amount: Quantity,
    /// Kubernetes counts these objects; processors and memory of machines are for their provider to count.
    is_enforced: bool,
}

fn too_little(quota: &Quota, used: Quantity, surge: &Surge, need: Need) -> Option<Risk> {
    let Need { amount, is_enforced } = need;
    let free = quota.hard.less(used);
    if amount <= free {
        return None;
    }
    let Quota { name, resource, hard, .. } = quota;
    let (namespace, bare) = super::parts(name);
    let target = used.plus(amount);
    let mut because =
        vec![format!("{} has {} more than now, at the worst ({})", surge.role, machines(surge), surge.why)];
    if !is_enforced {
        because
            .push("Kubernetes counts only pods against it; whether machines count is up to their provider".to_owned());
    }
    Some(Risk {
        severity: if is_enforced { Severity::Blocks } else { Severity::Risky },
        id: RiskId::Quota,
        object: format!("ResourceQuota {name}"),
        message: format!(
            "{} has no room: {resource} is used {used} of {hard}, and {amount} more {} needed",
            surge.role,
            if amount == Quantity::units(1) { "is" } else { "are" }
        ),
        because,
        way_out: format!(
            "kubectl -n {namespace} patch quota {bare} --type=merge -p '{{\"spec\":{{\"hard\":{{\"{resource}\":\"{target}\"}}}}}}'"
        ),
    })
}

fn machines(surge: &Surge) -> String {
    super::count(usize::try_from(surge.machines).unwrap_or(usize::MAX), "machine")
}

fn no_address(pool: &AddressPool, addresses: Addresses, surge: &Surge) -> Option<Risk> {
    let Addresses { total, used } = addresses;
    let free = total.saturating_sub(used);
    if u64::from(surge.machines) <= free {
        return None;
    }
    Some(Risk {
        severity: Severity::Blocks,
        id: RiskId::IpPool,
        object: pool.name.clone(),
        message: format!(
            "{used} of {total} {} {} taken, and {} needs {} more",
            pool.what,
            are(usize::try_from(used).unwrap_or(usize::MAX)),
            surge.role,
            surge.machines
        ),
        because: vec![format!("{free} {} free", are(usize::try_from(free).unwrap_or(usize::MAX)))],
        way_out: pool.way_out.clone(),
    })
}
