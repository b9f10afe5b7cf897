//! V4: what runs beside an API server fits to every API server that it talks to.

use windlass_api::version::KubernetesVersion;
use windlass_api::version::facts::managers_use_local_api_server;

use super::exemption::PROGRAMS_THROUGH_THE_CLUSTER_ADDRESS;
use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Topic};

pub(super) const RULE: Rule = Rule {
    id: "V4",
    demands: "No controller manager or scheduler is newer than an API server that it can reach, nor more than one minor older.",
    topics: &[Topic::Nodes, Topic::Request],
    check,
};

fn check(cluster: &Cluster, _: &Fact, findings: &mut Findings) {
    let workload = &cluster.workload;
    for (node, programs) in workload.programs.iter().filter(|(node, _)| workload.runs(node)) {
        for (program, version) in programs.clients() {
            let is_local = managers_use_local_api_server(version);
            let mut reached = workload.serving().filter(|(server, _)| !is_local || *server == &**node);
            let Some((server, other)) = reached.find(|(_, server)| !fits(version, server)) else { continue };
            let subject = format!("{program} {node}");
            let text = format!("the {program} on {node} is {version}, and the API server on {server} is {other}");
            // One minor apart, while one of the two is what the roll brings or takes away.
            let is_next = version.distance_from(other).is_within(1, 1);
            let is_rolled = cluster.rolls_to().is_some_and(|to| version == to || other == to);
            if PROGRAMS_THROUGH_THE_CLUSTER_ADDRESS.covers(version) && is_next && is_rolled {
                findings.exempt(&PROGRAMS_THROUGH_THE_CLUSTER_ADDRESS, subject, text);
            } else {
                findings.breach(subject, text);
            }
        }
    }
}

fn fits(version: &KubernetesVersion, server: &KubernetesVersion) -> bool {
    version.distance_from(server).is_within(1, 0)
}
