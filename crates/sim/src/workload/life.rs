//! The life of a workload cluster: one task, which wakes when something changes in the store or is due, and does what the
//! kubelets, kubeadm, the scheduler and the controllers of that cluster would do.
//!
//! Everything but kubeadm and etcd works through the API: while that does not answer, they stand still.

use futures::StreamExt;
use windlass_apiserver::store::Subscription;

use super::view::{Controller, Due, View};
use super::{
    Workload, cloud_provider, daemon_set, deployment, disruption, job, kubeadm, kubelet, lifecycle, replica_set,
    scheduler, stateful_set, volumes,
};

/// Lives it. Does not end.
pub(super) async fn run(workload: Workload) {
    let store = workload.server().store();
    let mut changes = store.subscribe_all();
    let mut view = View::read(&workload);
    loop {
        // What was written here comes back as changes, like what others write.
        let mut seen = store.revision();
        loop {
            follow(&workload, &mut view, &mut changes);
            step(&workload, &mut view);
            for pod in std::mem::take(&mut view.ended) {
                workload.remove_pod(&pod).await;
            }
            if store.revision() == seen {
                break;
            }
            seen = store.revision();
        }
        let now = workload.now();
        let next = view.next_at(now, workload.answers()).map(|at| at.duration_since(now).unsigned_abs());
        let change = async {
            match next {
                Some(after) => tokio::time::timeout(after, changes.next()).await.ok().flatten(),
                None => changes.next().await,
            }
        };
        match change.await {
            Some(Ok((resource, change))) => view.apply(&workload, &resource, &change),
            Some(Err(_)) => (changes, view) = (store.subscribe_all(), View::read(&workload)),
            None => {}
        }
    }
}

/// Takes note of everything that has changed.
fn follow(workload: &Workload, view: &mut View, changes: &mut Subscription) {
    loop {
        match changes.try_next() {
            Ok(Some((resource, change))) => view.apply(workload, &resource, &change),
            Ok(None) => return,
            // So much has happened that it is not all known any more.
            Err(_) => {
                *changes = workload.server().store().subscribe_all();
                *view = View::read(workload);
            }
        }
    }
}

/// Does what there is to do now.
fn step(workload: &Workload, view: &mut View) {
    for machine in view.joins_by(workload.now()) {
        kubeadm::go_on(workload, &machine);
    }
    if !workload.answers() {
        return;
    }
    for due in view.take_due(workload.now()) {
        happen(workload, view, due);
    }
    for node in std::mem::take(&mut view.changed_nodes) {
        lifecycle::sync(workload, view, &node);
    }
    for node in std::mem::take(&mut view.driven) {
        lifecycle::drive_away(workload, view, &node);
    }
    for controller in std::mem::take(&mut view.dirty) {
        match controller {
            Controller::DaemonSet(key) => daemon_set::sync(workload, view, &key),
            Controller::Deployment(key) => deployment::sync(workload, view, &key),
            Controller::ReplicaSet(key) => replica_set::sync(workload, view, &key),
            Controller::StatefulSet(key) => stateful_set::sync(workload, view, &key),
            Controller::Job(key) => job::sync(workload, view, &key),
        }
    }
    if std::mem::take(&mut view.schedule) {
        scheduler::schedule(workload, view);
    }
    disruption::sync(workload, view);
    volumes::sync(workload, view);
}

fn happen(workload: &Workload, view: &mut View, due: Due) {
    match due {
        Due::Ready(node) => kubelet::node_ready(workload, view, &node),
        Due::Lost(node) => lifecycle::node_lost(workload, view, &node),
        Due::Gone(node) => cloud_provider::look(workload, view, &node),
        Due::Evict(node) => drop(view.driven.insert(node)),
        Due::Start(pod) => kubelet::pod_started(workload, view, &pod),
        Due::StopPulling(pod) => kubelet::pull_given_up(workload, view, &pod),
        Due::Exit(pod) => kubelet::containers_ended(workload, view, &pod),
        Due::Restart(pod) => kubelet::containers_restarted(workload, view, &pod),
        Due::End(pod) => kubelet::pod_ended(view, &pod),
        Due::Look(controller) => drop(view.dirty.insert(controller)),
    }
}
