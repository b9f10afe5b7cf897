//! What the parts of Windlass ask of a management API, and the rights that they are given for it: none is missing, none is unused.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use windlass_api::condition::ConditionType;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::cluster_update::ClusterUpdate;
use windlass_api::kind::release::{ClusterBootstrap, OSImage, TanzuKubernetesRelease};
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::kind::topology::ClusterClass;
use windlass_api::{annotation, label};
use windlass_controller::rights::{self, Component, Right};
use windlass_plan::gate::Blocked;
use windlass_plan::resolve::hold::HoldBy;
use windlass_rehearse::assembly::{Assembly, Settings};
use windlass_rehearse::traffic::{Need, Place};
use windlass_runtime::virtual_time::run_virtual;
use windlass_sim::actor::Caller;
use windlass_sim::world::{self, World};

use crate::certificates::{self, Owner};
use crate::labels;
use crate::start::{self, CLASS, SEED, later};

/// What each component needed in a run.
#[derive(Default)]
struct Needed {
    controllers: BTreeSet<Need>,
    upgrader: BTreeSet<Need>,
    answers: BTreeSet<Need>,
}

impl Needed {
    fn of(&self, component: Component) -> &BTreeSet<Need> {
        match component {
            Component::Controllers => &self.controllers,
            Component::Upgrader => &self.upgrader,
            Component::Answers => &self.answers,
        }
    }
}

/// Runs a script on a World with all of Windlass.
fn recorded<F: Future<Output = ()>>(
    needed: &mut Needed,
    start: &World,
    hold_by: HoldBy,
    script: impl FnOnce(World) -> F,
) {
    let assembly = run_virtual(SEED, later(), |time| async move {
        let world = start.fork(world::Settings { clock: time.clock, ..start.settings().clone() });
        let settings = Settings { classes: Some(hold_by), labels: true, ..Settings::rehearsal(&world) };
        let assembly = Assembly::new(world.clone(), settings);
        Box::pin(assembly.run(script(world))).await;
        assembly
    })
    .unwrap();
    // What answers is counted with the controllers, too: it is the same process in a World.
    let (all, answers) = (assembly.traffic(), assembly.answers());
    needed.controllers.extend(all.needs(Caller::Controllers, Place::Management, Some(answers)));
    needed.upgrader.extend(all.needs(Caller::Upgrader, Place::Management, None));
    needed.answers.extend(answers.needs(Caller::Controllers, Place::Management, None));
}

async fn merge<K>(world: &World, name: &str, patch: Value)
where
    K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
    K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let api: Api<K> = Api::default_namespaced(world.client());
    api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
}

fn tkcs(world: &World) -> Api<TanzuKubernetesCluster> {
    Api::default_namespaced(world.client())
}

async fn hours(hours: u64) {
    tokio::time::sleep(Duration::from_secs(hours * 3600)).await;
}

/// A cluster whose machines Windlass replaces: made, upgraded, given up in the midst of it, upgraded again, repaired, deleted.
async fn machines(world: World) {
    tkcs(&world).create(&PostParams::default(), &start::manifest(1, 1)).await.unwrap();
    hours(2).await;
    merge::<TanzuKubernetesCluster>(&world, "my-tkc", to("v1.16.7")).await;
    tokio::time::sleep(Duration::from_secs(90)).await;
    let abort = json!({"metadata": {"annotations": {"windlass.dev/abort": "somebody"}}});
    merge::<ClusterUpdate>(&world, "my-tkc-1", abort).await;
    hours(2).await;
    merge::<TanzuKubernetesCluster>(&world, "my-tkc", to("v1.15.5")).await;
    hours(1).await;
    merge::<TanzuKubernetesCluster>(&world, "my-tkc", to("v1.16.7")).await;
    hours(3).await;
    let secrets: Api<k8s_openapi::api::core::v1::Secret> = Api::default_namespaced(world.client());
    secrets.delete("my-tkc-etcd", &DeleteParams::default()).await.unwrap();
    hours(1).await;
    tkcs(&world).delete("my-tkc", &DeleteParams::default()).await.unwrap();
    hours(2).await;
    assert!(tkcs(&world).get_opt("my-tkc").await.unwrap().is_none(), "it is gone");
}

fn to(version: &str) -> Value {
    json!({"spec": {"distribution": {"version": version, "fullVersion": null}}})
}

/// What namespaces want of updates in them.
async fn want_approval(world: &World, policy: &str) {
    let wanted = json!({"metadata": {"labels": {label::APPROVAL.name: policy}}});
    let namespaces: Api<Namespace> = Api::all(world.client());
    namespaces.patch("default", &PatchParams::default(), &Patch::Merge(wanted)).await.unwrap();
}

