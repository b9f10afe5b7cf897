//! The management side: machines, pools, Jobs and their ends, in virtual time.

mod bootstrap;
mod control_plane;
mod domains;
mod drain;
mod extension;
mod health;
mod in_place;
mod pool;
mod refusal;
pub mod stage;
mod summary;
mod topology;
mod trace;

use std::collections::BTreeMap;
use std::io::Write;

use futures::StreamExt;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Node, Pod, Secret};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::runtime::watcher::{self, Event};
use serde_json::json;
use windlass_api::kind::bootstrap::{KubeadmConfig, KubeadmConfigTemplate};
use windlass_api::kind::cluster_api::{Cluster, Machine, MachineDeployment, MachineSet};
use windlass_api::kind::is_true;
use windlass_api::kind::wcp::{VmState, WCPCluster, WCPMachine, WCPMachineTemplate};
use windlass_sim::program::Exit;

use stage::{NEW, OLD, Stage, fresh, stage};

fn phase(machine: &Machine) -> &str {
    machine.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

fn is_available(machine: &Machine) -> bool {
    machine.status.as_ref().is_some_and(|status| is_true(&status.conditions, "Available"))
}

#[test]
fn a_machine_goes_from_nothing_to_a_node() {
    stage(|stage| async move {
        stage.cluster("c").await;
        stage.control_plane_machine("c", 0).await;
        let machine: Machine = stage.until("c-control-plane-0", is_available).await;

        let status = machine.status.unwrap();
        assert_eq!(status.phase.as_deref(), Some("Running"));
        assert_eq!(status.node_ref.unwrap().name, "c-control-plane-0");
        assert!(status.addresses[0].address.starts_with("10."), "{:?}", status.addresses);
        let node: Node = Api::all(stage.workload("c").client()).get("c-control-plane-0").await.unwrap();
        assert_eq!(node.spec.unwrap().provider_id, machine.spec.provider_id);
        assert!(machine.spec.provider_id.unwrap().starts_with("vsphere://"));

        let cluster: Cluster = stage.get("c").await;
        let status = cluster.status.unwrap();
        assert_eq!(status.phase.as_deref(), Some("Provisioned"));
        assert!(status.initialization.unwrap().control_plane_initialized);
        assert_eq!(cluster.spec.control_plane_endpoint.unwrap().port, 6443);
        let kubeconfig: Secret = stage.get("c-kubeconfig").await;
        assert_eq!(kubeconfig.data.unwrap()["value"].0, b"kubeconfig of default/c");
        let took = stage.elapsed_seconds();
        // Load balancer 6-32 s, create 14-61 s, boot 30-139 s, init 29-99 s, ready 5-36 s: three deviations around each median.
        assert!((84..=367).contains(&took), "{took} s");
    });
}

#[test]
fn a_control_plane_of_three_has_an_etcd_of_three() {
    stage(|stage| async move {
        stage.cluster("c").await;
        for ordinal in 0..3 {
            stage.control_plane_machine("c", ordinal).await;
            stage.until::<Machine>(&format!("c-control-plane-{ordinal}"), is_available).await;
        }
        let members = stage.workload("c").members().unwrap();
        assert_eq!(members.iter().filter(|member| member.healthy && !member.learner).count(), 3, "{members:?}");

        // What replaces a machine takes its member out first.
        let gone = members.iter().find(|member| member.name == "c-control-plane-0").unwrap();
        stage.workload("c").remove_member(gone.id).unwrap();
        stage.delete::<Machine>("c-control-plane-0").await;
        stage.pass(120).await;
        assert_eq!(stage.nodes("c").await, ["c-control-plane-1", "c-control-plane-2"]);
        assert_eq!(stage.list::<WCPMachine>().await.len(), 2);
    });
}

#[test]
fn certificates_that_nobody_brought_belong_to_the_first_configuration_and_go_with_it() {
    stage(|stage| async move {
        stage.cluster_without_certificates("c").await;
        stage.control_plane_machine("c", 0).await;
        stage.until::<Machine>("c-control-plane-0", is_available).await;
        for secret in ["ca", "etcd", "proxy", "sa"] {
            let secret: Secret = stage.get(&format!("c-{secret}")).await;
            let owner = &secret.metadata.owner_references.unwrap()[0];
            assert_eq!((owner.kind.as_str(), owner.controller), ("KubeadmConfig", Some(true)));
        }
        // What replaces the first machine without a thought leaves a cluster that no machine can join.
        stage.control_plane_machine("c", 1).await;
        stage.until::<Machine>("c-control-plane-1", is_available).await;
        let members = stage.workload("c").members().unwrap();
        let first = members.iter().find(|member| member.name == "c-control-plane-0").unwrap();
        stage.workload("c").remove_member(first.id).unwrap();
        stage.delete::<Machine>("c-control-plane-0").await;
        stage.pass(300).await;
        assert!(!stage.list::<Secret>().await.contains(&"c-ca".to_owned()));
        stage.control_plane_machine("c", 2).await;
        let refused: KubeadmConfig = stage
            .until("c-control-plane-2", |config: &KubeadmConfig| {
                config.status.as_ref().is_some_and(|status| !status.conditions.is_empty())
            })
            .await;
        let conditions = refused.status.unwrap().conditions;
        let said = conditions.iter().find(|condition| condition.type_ == "CertificatesAvailable").unwrap();
        assert_eq!((said.status.as_str(), said.message.as_str()), ("False", "there is no Secret c-ca"));
    });
}

#[test]
fn a_machine_without_its_image_says_so_and_is_made_when_the_image_comes() {
    stage(|stage| async move {
        stage.cluster("c").await;
        let image = stage.take_away_image(OLD).await;
        stage.control_plane_machine("c", 0).await;
        let refused: WCPMachine = stage
            .until("c-control-plane-0", |machine: &WCPMachine| {
                machine.status.as_ref().is_some_and(|status| !status.conditions.is_empty())
            })
            .await;
        let status = refused.status.unwrap();
        assert_eq!(status.conditions[0].message, format!("there is no VirtualMachineImage {}", stage::image(OLD)));
        assert_eq!((status.vm_state, refused.spec.provider_id), (None, None));

        stage.bring_back(&image).await;
        let made: WCPMachine = stage
            .until("c-control-plane-0", |machine: &WCPMachine| {
                machine.status.as_ref().is_some_and(|status| status.vm_state == Some(VmState::Ready))
            })
            .await;
        assert!(made.status.unwrap().initialization.unwrap().provisioned);
    });
}

/// The fewest and the most machines of the pool that were there at any time, as their watch tells it: those that are
/// available, and all.
async fn watch_pool(stage: &Stage, rolled: impl Future<Output = MachineDeployment>) -> (usize, usize) {
    let config = watcher::Config::default().labels("cluster.x-k8s.io/deployment-name");
    let mut events = watcher::watcher(Api::<Machine>::default_namespaced(stage.client()), config).boxed();
    let (mut machines, mut listed) = (BTreeMap::new(), false);
    let (mut fewest, mut most) = (usize::MAX, 0);
    let mut rolled = std::pin::pin!(rolled);
    loop {
        let event = tokio::select! {
            _ = &mut rolled => return (fewest, most),
            event = events.next() => event.unwrap().unwrap(),
        };
        match event {
            Event::Init => {}
            Event::InitDone => listed = true,
            Event::InitApply(machine) | Event::Apply(machine) => {
                machines.insert(machine.metadata.name.clone(), is_available(&machine));
            }
            Event::Delete(machine) => drop(machines.remove(&machine.metadata.name)),
        }
        if listed {
            fewest = fewest.min(machines.values().filter(|available| **available).count());
            most = most.max(machines.len());
        }
    }
}

fn is_rolled_out(deployment: &MachineDeployment) -> bool {
    let status = deployment.status.clone().unwrap_or_default();
    let counts = [status.replicas, status.ready_replicas, status.available_replicas, status.up_to_date_replicas];
    status.observed_generation == deployment.metadata.generation && counts == [deployment.spec.replicas.unwrap(); 4]
}

#[test]
fn a_pool_rolls_with_a_surge_of_one_and_never_has_fewer_than_it_should() {
    stage(|stage| async move {
        stage.cluster("c").await;
        stage.control_plane_machine("c", 0).await;
        stage.until::<Machine>("c-control-plane-0", is_available).await;
        stage.pool("c", 3, OLD).await;
        stage.until::<MachineDeployment>("c-workers", is_rolled_out).await;
        let sets = stage.list::<MachineSet>().await;
        let before: Vec<String> = stage.machines_of_pool().await;
        assert_eq!(before, [0, 1, 2].map(|ordinal| format!("{}-{ordinal}", sets[0])));

        stage.templates("c", NEW).await;
        let switched = stage.switch_pool("c", NEW).await;
        assert!(!is_rolled_out(&switched));
        let rolled = stage.until::<MachineDeployment>("c-workers", is_rolled_out);
        let (fewest, most) = watch_pool(&stage, rolled).await;
        assert_eq!((fewest, most), (3, 4));

        stage.pass(60).await;
        let left = stage.list::<MachineSet>().await;
        assert_eq!(left.len(), 1, "an old set without machines goes: {left:?}");
        assert_ne!(left, sets);
        for name in stage.machines_of_pool().await {
            let infrastructure: WCPMachine = stage.get(&name).await;
            assert_eq!(infrastructure.spec.image_name, stage::image(NEW));
            let annotations = infrastructure.metadata.annotations.unwrap();
            assert_eq!(annotations["cluster.x-k8s.io/cloned-from-name"], format!("c-workers-{}", fresh(NEW)));
            let machine: Machine = stage.get(&name).await;
            assert_eq!((phase(&machine), machine.spec.version.as_deref()), ("Running", Some("v1.16.8+vmware.1")));
        }
        let nodes: Vec<String> = stage.nodes("c").await;
        assert_eq!(nodes.len(), 4, "the nodes of the old machines are gone: {nodes:?}");
        let requests = stage.requests();
        stage.pass(3600).await;
        assert_eq!(stage.requests(), requests, "an hour later nothing has been asked or changed");
    });
}

#[test]
fn nothing_moves_in_a_paused_cluster() {
    stage(|stage| async move {
        stage.cluster("c").await;
        stage.pause("c", true).await;
        stage.control_plane_machine("c", 0).await;
        stage.pass(600).await;
        let machine: Machine = stage.get("c-control-plane-0").await;
        assert_eq!((phase(&machine), machine.metadata.finalizers.as_ref()), ("", None));
        stage.pause("c", false).await;
        stage.until::<Machine>("c-control-plane-0", is_available).await;
    });
}

#[test]
fn machines_go_on_in_a_fork() {
    stage(|stage| async move {
        stage.cluster("c").await;
        stage.control_plane_machine("c", 0).await;
        stage
            .until("c-control-plane-0", |machine: &WCPMachine| {
                machine.status.as_ref().is_some_and(|status| status.vm_state == Some(VmState::PoweredOn))
            })
            .await;
        let fork = stage.fork();
        let there: Machine = fork.until("c-control-plane-0", is_available).await;
        let here: Machine = stage.until("c-control-plane-0", is_available).await;
        assert_eq!(there.spec.provider_id, here.spec.provider_id);
    });
}

#[test]
fn a_cluster_is_deleted_and_leaves_nothing_behind() {
    stage(|stage| async move {
        stage.cluster("c").await;
        stage.control_plane_machine("c", 0).await;
        stage.until::<Machine>("c-control-plane-0", is_available).await;
        stage.pool("c", 2, OLD).await;
        stage.until::<MachineDeployment>("c-workers", is_rolled_out).await;

        stage.delete::<Cluster>("c").await;
        stage.pass(300).await;
        let left = [
            stage.list::<Cluster>().await,
            stage.list::<WCPCluster>().await,
            stage.list::<MachineDeployment>().await,
            stage.list::<MachineSet>().await,
            stage.list::<Machine>().await,
            stage.list::<WCPMachine>().await,
            stage.list::<KubeadmConfig>().await,
            stage.list::<Secret>().await,
            stage.list::<WCPMachineTemplate>().await,
            stage.list::<KubeadmConfigTemplate>().await,
        ];
        assert_eq!(left.concat(), Vec::<String>::new());
        assert!(stage.world.workload(&"default/c".parse().unwrap()).is_none());
        assert_eq!(stage.closed(), ["default/c"]);
    });
}

#[test]
fn a_deleted_machine_takes_its_node_along() {
    stage(|stage| async move {
        stage.cluster("c").await;
        stage.control_plane_machine("c", 0).await;
        stage.until::<Machine>("c-control-plane-0", is_available).await;
        stage.pool("c", 1, OLD).await;
        stage.until::<MachineDeployment>("c-workers", is_rolled_out).await;
        let [name] = stage.machines_of_pool().await.try_into().unwrap();

        stage.delete::<Machine>(&name).await;
        let going: Machine = stage.until(&name, |machine: &Machine| phase(machine) == "Deleting").await;
        assert!(!is_available(&going), "nobody relies on it from the start");
        // The set makes another, of another name.
        let next = health::another(&stage, &[&name]).await;
        let next: Machine = stage.until(&next, is_available).await;
        assert_ne!(next.spec.provider_id, going.spec.provider_id);
        assert_eq!(stage.nodes("c").await.len(), 2);
    });
}

#[test]
fn a_machine_costs_few_requests() {
    stage(|stage| async move {
        stage.cluster("c").await;
        stage.control_plane_machine("c", 0).await;
        stage.until::<Machine>("c-control-plane-0", is_available).await;
        stage.pool("c", 10, OLD).await;
        let before = stage.requests();
        stage.until::<MachineDeployment>("c-workers", is_rolled_out).await;
        let created = stage.requests() - before;
        stage.templates("c", NEW).await;
        stage.switch_pool("c", NEW).await;
        let before = stage.requests();
        stage.until::<MachineDeployment>("c-workers", is_rolled_out).await;
        stage.pass(60).await;
        let rolled = stage.requests() - before;
        let mut err = std::io::stderr();
        writeln!(err, "requests per machine: {} to create, {} to replace", created / 10, rolled / 10).unwrap();
        writeln!(err, "{}", stage.request_table()).unwrap();
        assert!(created / 10 <= 30 && rolled / 10 <= 40, "{created} and {rolled} for 10 machines");
    });
}

fn ended(job: &Job) -> Option<&str> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.status == "True").map(|condition| condition.type_.as_str())
}

