//! Clusters whose objects are their owner's: what a release sets on them, what is shown of that, and what an update may do.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_api::kind::release::ReleaseConfigMap;
use windlass_api::name::UpdateId;
use windlass_plan::change::{Effect, classify};
use windlass_plan::envelope::Envelope;
use windlass_plan::gate::Gates;
use windlass_plan::inventory::{
    Abort, ClusterState, ControlPlane, Inventory, KubeadmControlPlane, Machine, MachineState, Orders, Pool,
    PoolProgress, Releases, Template, UpdateRecord, UpdateRecordState, Workload,
};
use windlass_plan::planner::{Planned, PlanningInput, Record, plan};
use windlass_plan::render::Scope;
use windlass_plan::render::classic::{Rendered, all};
use windlass_plan::resolve::labelled::abort::too_late;
use windlass_plan::resolve::labelled::{Published, may_go};
use windlass_plan::step::{Action, Place, Revision, Stage, Step};
use windlass_plan::target::{ClassicParts, ClassicPool, Target};

const MAPS: &str = include_str!("../../../sim/catalogue/release-config-maps.yaml");
const EXAMPLE: &str = include_str!("../../../../deploy/examples/release-by-label.yaml");

fn maps() -> Vec<ReleaseConfigMap> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(MAPS).unwrap();
    documents.into_iter().map(|document| serde_json::from_value(document).unwrap()).collect()
}

fn published() -> Published {
    Published::read(&maps())
}

/// The objects of the example, as a server gives them out.
fn parts() -> ClassicParts {
    let mut objects: Vec<Value> = serde_saphyr::from_multiple(EXAMPLE).unwrap();
    for object in &mut objects {
        object["metadata"]["namespace"] = json!("default");
        object["metadata"]["uid"] = json!("208025ff-0cc9-4c88-b22d-5a43b1c33831");
        object["metadata"]["resourceVersion"] = json!("7");
    }
    let find = |kind: &str, name: &str| {
        let is_it = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
        objects.iter().find(is_it).unwrap().clone()
    };
    ClassicParts {
        cluster: serde_json::from_value(find("Cluster", "shop")).unwrap(),
        control_plane: find("KubeadmControlPlane", "shop-control-plane"),
        template: find("WCPMachineTemplate", "shop-control-plane-1"),
        pools: vec![ClassicPool {
            deployment: find("MachineDeployment", "shop-workers"),
            infrastructure: find("WCPMachineTemplate", "shop-workers-1"),
            bootstrap: find("KubeadmConfigTemplate", "shop-workers-1"),
        }],
    }
}

fn target(parts: &ClassicParts, release: &str) -> Target {
    Target::of_classic(parts, published().find(&release.parse().unwrap()).unwrap().clone()).unwrap()
}

fn template(object: &Value) -> Template {
    let name = object["metadata"]["name"].as_str().unwrap().parse().unwrap();
    Template { name, spec: object.pointer("/spec/template/spec").cloned() }
}

