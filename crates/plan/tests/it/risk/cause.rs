//! The four causes that a person must be told in full before anything is touched: every word of them.

use windlass_plan::risk::Known::Read;
use windlass_plan::risk::Risk;
use windlass_plan::risk::evidence::{Evidence, Image, ImageState, Package};

use super::found;
use super::sample::{budget, of, quota};

fn check(change: fn(&mut Evidence), told: &str) {
    let risks = found(change);
    let [Risk { severity, id, object, message, because, way_out }] = &risks[..] else { panic!("{risks:#?}") };
    let because = because.join("\n");
    assert_eq!(format!("{severity} {id} {object}\n{message}\n{because}\n{way_out}"), told);
}

#[test]
fn a_budget_that_never_lets_a_pod_go() {
    check(
        |evidence| evidence.budgets = Read(vec![budget("web/web", 2)]),
        "blocks PDB-NEVER PodDisruptionBudget web/web\n\
         Pod web/web-0 can never be evicted from w-0: the budget has minAvailable 2 and there are 2 pods \
         (nor can 1 more of its pods)\n\
         2 of 2 pods must stay available, so 0 may ever go\n\
         the drain has no time limit: it waits for ever\n\
         Pod web/web-1 on w-1\n\
         kubectl -n web patch pdb web --type=merge -p '{\"spec\":{\"minAvailable\":1}}', \
         or one replica more of ReplicaSet/web",
    );
}

#[test]
fn a_pool_without_spare_quota() {
    check(
        |evidence| {
            of(&mut evidence.surges).remove(0);
            evidence.quotas = Read(vec![quota("count/machines.cluster.x-k8s.io", 5, 5)]);
        },
        "blocks QUOTA ResourceQuota default/limits\n\
         the pool workers has no room: count/machines.cluster.x-k8s.io is used 5 of 5, and 1 more is needed\n\
         the pool workers has 1 machine more than now, at the worst (maxSurge 1)\n\
         kubectl -n default patch quota limits --type=merge -p \
         '{\"spec\":{\"hard\":{\"count/machines.cluster.x-k8s.io\":\"6\"}}}'",
    );
}

#[test]
fn a_release_whose_package_has_no_image() {
    check(
        |evidence| {
            let state = ImageState::Missing("the disk of VirtualMachineImage photon".to_owned());
            let images = vec![Image { name: "vmware/calico:v3.13".to_owned(), state }];
            let (name, version) = ("calico".to_owned(), "v3.13".to_owned());
            evidence.packages = Read(vec![Package { name, version, images, kinds: Vec::new() }]);
        },
        "blocks IMAGE-MISSING Package calico\n\
         its image vmware/calico:v3.13 is missing: calico v3.13 could not start, and machines wait for packages\n\
         the disk of VirtualMachineImage photon does not have it\n\
         put vmware/calico:v3.13 there, or name another image in the package",
    );
}

#[test]
fn a_control_plane_with_a_dead_member_of_etcd() {
    check(
        |evidence| of(&mut evidence.members)[2].healthy = false,
        "blocks ETCD-UNHEALTHY Member cp-2\n\
         it does not answer: the roll of the control plane would lose the quorum of etcd\n\
         2 of 3 voters answer, and 2 have to\n\
         the first new machine makes it 4 voters, of which 3 have to answer: 2 do until it has started\n\
         kubectl -n kube-system logs etcd-cp-2; if it stays dead, etcdctl member remove 3",
    );
}
