//! What a story is told as.

use super::script::{CLUSTER, NEW, OLD, Script};
use super::{Recorder, Timeline, Turnover, What};

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
0:00:00  management      ClusterUpdate my-tkc-1 begins, from v1.16.7+vmware.1-guest.1 to v1.17.4+vmware.1-guest.1
0:00:00  management      ClusterUpdate my-tkc-1 is at stage controlPlane
0:00:01  default/my-tkc  Add-on coredns: DaemonSet/coredns-v1.17.4 is applied, for nodes of v1.17.4+vmware.1-guest.1
0:00:02  default/my-tkc  Add-on kube-proxy: DaemonSet/kube-proxy-v1.17.4 is applied, for nodes of v1.17.4+vmware.1-guest.1
0:00:03  default/my-tkc  Add-on pvcsi: ConfigMap/pvcsi is applied
0:00:04  management      Job update-1 is created
0:00:05  management      Machine cp-0-1 is created at v1.17.4+vmware.1 (control plane)
0:00:07  default/my-tkc  etcd has a new member on cp-0-1
0:00:08  default/my-tkc  etcd on cp-0-1 has started
0:00:10  default/my-tkc  Node cp-0-1 registers, its kubelet is v1.17.4+vmware.1
0:00:12  default/my-tkc  Node cp-0-1 is ready
0:00:13  default/my-tkc  etcd on cp-0 is a member no more
0:00:14  management      Machine cp-0 is to be deleted
0:00:18  default/my-tkc  Node cp-0 is gone
0:00:19  management      Machine cp-0 is gone; it was at v1.16.7+vmware.1 (control plane)
0:00:20  management      Job update-1 is complete
0:00:21  management      MachineDeployment pool is switched to v1.17.4+vmware.1, template template-v1.17.4+vmware.1
0:00:22  management      Machine w-1 is created at v1.17.4+vmware.1 (worker)
0:00:24  default/my-tkc  Node w-1 registers, its kubelet is v1.17.4+vmware.1
0:00:26  default/my-tkc  Node w-1 is ready
0:00:27  management      Machine w-0 is to be deleted
0:00:30  default/my-tkc  Node w-0 is gone
0:00:31  management      Machine w-0 is gone; it was at v1.16.7+vmware.1 (worker)
0:00:32  management      ClusterUpdate my-tkc-1 succeeded";

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