fn inventory(parts: &ClassicParts) -> Inventory {
    let uid = || "208025ff-0cc9-4c88-b22d-5a43b1c33831".parse().unwrap();
    let revision = || Revision { uid: uid(), resource_version: "7".to_owned() };
    let progress = PoolProgress { observed: true, replicas: 3, up_to_date: 3, available: 3 };
    let version = |text: &Value| text.as_str().unwrap().parse().unwrap();
    let spec = &parts.control_plane["spec"];
    let kubeadm = KubeadmControlPlane {
        name: "shop-control-plane".parse().unwrap(),
        revision: revision(),
        replicas: 3,
        version: version(&spec["version"]),
        infrastructure_template: template(&parts.template),
        configuration: spec["kubeadmConfigSpec"].clone(),
        progress,
        versions: vec![version(&spec["version"])],
        unwell: None,
        owns_addons: true,
        live: parts.control_plane.clone(),
    };
    let pools = parts.pools.iter().map(|found| {
        let pool = Pool {
            revision: revision(),
            replicas: 2,
            version: version(&found.deployment["spec"]["template"]["spec"]["version"]),
            infrastructure_template: template(&found.infrastructure),
            bootstrap_template: template(&found.bootstrap),
            progress: PoolProgress { replicas: 2, up_to_date: 2, available: 2, ..progress },
            machines: Vec::new(),
            moved_at: None,
            live: found.deployment.clone(),
        };
        (found.deployment["metadata"]["name"].as_str().unwrap().parse().unwrap(), pool)
    });
    Inventory {
        as_of: Timestamp::UNIX_EPOCH,
        cluster: ClusterState::Present {
            uid: uid(),
            infrastructure_ready: true,
            initialized: true,
            paused: None,
            network: None,
        },
        secrets: BTreeSet::new(),
        control_plane: ControlPlane { kubeadm: Some(kubeadm), ..ControlPlane::default() },
        pools: pools.collect::<BTreeMap<_, _>>(),
        topology: None,
        workload: Workload::NotYet,
        update: None,
        orders: Orders::default(),
        gaps: Vec::new(),
        consent: None,
        releases: Releases::default(),
        earlier_templates: Vec::new(),
        deployed: None,
    }
}

fn rendered(parts: &ClassicParts, release: &str) -> Vec<Rendered> {
    let target = target(parts, release);
    let scope = Scope { target: &target, update: UpdateId::new(&target.cluster.uid, 1) };
    all(&scope, &inventory(parts))
}

#[test]
fn nothing_is_applied_but_what_the_release_says_and_references_to_new_templates() {
    let found = rendered(&parts(), "36.1.0");
    let roles: Vec<&str> = found.iter().map(|it| it.role.as_str()).collect();
    let wanted = [
        "control-plane/WCPMachineTemplate",
        "control-plane/KubeadmControlPlane",
        "workers/shop-workers/WCPMachineTemplate",
        "workers/shop-workers/MachineDeployment",
    ];
    assert_eq!(roles, wanted);
    let made = found[0].object["metadata"]["name"].clone();
    let reference =
        json!({"apiGroup": "infrastructure.cluster.vmware.com", "kind": "WCPMachineTemplate", "name": made});
    assert_eq!(
        found[1].object["spec"],
        json!({
            "version": "v1.36.1+vmware.1",
            "kubeadmConfigSpec": {"clusterConfiguration": {"imageRepository": "projects.registry.vmware.com/tkg"}},
            "remediation": {"maxRetry": 5},
            "machineTemplate": {"spec": {"infrastructureRef": reference}},
        })
    );
    // A template is made anew with all that was in the old one.
    let spec = &found[0].object["spec"]["template"]["spec"];
    assert_eq!(spec["imageName"], "ubuntu-2404-k8sd-v1.36.1-vmware.1-tkg.1");
    assert_eq!(spec["className"], "best-effort-small");
    let pool = &found[3].object["spec"];
    assert_eq!(pool["template"]["spec"]["version"], "v1.36.1+vmware.1");
    assert!(pool["replicas"].is_null() && pool["template"]["spec"]["bootstrap"].is_null(), "{pool}");
}

#[test]
fn what_we_have_filled_in_before_is_said_again_as_it_is() {
    let mut parts = parts();
    parts.control_plane["spec"]["remediation"] = json!({"maxRetry": 7});
    let theirs = rendered(&parts, "36.1.0");
    assert!(theirs[1].object["spec"]["remediation"].is_null(), "somebody else's");
    let fields = json!({"f:spec": {
        "f:remediation": {"f:maxRetry": {}},
        "f:machineTemplate": {"f:spec": {"f:infrastructureRef": {"f:apiGroup": {}, "f:kind": {}, "f:name": {}}}},
    }});
    parts.control_plane["metadata"]["managedFields"] =
        json!([{"manager": "windlass", "operation": "Apply", "apiVersion": "v1", "fieldsV1": fields}]);
    // It is at 36.1.0, and 36.2.0 changes something in place.
    parts.control_plane["spec"]["version"] = json!("v1.36.1+vmware.1");
    parts.template["spec"]["template"]["spec"]["imageName"] = json!("ubuntu-2404-k8sd-v1.36.1-vmware.1-tkg.1");
    let ours = rendered(&parts, "36.2.0");
    let kcp = ours.iter().find(|it| it.role == "control-plane/KubeadmControlPlane").unwrap();
    assert_eq!(kcp.object["spec"]["remediation"]["maxRetry"], 7, "ours");
    let reference = &kcp.object["spec"]["machineTemplate"]["spec"]["infrastructureRef"]["name"];
    assert_eq!(reference, "shop-control-plane-1", "ours, and no new one");
}

