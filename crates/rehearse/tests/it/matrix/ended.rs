//! What a World must be when an update has ended.

use std::time::Duration;

use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::Value;
use windlass_api::kind::tanzu::Machines;
use windlass_api::kind::virtual_machine::VirtualMachineImage;
use windlass_api::label;
use windlass_apiserver::store::Range;
use windlass_rehearse::assembly::{Assembly, Settings};
use windlass_rehearse::rehearsal::Ended;
use windlass_rehearse::settle;
use windlass_runtime::virtual_time::run_virtual;
use windlass_sim::world::{self, World};

use crate::start::{self, SEED, cluster_name};

const EVERYTHING: Range<'static> = Range { namespace: None, after: None, limit: 0 };

/// The same World, in which the image of the release in use has another name.
pub fn renamed(start: &Ended, name: &str) -> World {
    let name = name.to_owned();
    start::changed(start, |world| async move {
        let images: Api<VirtualMachineImage> = Api::all(world.client());
        let old = images.get("photon-k8sd-v1.15.5-vmware.1-guest.1").await.unwrap();
        let mut new = VirtualMachineImage::new(&name, old.spec.clone());
        new.metadata.annotations = old.metadata.annotations;
        images.create(&PostParams::default(), &new).await.unwrap();
        images.delete("photon-k8sd-v1.15.5-vmware.1-guest.1", &DeleteParams::default()).await.unwrap();
    })
}

fn all(world: &World, resource: &str) -> Vec<Value> {
    let entries = world.management().store().list(resource, EVERYTHING, |_| true).entries;
    entries.iter().map(|entry| entry.to_value("", "")).collect()
}

/// The machines that are not as the cluster says, and those that are missing or too many.
pub fn differs(world: &World) -> Vec<String> {
    let spec = settle::cluster(world, &cluster_name()).unwrap().spec;
    let distribution = spec.distribution.full_version.unwrap();
    let images = all(world, "virtualmachineimages.vmoperator.vmware.com");
    let of_release = |image: &&Value| image["spec"]["productInfo"]["fullVersion"] == *distribution;
    let image = images.iter().find(of_release).unwrap()["metadata"]["name"].clone();
    let machines = all(world, "wcpmachines.infrastructure.cluster.vmware.com");
    let is_control_plane = |machine: &Value| !machine["metadata"]["labels"][label::CONTROL_PLANE.name].is_null();
    let mut differences = Vec::new();
    for (role, pool) in [("control plane", &spec.topology.control_plane), ("workers", &spec.topology.workers)] {
        let Machines { count, class, storage_class, .. } = pool;
        let of_role = machines.iter().filter(|machine| is_control_plane(machine) == (role == "control plane"));
        let of_role: Vec<&Value> = of_role.collect();
        if of_role.len() != *count as usize {
            differences.push(format!("{} machines of the {role} instead of {count}", of_role.len()));
        }
        for machine in of_role {
            let asked = [("className", class.as_str()), ("storageClass", storage_class.as_str())];
            let asked = asked.into_iter().chain([("imageName", image.as_str().unwrap())]);
            let other = asked.filter(|(field, value)| machine["spec"][field] != **value);
            differences.extend(other.map(|(field, value)| {
                format!("{}: {field} {} instead of {value}", machine["metadata"]["name"], machine["spec"][field])
            }));
        }
    }
    differences
}

/// What is still there of a cluster that should be gone.
pub fn left(world: &World) -> Vec<String> {
    let resources = [
        "tanzukubernetesclusters.run.tanzu.vmware.com",
        "clusters.cluster.x-k8s.io",
        "machines.cluster.x-k8s.io",
        "machinedeployments.cluster.x-k8s.io",
        "machinesets.cluster.x-k8s.io",
        "wcpmachines.infrastructure.cluster.vmware.com",
        "kubeadmconfigs.bootstrap.cluster.x-k8s.io",
        "secrets",
        "jobs.batch",
    ];
    // Releases have Secrets, too, which are in a namespace of their own.
    let of_nobody = |object: &Value| object["metadata"]["namespace"] == "tkg-system";
    let left = resources.iter().flat_map(|resource| all(world, resource)).filter(|object| !of_nobody(object));
    left.map(|object| object["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Looks again from nothing, as restarted controllers do, and lets an hour go by.
pub fn planning_again_changes_nothing(ended: &Ended, what: &str) {
    let now = ended.world.settings().clock.now();
    let writes = run_virtual(SEED, now, |time| async {
        let settings = world::Settings { clock: time.clock, ..ended.world.settings().clone() };
        let world = ended.world.fork(settings);
        let assembly = Assembly::new(world.clone(), Settings::rehearsal(&world));
        assembly.run(tokio::time::sleep(Duration::from_secs(60 * 60))).await;
        assembly.crashes().writes()
    });
    assert_eq!(writes.unwrap(), [], "{what}: planning again changes something");
}