async fn run_job(stage: &Stage) -> Job {
    stage.job("update-1280807").await;
    stage.until_in("vmware-system-tkg", "update-1280807", |job: &Job| ended(job).is_some()).await
}

#[test]
fn a_job_that_fails_twice_completes_on_the_third_attempt() {
    stage(|stage| async move {
        let failure = Exit { code: 1, message: "no quorum".into() };
        stage.programs_end_with([failure.clone(), failure, Exit { code: 0, message: "done".into() }]);
        let job = run_job(&stage).await;
        assert_eq!(ended(&job), Some("Complete"));
        let status = job.status.unwrap();
        assert_eq!((status.active, status.failed, status.succeeded), (None, Some(2), Some(1)));

        let api = Api::<Pod>::namespaced(stage.client(), "vmware-system-tkg");
        let mut pods = api.list(&ListParams::default().labels("job-name=update-1280807")).await.unwrap().items;
        pods.sort_by_key(|pod| pod.status.as_ref().unwrap().start_time.as_ref().unwrap().0);
        let said: Vec<(String, i32, String)> = pods
            .iter()
            .map(|pod| {
                let status = pod.status.clone().unwrap();
                let end = status.container_statuses.unwrap()[0].state.clone().unwrap().terminated.unwrap();
                (status.phase.unwrap(), end.exit_code, end.message.unwrap())
            })
            .collect();
        let expected = [("Failed", 1, "no quorum"), ("Failed", 1, "no quorum"), ("Succeeded", 0, "done")];
        assert_eq!(said, expected.map(|(phase, code, message)| (phase.to_owned(), code, message.to_owned())));
        assert_eq!(
            stage.commands()[0],
            ["windlass", "control-plane", "upgrade", "--kubernetes-version=v1.16.8+vmware.1", "--upgrade-id=1280807"]
        );
        // 10 s and 20 s after the failures, and each pod takes 2-8 s to start.
        let took = stage.elapsed_seconds();
        assert!((36..=57).contains(&took), "{took} s");
    });
}

