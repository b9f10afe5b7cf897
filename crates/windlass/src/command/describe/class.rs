//! A cluster of a class: its packages stand between the object that people ask with and its machines.

use kube::ResourceExt as _;
use windlass_api::kind::Condition;
use windlass_api::kind::release::ClusterBootstrap;
use windlass_api::name::ClusterName;
use windlass_plan::bootstrap::{Listed, listed, title};

use super::tree::Branch;
use super::{Parts, availability, of_roles, secrets};
use crate::client::{Error, Management};
use crate::course::ClassReport;
use crate::output;

/// Reads what its report does not have, and draws all of it.
pub(super) async fn tree(management: &Management, name: &ClusterName, report: &ClassReport) -> Result<Branch, Error> {
    let bootstrap = management.api::<ClusterBootstrap>().get_opt(name.as_str()).await;
    let bootstrap = bootstrap.map_err(Error::while_trying(&format!("read the packages of {name}")))?;
    let parts = Parts::read(management, name, None).await?;
    let state = format!("{}  {}", report.assessment.to_uppercase(), output::cell(report.release.as_ref()));
    let mut root = Branch::new(format!("Cluster/{name}"), state);
    let waits = report.waits.iter().map(|wait| format!("{}: {}", wait.object, wait.message));
    root.parts.extend(waits.map(|why| Branch::new("waiting for", why)));
    let conditions = parts.cluster.as_ref().map(|cluster| cluster.status.clone().unwrap_or_default().conditions);
    root.parts.push(Branch::new("Cluster API says", availability(conditions.as_deref())));
    root.parts.extend(bootstrap.as_ref().map(packages));
    root.parts.extend(of_roles(&parts, &report.machines));
    root.parts.push(secrets(&parts));
    Ok(root)
}

/// The packages that it should have, in order, with what is said of each.
fn packages(bootstrap: &ClusterBootstrap) -> Branch {
    let status = bootstrap.status.clone().unwrap_or_default();
    let of = status.resolved_tkr.map(|release| format!("packages of {release}")).unwrap_or_default();
    let name = format!("ClusterBootstrap/{}", bootstrap.name_any());
    match listed(&bootstrap.spec.packages) {
        Ok(listed) => Branch::new(name, of).with(listed.iter().map(|it| package(it, &status.conditions))),
        Err(why) => Branch::new(name, format!("✖ {why}")),
    }
}

fn package(listed: &Listed, conditions: &[Condition]) -> Branch {
    let (version, own) = (listed.version(), format!("{}-", title(listed.short())));
    let said = conditions.iter().find_map(|it| Some((it.type_.strip_prefix(&own)?, it)));
    let state = match said {
        Some(("ReconcileSucceeded", _)) => format!("✔ {version}"),
        Some((_, it)) if !it.message.is_empty() => {
            format!("… {version}: {}: {}", it.reason, super::first_line(&it.message))
        }
        Some((_, it)) => format!("… {version}: {}", it.reason),
        None => format!("… {version}: nothing is said of it yet"),
    };
    Branch::new(listed.short(), state)
}
