//! The templates that earlier updates have made for pools.

use windlass_api::name::{ObjectName, Uid};
use windlass_plan::check::check;
use windlass_plan::inventory::EarlierTemplate;
use windlass_plan::planner::{Planned, PlanningInput, plan};
use windlass_plan::step::Revision;

use crate::fake::Fake;
use crate::sample::target;
use crate::story::{checked_plan, running_cluster};

fn template(kind: &'static str, name: &str) -> EarlierTemplate {
    let revision = Revision { uid: Uid::new("uid-of-a-template").unwrap(), resource_version: "7".to_owned() };
    EarlierTemplate { api_version: "v".to_owned(), kind, name: ObjectName::new(name).unwrap(), revision }
}

/// A cluster at rest, with templates that nobody refers to.
fn left() -> Fake {
    let mut fake = running_cluster(1, 1);
    fake.inventory.earlier_templates =
        vec![template("WCPMachineTemplate", "earlier"), template("KubeadmConfigTemplate", "earlier")];
    fake
}

fn deleted(planned: &Planned) -> Vec<String> {
    planned.steps.iter().map(|step| format!("{} {}", step.action.verb(), step.action.kind())).collect()
}

#[test]
fn templates_that_nobody_refers_to_go_when_all_is_at_rest() {
    let mut fake = left();
    assert_eq!(deleted(&checked_plan(&fake)), ["delete WCPMachineTemplate", "delete KubeadmConfigTemplate"]);

    // Whatever was seen: what the pool has stays.
    let pool = fake.inventory.pools.values().next().unwrap().infrastructure_template.name.clone();
    fake.inventory.earlier_templates[0].name = pool;
    assert_eq!(deleted(&checked_plan(&fake)), ["delete KubeadmConfigTemplate"]);

    // Nothing goes while somebody holds the cluster, while a pool moves, or in an update.
    let check = |change: &dyn Fn(&mut Fake)| {
        let mut fake = left();
        change(&mut fake);
        let deletes = deleted(&checked_plan(&fake)).into_iter().filter(|step| step.starts_with("delete")).count();
        assert_eq!(deletes, 0);
    };
    check(&|fake| {
        let windlass_plan::inventory::ClusterState::Present { paused, .. } = &mut fake.inventory.cluster else {
            panic!()
        };
        *paused = Some("somebody looks at it".to_owned());
    });
    check(&|fake| fake.inventory.pools.values_mut().next().unwrap().progress.available = 0);
    check(&|fake| {
        fake.target = target(1, 1, "v1.16.7");
        let record = checked_plan(fake).record.unwrap();
        fake.record(&record);
    });
}

#[test]
fn deleting_a_template_that_is_needed_is_found_out() {
    let fake = left();
    let mut input = fake.input();
    let planned = plan(&input);
    let found =
        |input: &PlanningInput| check(input, &planned).into_iter().map(|finding| finding.id).collect::<Vec<_>>();
    assert_eq!(found(&input), [""; 0]);
    // Somebody has changed one of them, and a pool has the other.
    input.inventory.earlier_templates[0].revision.resource_version = "8".to_owned();
    let pool = input.inventory.pools.values_mut().next().unwrap();
    pool.bootstrap_template.name = ObjectName::new("earlier").unwrap();
    assert_eq!(found(&input), ["D10", "D10"]);
}