/// A cluster of a class: made, upgraded when somebody has approved it, given up, upgraded again, deleted.
async fn of_a_class(world: World) {
    let api: Api<Cluster> = Api::default_namespaced(world.client());
    api.create(&PostParams::default(), &start::of_class()).await.unwrap();
    hours(3).await;
    let release = json!({"metadata": {"labels": {"run.tanzu.vmware.com/tkr": "v1.25.7---vmware.2-tkg.1"}}});
    want_approval(&world, "required").await;
    merge::<Cluster>(&world, "wl", release.clone()).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let bootstrap = Api::<ClusterBootstrap>::default_namespaced(world.client()).get("wl").await.unwrap();
    let conditions = bootstrap.status.unwrap_or_default().conditions;
    let waits = ConditionType::PackagesReady.among(&conditions).unwrap();
    let digest = Blocked::asked_to_agree_to(&waits.message).unwrap();
    merge::<Cluster>(&world, "wl", json!({"metadata": {"annotations": {"windlass.dev/approved": digest}}})).await;
    want_approval(&world, "none").await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    let abort = json!({"metadata": {"annotations": {"windlass.dev/abort": "v1.25.7---vmware.2-tkg.1"}}});
    merge::<Cluster>(&world, "wl", abort).await;
    hours(1).await;
    merge::<Cluster>(&world, "wl", release).await;
    hours(3).await;
    api.delete("wl", &DeleteParams::default()).await.unwrap();
    hours(2).await;
    assert!(api.get_opt("wl").await.unwrap().is_none(), "it is gone");
}

/// A cluster whose class is copied to its namespace; the source goes, and then the cluster.
async fn of_a_copy(world: World) {
    let client = world.client();
    let namespace = json!({"metadata": {"name": "team-a", "labels": {"windlass.dev/cluster-classes": ""}}});
    let namespace: Namespace = serde_json::from_value(namespace).unwrap();
    Api::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
    hours(1).await;
    let clusters: Api<Cluster> = Api::namespaced(client.clone(), "team-a");
    clusters.create(&PostParams::default(), &start::of_copied_class()).await.unwrap();
    hours(2).await;
    let classes = |namespace: &str| Api::<ClusterClass>::namespaced(client.clone(), namespace);
    classes("tkg-system").delete(CLASS, &DeleteParams::default()).await.unwrap();
    hours(1).await;
    clusters.delete("wl", &DeleteParams::default()).await.unwrap();
    hours(2).await;
    assert!(classes("team-a").get_opt(CLASS).await.unwrap().is_none(), "its copy is gone");
}

/// A release that was published a moment ago: nobody has judged it, and it has no labels to be found by.
async fn published(world: World) {
    let client = world.client();
    let releases: Api<TanzuKubernetesRelease> = Api::all(client.clone());
    let images: Api<OSImage> = Api::all(client);
    let like = |version: &str| version.replace("v1.26.5", "v1.26.6");
    let mut release = releases.get("v1.26.5---vmware.2-tkg.1").await.unwrap();
    release.metadata = named(&like(&release.name_any()));
    (release.spec.version, release.status) = (like(&release.spec.version), None);
    release.spec.kubernetes.version = like(&release.spec.kubernetes.version);
    let mut image = images.get("v1.26.5---vmware.2-tkg.1-ubuntu").await.unwrap();
    image.metadata = named(&like(&image.name_any()));
    image.spec.kubernetes_version = like(&image.spec.kubernetes_version);
    images.create(&PostParams::default(), &image).await.unwrap();
    releases.create(&PostParams::default(), &release).await.unwrap();
    hours(1).await;
    let judged = releases.get(&release.name_any()).await.unwrap();
    assert!(judged.status.is_some() && judged.metadata.labels.is_some(), "{judged:?}");
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}

/// An upgrade that somebody has to approve, and approves.
async fn approved(world: World) {
    want_approval(&world, "required").await;
    merge::<TanzuKubernetesCluster>(&world, "my-tkc", to("v1.16.7")).await;
    hours(1).await;
    let approval = json!({"metadata": {"annotations": {annotation::APPROVED.name: "sha256:something-else"}}});
    merge::<TanzuKubernetesCluster>(&world, "my-tkc", approval).await;
}

/// An upgrade, of whatever is there.
async fn upgraded(world: World) {
    merge::<TanzuKubernetesCluster>(&world, "my-tkc", to("v1.16.7")).await;
    hours(3).await;
}

/// A cluster whose release is a label, led to another, which somebody has to approve.
async fn by_label(world: World) {
    want_approval(&world, "required").await;
    let release = json!({"metadata": {"labels": {"release.giantswarm.io/version": "36.1.0"}}});
    merge::<Cluster>(&world, "shop", release).await;
    hours(1).await;
    let cluster = Api::<Cluster>::default_namespaced(world.client()).get("shop").await.unwrap();
    let conditions = cluster.status.unwrap_or_default().conditions;
    let waits = ConditionType::ReleaseApplied.among(&conditions).unwrap();
    let digest = Blocked::asked_to_agree_to(&waits.message).unwrap();
    merge::<Cluster>(&world, "shop", json!({"metadata": {"annotations": {"windlass.dev/approved": digest}}})).await;
    hours(3).await;
}

