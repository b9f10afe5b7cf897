//! Health checks: machines that something is wrong with are replaced, as long as there are not too many of them.

use serde_json::{Value, json};
use windlass_api::kind::cluster_api::{Machine, MachineDeployment};
use windlass_api::kind::condition;
use windlass_api::kind::machine_health::MachineHealthCheck;
use windlass_api::name::NodeName;

use super::drain::grown;
use super::stage::{Stage, stage};
use super::{is_available, is_rolled_out};

async fn health_check(stage: &Stage, checks: Value, trigger: Value) {
    let pool = json!({"cluster.x-k8s.io/deployment-name": "c-workers"});
    stage
        .create(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineHealthCheck", "metadata": {"name": "workers"},
            "spec": {
                "clusterName": "c", "selector": {"matchLabels": pool}, "checks": checks,
                "remediation": {"triggerIf": trigger},
            },
        }))
        .await;
}

fn silent_for(seconds: u32) -> Value {
    json!({"unhealthyNodeConditions": [{"type": "Ready", "status": "Unknown", "timeoutSeconds": seconds}]})
}

async fn said(stage: &Stage, machine: &str, type_: &str) -> Option<(String, String)> {
    let machine: Machine = stage.get(machine).await;
    let status = machine.status.unwrap();
    condition(&status.conditions, type_).map(|found| (found.status.clone(), found.reason.clone()))
}

fn of(status: &str, reason: &str) -> (String, String) {
    (status.to_owned(), reason.to_owned())
}

/// The machine of the pool that is none of these, as soon as there is one.
pub(super) async fn another(stage: &Stage, than: &[&str]) -> String {
    for _ in 0..1_800 {
        let pool = stage.machines_of_pool().await;
        if let Some(name) = pool.into_iter().find(|name| !than.contains(&name.as_str())) {
            return name;
        }
        stage.pass(1).await;
    }
    panic!("nothing came in the place of {than:?}")
}

#[test]
fn a_machine_whose_node_falls_silent_is_replaced() {
    stage(|stage| async move {
        let [first, second] = grown(&stage, 2).await.try_into().unwrap();
        health_check(&stage, silent_for(60), json!({})).await;
        stage.pass(1).await;
        assert_eq!(said(&stage, &first, "HealthCheckSucceeded").await, Some(of("True", "HealthCheckSucceeded")));
        let check: MachineHealthCheck = stage.get("workers").await;
        let status = check.status.unwrap();
        assert_eq!(
            (status.expected_machines, status.current_healthy, status.remediations_allowed),
            (Some(2), Some(2), Some(2))
        );
        assert_eq!(status.targets, [first.clone(), second.clone()]);
        assert_eq!(check.metadata.owner_references.unwrap()[0].name, "c");

        let lost: Machine = stage.get(&first).await;
        stage.workload("c").power_off(&NodeName::new(&first).unwrap());
        // It takes 40 s until the silence is noticed.
        stage.pass(95).await;
        assert_eq!(said(&stage, &first, "HealthCheckSucceeded").await, Some(of("True", "HealthCheckSucceeded")));
        stage.pass(10).await;
        let replacement = another(&stage, &[&first, &second]).await;
        let replaced: Machine = stage.until(&replacement, is_available).await;
        assert_ne!(replaced.spec.provider_id, lost.spec.provider_id);
        assert_eq!(said(&stage, &second, "HealthCheckSucceeded").await, Some(of("True", "HealthCheckSucceeded")));
        stage.until::<MachineDeployment>("c-workers", is_rolled_out).await;
    });
}

#[test]
fn a_machine_that_is_slow_to_join_is_replaced_as_if_it_were_broken() {
    stage(|stage| async move {
        let [name] = grown(&stage, 1).await.try_into().unwrap();
        // No machine joins within two seconds of its boot.
        health_check(&stage, json!({"nodeStartupTimeoutSeconds": 2}), json!({})).await;
        stage.delete::<Machine>(&name).await;
        let second = another(&stage, &[&name]).await;
        let ill: Machine = stage
            .until(&second, |machine: &Machine| {
                let conditions = machine.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
                condition(conditions, "HealthCheckSucceeded").is_some_and(|found| found.status == "False")
            })
            .await;
        let found = condition(&ill.status.as_ref().unwrap().conditions, "HealthCheckSucceeded").unwrap().clone();
        assert_eq!(found.reason, "NodeStartupTimeout");
        assert_eq!(found.message, "Health check failed: Node failed to report startup in 2s");
        another(&stage, &[&name, &second]).await;
    });
}

#[test]
fn when_too_many_are_ill_nobody_is_replaced() {
    stage(|stage| async move {
        let machines = grown(&stage, 3).await;
        health_check(&stage, silent_for(60), json!({"unhealthyLessThanOrEqualTo": "40%"})).await;
        for name in &machines[..2] {
            stage.workload("c").power_off(&NodeName::new(name).unwrap());
        }
        stage.pass(600).await;
        assert_eq!(stage.machines_of_pool().await, machines);
        let check: MachineHealthCheck = stage.get("workers").await;
        let status = check.status.unwrap();
        let allowed = condition(&status.conditions, "RemediationAllowed").unwrap();
        assert_eq!((allowed.status.as_str(), allowed.reason.as_str()), ("False", "TooManyUnhealthy"));
        assert!(allowed.message.ends_with("(total: 3, unhealthy: 2, unhealthyLessThanOrEqualTo: 40%)"), "{allowed:?}");
        assert_eq!(said(&stage, &machines[0], "HealthCheckSucceeded").await, Some(of("False", "UnhealthyNode")));
        assert_eq!(said(&stage, &machines[0], "OwnerRemediated").await, None, "nobody was asked to");
    });
}