#[test]
fn where_nothing_differs_nothing_is_rendered() {
    let mut parts = parts();
    parts.control_plane["spec"]["remediation"] = json!({"maxRetry": 5});
    assert_eq!(rendered(&parts, "35.2.0"), []);
    let change = classify(&target(&parts, "36.1.0"), &inventory(&parts));
    assert!(change.changes.iter().any(|it| it.effect == Effect::Replaces && it.field == "spec.version"), "{change:?}");
}

#[test]
fn a_step_that_writes_what_the_release_does_not_speak_of_is_outside_of_the_envelope() {
    let parts = parts();
    let target = target(&parts, "36.1.0");
    let mut from = target.end();
    from.outdated = vec!["control-plane".to_owned(), "workers/shop-workers".to_owned()];
    let envelope = Envelope::of(&target, Some(&from));
    let step = |it: &Rendered, change: &dyn Fn(&mut Value)| {
        let mut object = it.object.clone();
        change(&mut object);
        let action = match it.live {
            None => Action::Create { object },
            Some(_) => Action::Apply { object, expect: None },
        };
        Step { stage: Stage::ControlPlane, role: it.role.clone(), place: Place::Management, action, why: String::new() }
    };
    let found = rendered(&parts, "36.1.0");
    for it in &found {
        assert!(envelope.allows(&step(it, &|_| {})), "{}", it.role);
    }
    let refused = |number: usize, change: &dyn Fn(&mut Value)| {
        assert!(!envelope.allows(&step(&found[number], change)), "{number}");
    };
    refused(1, &|object| object["spec"]["machineNaming"] = json!({"template": "a"}));
    refused(1, &|object| object["spec"]["version"] = json!("v1.36.2+vmware.1"));
    refused(0, &|object| object["spec"]["template"]["spec"]["imageName"] = json!("another"));
    refused(3, &|object| object["spec"]["template"]["metadata"] = json!({"labels": {"a": "b"}}));
    // What is replaced is what was agreed on.
    from.outdated.clear();
    assert!(!Envelope::of(&target, Some(&from)).allows(&step(&found[0], &|_| {})));
}

#[test]
fn a_release_that_is_not_whole_is_refused_with_what_is_missing() {
    for (missing, field) in [
        ("kubeadmcontrolplane", "spec.version"),
        ("machinedeployment", "spec.template.spec.version"),
        ("wcpmachinetemplate", "spec.template.spec.imageName"),
    ] {
        let left: Vec<_> = maps()
            .into_iter()
            .filter(|map| map.metadata.name.as_deref() != Some(&format!("{missing}-36-1-0")))
            .collect();
        let published = Published::read(&left);
        let release = published.find(&"36.1.0".parse().unwrap()).unwrap().clone();
        let error = Target::of_classic(&parts(), release).unwrap_err().to_string();
        let words = format!("release 36.1.0 is not complete: no ConfigMap {missing}-36-1-0 says {field}");
        assert!(error.starts_with(&words), "{error}");
    }
}

