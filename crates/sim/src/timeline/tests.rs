//! What a story is told as.

use super::script::{CLUSTER, NEW, OLD, Script};
use super::{Recorder, Timeline, Turnover, What};
use crate::actor::{Actor, acting_now};

fn words(recorder: &Recorder, write: u64) -> Vec<What> {
    recorder.events_since(write).into_iter().map(|event| event.what).collect()
}

#[test]
fn an_update_is_told_in_sentences_in_one_order_over_both_api_servers() {
    let mut script = Script::running(1);
    let before = script.recorder.writes();
    script.upgrade(1);
    let text = script.recorder.timeline_since(before).text();
    let told: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).collect();
    assert_eq!(told, EXPECTED.lines().collect::<Vec<_>>(), "{text}");
}

const EXPECTED: &str = "\
0:00:00  management      somebody  ClusterUpdate my-tkc-1 begins, from v1.16.7+vmware.1-guest.1 to v1.17.4+vmware.1-guest.1
0:00:00  management      somebody  ClusterUpdate my-tkc-1 is at stage controlPlane
0:00:01  default/my-tkc  somebody  Add-on coredns: DaemonSet/coredns-v1.17.4 is applied, for nodes of v1.17.4+vmware.1-guest.1 [ClusterUpdate my-tkc-1]
0:00:02  default/my-tkc  somebody  Add-on kube-proxy: DaemonSet/kube-proxy-v1.17.4 is applied, for nodes of v1.17.4+vmware.1-guest.1 [ClusterUpdate my-tkc-1]
0:00:03  default/my-tkc  somebody  Add-on pvcsi: ConfigMap/pvcsi is applied [ClusterUpdate my-tkc-1]
0:00:04  management      somebody  Job update-1 is created [ClusterUpdate my-tkc-1]
0:00:05  management      somebody  Machine cp-0-1 is created at v1.17.4+vmware.1 (control plane) [ClusterUpdate my-tkc-1]
0:00:07  default/my-tkc  somebody  etcd has a new member on cp-0-1
0:00:08  default/my-tkc  somebody  etcd on cp-0-1 has started
0:00:13  default/my-tkc  somebody  Node cp-0-1 registers, its kubelet is v1.17.4+vmware.1
0:00:15  default/my-tkc  somebody  Node cp-0-1 is ready
0:00:16  default/my-tkc  somebody  etcd on cp-0 is a member no more [the control plane goes to v1.17.4+vmware.1]
0:00:17  management      somebody  Machine cp-0 is to be deleted [the control plane goes to v1.17.4+vmware.1]
0:00:24  default/my-tkc  somebody  Node cp-0 is gone [Machine cp-0 is to be deleted]
0:00:25  management      somebody  Machine cp-0 is gone; it was at v1.16.7+vmware.1 (control plane)
0:00:26  management      somebody  Job update-1 is complete
0:00:27  management      somebody  MachineDeployment pool is switched to v1.17.4+vmware.1, template template-v1.17.4+vmware.1 [ClusterUpdate my-tkc-1]
0:00:28  management      somebody  Machine w-1 is created at v1.17.4+vmware.1 (worker) [ClusterUpdate my-tkc-1]
0:00:30  default/my-tkc  somebody  Node w-1 registers, its kubelet is v1.17.4+vmware.1
0:00:32  default/my-tkc  somebody  Node w-1 is ready
0:00:33  management      somebody  Machine w-0 is to be deleted [MachineDeployment pool is at another version]
0:00:36  default/my-tkc  somebody  Node w-0 is gone [Machine w-0 is to be deleted]
0:00:37  management      somebody  Machine w-0 is gone; it was at v1.16.7+vmware.1 (worker)
0:00:38  management      somebody  ClusterUpdate my-tkc-1 succeeded";