#[test]
fn a_job_fails_for_good_after_four_attempts() {
    stage(|stage| async move {
        stage.programs_end_with([Exit { code: 1, message: String::new() }]);
        let job = run_job(&stage).await;
        let status = job.status.clone().unwrap();
        assert_eq!((ended(&job), status.failed, status.active), (Some("Failed"), Some(4), None));
        stage.pass(3600).await;
        assert_eq!(stage.commands().len(), 4);
    });
}

#[test]
fn the_program_of_a_deleted_job_is_dropped() {
    stage(|stage| async move {
        stage.programs_never_end();
        stage.job("update-1").await;
        let running = |job: &Job| job.status.as_ref().is_some_and(|status| status.active == Some(1));
        stage.until_in::<Job>("vmware-system-tkg", "update-1", running).await;
        stage.pass(60).await;
        assert_eq!(stage.programs_running(), 1);
        let jobs: Api<Job> = Api::namespaced(stage.client(), "vmware-system-tkg");
        jobs.delete("update-1", &DeleteParams::background()).await.unwrap();
        stage.pass(60).await;
        assert_eq!(stage.programs_running(), 0);
        let pods = Api::<Pod>::namespaced(stage.client(), "vmware-system-tkg");
        assert_eq!(pods.list(&ListParams::default()).await.unwrap().items, []);
    });
}