/// An upgrade that is given up after a while.
async fn given_up(world: World, after: Duration) {
    merge::<TanzuKubernetesCluster>(&world, "my-tkc", to("v1.16.7")).await;
    tokio::time::sleep(after).await;
    let abort = json!({"metadata": {"annotations": {"windlass.dev/abort": "somebody"}}});
    merge::<ClusterUpdate>(&world, "my-tkc-1", abort).await;
    hours(3).await;
}

fn suite() -> Needed {
    let mut needed = Needed::default();
    let empty = start::empty();
    recorded(&mut needed, &empty, HoldBy::Pause, published);
    recorded(&mut needed, &start::one_and_one().world, HoldBy::Pause, approved);
    recorded(&mut needed, &empty, HoldBy::Pause, of_a_copy);
    recorded(&mut needed, &certificates::owned_by(Owner::First), HoldBy::Pause, upgraded);
    for seconds in [60, 150, 240, 330] {
        let after = Duration::from_secs(seconds);
        recorded(&mut needed, &start::one_and_one().world, HoldBy::Pause, |world| given_up(world, after));
    }
    recorded(&mut needed, &empty, HoldBy::Pause, machines);
    recorded(&mut needed, &empty, HoldBy::Pause, of_a_class);
    recorded(&mut needed, &empty, HoldBy::Hooks, of_a_class);
    recorded(&mut needed, &labels::start().world, HoldBy::Pause, by_label);
    needed
}

/// Whether a right is for this.
fn covers(right: &Right, need: &Need) -> bool {
    right.group == need.group
        && right.resources.contains(&need.resource.as_str())
        && right.verbs.contains(&need.verb)
        && right.namespace.is_none_or(|namespace| namespace == need.namespace)
}

fn missing(component: Component, needed: &BTreeSet<Need>) -> Vec<String> {
    let rights = rights::of(component);
    let missing = needed.iter().filter(|need| !rights.iter().any(|right| covers(right, need)));
    let words = |need: &Need| format!("{} {}/{} in {:?}", need.verb, need.group, need.resource, need.namespace);
    missing.map(words).collect()
}

fn unused(component: Component, needed: &BTreeSet<Need>) -> Vec<String> {
    let mut unused = Vec::new();
    for right in rights::of(component).iter().filter(|right| right.why.is_none()) {
        for (resource, verb) in right.resources.iter().flat_map(|it| right.verbs.iter().map(move |verb| (it, verb))) {
            let is_used = |need: &&Need| need.resource == *resource && need.verb == *verb && covers(right, need);
            let uses: BTreeSet<&str> = needed.iter().filter(is_used).map(|need| need.namespace.as_str()).collect();
            let name = format!("{verb} {}/{resource} in {:?}", right.group, right.namespace);
            if uses.is_empty() {
                unused.push(name);
            } else if right.namespace.is_none()
                && uses.len() == 1
                && uses.iter().all(|namespace| rights::NAMESPACES.contains(namespace))
            {
                unused.push(format!("{name} is used in {uses:?} only"));
            }
        }
    }
    unused
}

#[test]
fn no_right_is_missing_and_none_is_unused() {
    let needed = suite();
    if std::env::var_os("WINDLASS_SHOW").is_some() {
        for component in Component::ALL {
            eprintln!("{component:?}");
            for need in needed.of(component) {
                eprintln!("  {} {}/{} in {:?}", need.verb, need.group, need.resource, need.namespace);
            }
        }
    }
    let mut wrong = Vec::new();
    for component in Component::ALL {
        let needed = needed.of(component);
        assert!(!needed.is_empty(), "{component:?} asked for nothing");
        wrong.extend(missing(component, needed).into_iter().map(|it| format!("{component:?} lacks: {it}")));
        wrong.extend(unused(component, needed).into_iter().map(|it| format!("{component:?} does not use: {it}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What each part does to templates of an infrastructure that was added is what the role of that is made of.
#[test]
fn templates_of_an_added_infrastructure_are_used_as_their_role_says() {
    let mut needed = Needed::default();
    recorded(&mut needed, &labels::infrastructure::started().world, HoldBy::Pause, by_label);
    for component in Component::ALL {
        let of_dev = needed.of(component).iter().filter(|need| need.group == "infrastructure.cluster.x-k8s.io");
        let used: BTreeSet<(&str, &str)> = of_dev.map(|need| (need.resource.as_str(), need.verb)).collect();
        let given = rights::of_templates(component).iter().map(|verb| ("devmachinetemplates", *verb)).collect();
        assert_eq!(used, given, "{component:?}");
    }
}

/// No right is one to everything, and none lets somebody give themselves more.
#[test]
fn no_right_is_one_to_everything() {
    for right in Component::ALL.into_iter().flat_map(rights::of) {
        let words = [&[right.group][..], right.resources, right.verbs].concat();
        assert!(!words.contains(&"*"), "{right:?}");
        assert!(!right.verbs.iter().any(|verb| matches!(*verb, "escalate" | "bind" | "impersonate")), "{right:?}");
        let secrets = right.group.is_empty() && right.resources.contains(&"secrets") && right.namespace.is_none();
        assert!(!(secrets && right.verbs.contains(&"watch")), "{right:?}");
    }
}