#[test]
fn a_timeline_begins_where_it_is_asked_to_and_counts_machines_from_there() {
    let mut script = Script::running(3);
    assert_eq!(script.recorder.timeline().machines.control_plane, Turnover { created: 3, deleted: 0 });
    let before = script.recorder.writes();
    assert_eq!(script.recorder.events_since(before), []);
    script.upgrade(3);
    let timeline = script.recorder.timeline_since(before);
    assert_eq!(timeline.machines.control_plane, Turnover { created: 3, deleted: 3 });
    assert_eq!(timeline.machines.workers, Turnover { created: 1, deleted: 1 });
    assert_eq!(timeline.writes, script.recorder.writes() - before);
    assert_eq!(timeline.from, timeline.events[0].at);
}

#[test]
fn a_fork_knows_what_was_and_goes_its_own_way() {
    let mut script = Script::running(1);
    let fork = script.recorder.fork();
    let (writes, events) = (fork.writes(), fork.events());
    assert_eq!(events, script.recorder.events());
    script.upgrade(1);
    assert_eq!((fork.writes(), fork.events()), (writes, events));
}

#[test]
fn a_status_that_says_nothing_new_is_not_an_event() {
    let mut script = Script::running(1);
    let before = script.recorder.writes();
    script.edit("daemonsets.apps", "kube-system/coredns-v1.16.7", |object| object["status"]["desired"] = 3.into());
    script.node("w-0", OLD, false, true);
    script.worker("w-0", OLD);
    script.pool(OLD);
    assert_eq!(words(&script.recorder, before), []);
    script.edit("daemonsets.apps", "kube-system/coredns-v1.16.7", |object| object["metadata"]["generation"] = 2.into());
    script.node("w-0", OLD, false, false);
    script.pool(NEW);
    assert_eq!(words(&script.recorder, before), [What::AddonApplied, What::NodeNotReady, What::PoolSwitched]);
}

#[test]
fn the_attempts_of_a_job_are_told() {
    let mut script = Script::running(1);
    let before = script.recorder.writes();
    script.job(0, false);
    script.job(1, false);
    script.job(1, true);
    assert_eq!(words(&script.recorder, before), [What::JobCreated, What::JobAttemptFailed, What::JobComplete]);
    assert!(script.recorder.events_since(before).iter().all(|event| event.cluster == CLUSTER));
}

#[test]
fn what_cannot_be_read_is_told_and_not_passed_over() {
    let mut script = Script::running(1);
    let before = script.recorder.writes();
    script.edit("machines.cluster.x-k8s.io", "default/w-0", |object| object["spec"] = "nonsense".into());
    assert_eq!(words(&script.recorder, before), [What::Unreadable]);
}

#[test]
fn a_timeline_travels_as_json() {
    let mut script = Script::running(1);
    script.upgrade(1);
    let timeline = script.recorder.timeline();
    let text = serde_json::to_string(&timeline).unwrap();
    assert_eq!(serde_json::from_str::<Timeline>(&text).unwrap(), timeline);
}

#[test]
fn who_did_it_is_told_and_why() {
    let mut script = Script::rolled_by_cluster_api(1, "v1.30.0");
    let before = script.recorder.writes();
    acting_now(Actor::KubeadmControlPlane, || {
        script.control_plane(1, "v1.31.0", Some("v1.30.0"));
        script.rolled_machine("cp-1", "v1.31.0");
    });
    script.join_control_plane("cp-1", "v1.31.0");
    acting_now(Actor::KubeadmControlPlane, || script.delete("machines.cluster.x-k8s.io", "default/cp-0"));
    acting_now(Actor::Machine, || {
        script.edit("nodes", "cp-0", |node| node["spec"]["unschedulable"] = true.into());
    });
    let told: Vec<(Actor, Option<String>)> = script
        .recorder
        .events_since(before)
        .into_iter()
        .filter(|event| matches!(event.what, What::MachineCreated | What::MachineDeleting | What::NodeCordoned))
        .map(|event| (event.actor, event.why))
        .collect();
    assert_eq!(
        told,
        [
            (Actor::KubeadmControlPlane, Some("KubeadmControlPlane my-tkc-control-plane goes on from v1.30.0".into())),
            (Actor::KubeadmControlPlane, Some("the control plane goes to v1.31.0".into())),
            (Actor::Machine, Some("Machine cp-0 is to be deleted".into())),
        ]
    );
}