#[test]
fn a_cluster_goes_to_releases_that_are_for_use_and_never_back() {
    let published = published();
    let check = |to: &str, before: Option<&str>, kubernetes: &str, refusal: Option<&str>| {
        let before = before.map(|text| text.parse().unwrap());
        let release = published.find(&to.parse().unwrap()).unwrap();
        let answer = may_go(release, before.as_ref(), Some(&kubernetes.parse().unwrap()));
        match (answer, refusal) {
            (Ok(()), None) => {}
            (Err(why), Some(words)) => assert!(why.to_string().contains(words), "{to}: {why}"),
            (answer, _) => panic!("{to}: {answer:?}"),
        }
    };
    check("36.1.0", Some("35.2.0"), "v1.35.2+vmware.1", None);
    check("36.2.0", Some("36.1.0"), "v1.36.1+vmware.1", None);
    check("35.1.0", Some("35.1.0"), "v1.35.2+vmware.1", None);
    check("35.1.0", None, "v1.35.2+vmware.1", Some("is deprecated"));
    check("37.0.0", Some("36.1.0"), "v1.36.1+vmware.1", Some("is wip"));
    check("35.2.0", Some("36.1.0"), "v1.36.1+vmware.1", Some("is older than"));
    check("36.1.0", Some("35.2.0"), "v1.34.2+vmware.1", Some("one minor at a time"));
}

#[test]
fn the_beginning_of_a_version_leads_to_the_newest_release_that_is_for_use() {
    let check = |asked: &str, answer: Result<&str, &str>| {
        let published = published();
        let found = published.chosen(&asked.parse().unwrap());
        match (found, answer) {
            (Ok(release), Ok(version)) => assert_eq!(release.distribution.bare().to_string(), version, "{asked}"),
            (Err(why), Err(words)) => assert_eq!(why.to_string(), words, "{asked}"),
            (found, _) => panic!("{asked}: {found:?}"),
        }
    };
    check("36", Ok("36.1.0"));
    check("v36.1", Ok("36.1.0"));
    check("35", Ok("35.2.0"));
    // In full it is meant, whatever its state.
    check("36.2.0", Ok("36.2.0"));
    check("37.0.0", Ok("37.0.0"));
    check("36.2", Err("no release that begins with v36.2 is for new clusters: v36.2.0 is preview"));
    check("35.1", Err("no release that begins with v35.1 is for new clusters: v35.1.0 is deprecated"));
    check("3", Err("no release begins with v3; there are v35.1.0, v35.2.0, v36.1.0, v36.2.0, v37.0.0"));
    check("36.7.0", Err("there is no release 36.7.0; there are 35.1.0, 35.2.0, 36.1.0, 36.2.0, 37.0.0"));
}

fn machine(name: &str, version: &str) -> Machine {
    Machine {
        name: name.parse().unwrap(),
        revision: Revision {
            uid: "208025ff-0cc9-4c88-b22d-5a43b1c33831".parse().unwrap(),
            resource_version: "7".into(),
        },
        base: None,
        update: None,
        created: Timestamp::UNIX_EPOCH,
        version: version.parse().unwrap(),
        image: None,
        class: None,
        storage_class: None,
        registration: None,
        state: MachineState::Ready { node: name.parse().unwrap() },
    }
}

/// What is done next in an update to 36.1.0 that somebody wants to be given up.
fn ordered(parts: &ClassicParts, release: &str, too_late: Option<&str>) -> Planned {
    let (old, new) = (target(parts, "35.2.0"), target(parts, "36.1.0"));
    let mut inventory = inventory(parts);
    let id = UpdateId::new(&new.cluster.uid, 1);
    let mut from = old.end();
    from.outdated = vec!["control-plane".to_owned(), "workers/shop-workers".to_owned()];
    inventory.update = Some(UpdateRecord {
        name: "shop-1".parse().unwrap(),
        ordinal: 1,
        id,
        envelope_digest: Envelope::of(&new, Some(&from)).digest(),
        from,
        state: UpdateRecordState::Running,
        waiting: Vec::new(),
        progress: Vec::new(),
    });
    let too_late = too_late.map(str::to_owned);
    inventory.orders.abort = Some(Abort { by: "ann".into(), back: None, upgrading: None, job: None, too_late });
    let target = target(parts, release);
    plan(&PlanningInput { target, inventory, now: Timestamp::UNIX_EPOCH, gates: Gates::all() })
}