#[test]
fn a_pod_whose_process_was_lost_has_failed_and_the_job_goes_on() {
    stage(|stage| async move {
        stage.programs_never_end();
        stage.job("update-1").await;
        stage.pass(60).await;
        let fork = stage.fork();
        fork.programs_end_with([Exit { code: 0, message: String::new() }]);
        let job: Job = fork.until_in("vmware-system-tkg", "update-1", |job: &Job| ended(job).is_some()).await;
        let status = job.status.clone().unwrap();
        assert_eq!((ended(&job), status.failed, status.succeeded), (Some("Complete"), Some(1), Some(1)));
    });
}

#[test]
fn the_same_seed_gives_the_same_world() {
    let run = || {
        stage(|stage| async move {
            stage.cluster("c").await;
            stage.control_plane_machine("c", 0).await;
            stage.until::<Machine>("c-control-plane-0", is_available).await;
            stage.pool("c", 2, OLD).await;
            stage.until::<MachineDeployment>("c-workers", is_rolled_out).await;
            let machines: Api<Machine> = Api::default_namespaced(stage.client());
            let patch = Patch::Merge(json!({"metadata": {"annotations": {"note": "the end"}}}));
            machines.patch("c-control-plane-0", &PatchParams::default(), &patch).await.unwrap();
            serde_json::to_string(&machines.list(&ListParams::default()).await.unwrap().items).unwrap()
        })
    };
    assert_eq!(run(), run());
}