#[test]
fn who_gives_up_in_time_is_told_so_and_who_is_late_that_it_goes_on() {
    let planned = ordered(&parts(), "35.2.0", None);
    assert_eq!((planned.record, planned.steps), (Some(Record::Aborted), Vec::new()));

    let mut told = parts();
    told.control_plane["spec"]["version"] = json!("v1.36.1+vmware.1");
    let planned = ordered(&told, "36.1.0", Some("Cluster API was told"));
    assert_eq!(planned.record, None, "it goes on");
    let blocked = &planned.report.stages[1].blocked;
    let said: Vec<String> = blocked.iter().map(ToString::to_string).collect();
    let late = "shop-1 cannot be given up any more: Cluster API was told";
    assert!(said.iter().any(|said| said == late), "{said:?}");
    assert!(!said.iter().any(|said| said.contains("another target")), "{said:?}");
}

#[test]
fn an_update_is_given_up_until_cluster_api_is_told_to_replace_machines() {
    let check = |change: &dyn Fn(&mut ClassicParts, &mut Vec<Machine>), why: Option<&str>| {
        let (mut parts, mut machines) = (parts(), Vec::new());
        change(&mut parts, &mut machines);
        let back = target(&parts, "35.2.0");
        let mut inventory = inventory(&parts);
        inventory.control_plane.machines = machines;
        assert_eq!(too_late(&back, &inventory).as_deref(), why);
    };
    check(&|_, _| {}, None);
    // What is changed in place is set back in place.
    check(&|parts, _| parts.control_plane["spec"]["remediation"] = json!({"maxRetry": 9}), None);
    check(
        &|parts, _| parts.control_plane["spec"]["version"] = json!("v1.36.1+vmware.1"),
        Some(
            "Cluster API was told that spec.version of control-plane is v1.36.1+vmware.1, and replaces machines for that",
        ),
    );
    check(
        &|parts, _| {
            parts.pools[0].deployment["spec"]["template"]["spec"]["version"] = json!("v1.36.1+vmware.1");
        },
        Some(
            "Cluster API was told that spec.template.spec.version of workers/shop-workers is v1.36.1+vmware.1, and replaces machines for that",
        ),
    );
    // Told, and set back by hand.
    check(
        &|_, machines| machines.push(machine("shop-1", "v1.36.1+vmware.1")),
        Some("Machine shop-1 has v1.36.1+vmware.1"),
    );
    check(&|_, machines| machines.push(machine("shop-1", "v1.35.2+vmware.1")), None);
    let (parts, mut gap) = (parts(), inventory(&parts()));
    gap.control_plane.kubeadm = None;
    assert!(too_late(&target(&parts, "35.2.0"), &gap).unwrap().contains("nobody knows what Cluster API was told"));
}

#[test]
fn a_malformed_release_spoils_no_other() {
    let mut maps = maps();
    let broken = maps.iter_mut().find(|map| map.metadata.name.as_deref() == Some("machinedeployment-36-1-0")).unwrap();
    broken.data.insert("spec".to_owned(), "replicas: [".to_owned());
    let mut stray = maps[0].clone();
    stray.metadata.labels = Some([("release.giantswarm.io/version".to_owned(), "newest".to_owned())].into());
    maps.push(stray);
    let published = Published::read(&maps);
    let known: Vec<String> = published.releases().map(|release| release.distribution.bare().to_string()).collect();
    assert_eq!(known, ["35.1.0", "35.2.0", "36.2.0", "37.0.0"]);
    assert_eq!(published.malformed().count(), 2);
    let why = published.find(&"36.1.0".parse().unwrap()).unwrap_err();
    assert!(why.to_string().contains("ConfigMap giantswarm/machinedeployment-36-1-0: data.spec"), "{why}");
    assert_eq!(why.reason(), "ReleaseMalformed");
}
