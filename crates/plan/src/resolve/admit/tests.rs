use serde_json::{Value, json};
use windlass_api::kind::cluster_api::{ClusterInitialization, ClusterStatus};

use super::*;
use crate::resolve::query::tests::release;

const OLD: &str = "v1.24.9---vmware.1-tkg.1";
const NEW: &str = "v1.25.7---vmware.2-tkg.1";

/// Releases, the class, and how machines are kept back.
struct Stage {
    releases: Vec<TanzuKubernetesRelease>,
    os_images: Vec<OSImage>,
    class: Option<ClusterClass>,
    control_plane: Option<KubernetesVersion>,
    hold_by: HoldBy,
    unasked: Option<Unasked>,
}

impl Stage {
    fn new() -> Self {
        let all = [
            release("v1.24.9+vmware.1-tkg.1", &[], &["ubuntu"]),
            release("v1.24.10+vmware.1-tkg.1", &[], &["ubuntu"]),
            release("v1.25.7+vmware.2-tkg.1", &[], &["ubuntu", "photon"]),
            release("v1.26.5+vmware.2-tkg.1", &[], &["ubuntu"]),
        ];
        let (releases, images): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        let (class, hold_by) = (Some(ClusterClass::default()), HoldBy::Pause);
        Self { releases, os_images: images.concat(), class, control_plane: None, hold_by, unasked: None }
    }

    /// What an object becomes that was another before.
    fn admit(&self, object: &Value, before: Option<&Value>) -> Result<(Value, Vec<String>), String> {
        let read = |object: &Value| -> Cluster { serde_json::from_value(object.clone()).unwrap() };
        let (cluster, before) = (read(object), before.map(read));
        let request = Request {
            cluster: &cluster,
            before: before.as_ref(),
            class: self.class.as_ref(),
            releases: &self.releases,
            os_images: &self.os_images,
            control_plane: self.control_plane.as_ref(),
            hold_by: self.hold_by,
            unasked: self.unasked,
        };
        let admitted = admit(&request).map_err(|refused| refused.to_string())?;
        let mut written = object.clone();
        admitted.write(&mut written);
        Ok((written, admitted.warnings))
    }

    /// The same, and whoever asks again about the answer gets the same.
    fn admitted(&self, object: &Value, before: Option<&Value>) -> Value {
        let (written, _) = self.admit(object, before).unwrap();
        assert_eq!(self.admit(&written, before).unwrap().0, written, "asked again");
        let (later, warnings) = self.admit(&written, Some(&written)).unwrap();
        assert_eq!((later, warnings), (written.clone(), Vec::new()), "nothing is left to do");
        written
    }

    /// A cluster that was made at the old release, and runs.
    fn running(&self) -> Value {
        let mut cluster = self.admitted(&object("v1.24.9"), None);
        let reached = ClusterInitialization { infrastructure_provisioned: true, control_plane_initialized: true };
        cluster["status"] = json!(ClusterStatus { initialization: Some(reached), ..ClusterStatus::default() });
        cluster
    }
}

fn object(version: &str) -> Value {
    let ubuntu = json!({"annotations": {"run.tanzu.vmware.com/resolve-os-image": "os-name=ubuntu"}});
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": "wl", "namespace": "dev", "annotations": {"run.tanzu.vmware.com/resolve-tkr": ""}},
        "spec": {"ours": "no", "topology": {
            "classRef": {"name": "default"}, "version": version, "controlPlane": {"metadata": ubuntu},
            "workers": {"machineDeployments": [{"class": "worker", "name": "md-0", "metadata": ubuntu}]},
        }},
    })
}

fn with(object: &Value, change: impl FnOnce(&mut Value)) -> Value {
    let mut object = object.clone();
    change(&mut object);
    object
}

/// `release at version`, and how it is held.
fn told(object: &Value) -> String {
    let metadata = &object["metadata"];
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let paused = if object["spec"]["paused"] == json!(true) { " paused" } else { "" };
    let held = metadata["annotations"]["tkg.tanzu.vmware.com/paused"].as_str();
    let held = held.map(|release| format!(" for {release}")).unwrap_or_default();
    let keep = metadata["annotations"].get("windlass.dev/keep-paused").map_or("", |_| " and kept");
    let release = text(&metadata["labels"]["run.tanzu.vmware.com/tkr"]);
    format!("{release} at {}{paused}{held}{keep}", text(&object["spec"]["topology"]["version"]))
}

fn set_version(object: &mut Value, version: &str) {
    object["spec"]["topology"]["version"] = json!(version);
}

fn set_label(object: &mut Value, release: &str) {
    object["metadata"]["labels"]["run.tanzu.vmware.com/tkr"] = json!(release);
}

#[test]
fn a_new_cluster_gets_one_release_and_is_not_held() {
    let stage = Stage::new();
    let made = stage.admitted(&object("v1.24.9"), None);
    assert_eq!(told(&made), format!("{OLD} at v1.24.9+vmware.1"));
    assert_eq!(made["spec"]["ours"], "no", "what we do not know stays");
    let data = &made["spec"]["topology"]["variables"][0];
    assert_eq!((&data["name"], data["value"].as_object().unwrap().len()), (&json!("TKR_DATA"), 1));
    assert!(made["spec"]["topology"]["workers"]["machineDeployments"][0].get("variables").is_none());
    let copied = copy::read(made["metadata"]["annotations"]["run.tanzu.vmware.com/tkr-spec"].as_str().unwrap());
    assert_eq!(copied.unwrap().spec.version, "v1.24.9+vmware.1-tkg.1");
}

#[test]
fn an_upgrade_is_asked_for_by_version_or_by_label_and_held_in_the_same_write() {
    let stage = Stage::new();
    let running = stage.running();
    let expected = format!("{NEW} at v1.25.7+vmware.2 paused for {NEW}");
    for change in [
        (|object| set_version(object, "v1.25")) as fn(&mut Value),
        |object| set_version(object, "v1.25.7+vmware.2-tkg.1"),
        |object| set_label(object, NEW),
        |object| {
            set_label(object, NEW);
            set_version(object, "v1.25.7");
        },
    ] {
        let changed = stage.admitted(&with(&running, change), Some(&running));
        assert_eq!(told(&changed), expected);
        let data = changed["spec"]["topology"]["variables"][0]["value"].as_object().unwrap();
        assert_eq!(data.keys().collect::<Vec<_>>(), ["v1.24.9+vmware.1", "v1.25.7+vmware.2"]);
    }
    let hooks = Stage { hold_by: HoldBy::Hooks, ..Stage::new() };
    let changed = hooks.admitted(&with(&running, |object| set_label(object, NEW)), Some(&running));
    assert_eq!(told(&changed), format!("{NEW} at v1.25.7+vmware.2"));
}

#[test]
fn where_cluster_api_does_not_ask_yet_a_pause_holds_what_hooks_would_not() {
    let mut stage = Stage { hold_by: HoldBy::Hooks, unasked: Some(Unasked::Undiscovered), ..Stage::new() };
    let running = stage.running();
    let raised = with(&running, |object| set_label(object, NEW));
    let (_, warnings) = stage.admit(&raised, Some(&running)).unwrap();
    assert!(warnings[0].starts_with("spec.paused: set, with the annotation"), "{warnings:?}");
    assert_eq!(
        warnings[1..],
        [
            "the cluster is paused, and not held by hooks: Cluster API does not ask Windlass, as the ExtensionConfig windlass is not \
          Discovered"
        ]
    );
    let held = stage.admitted(&raised, Some(&running));
    assert_eq!(told(&held), format!("{NEW} at v1.25.7+vmware.2 paused for {NEW}"));
    // From when it asks, nothing changes for what is held already, and the next change is for the hooks.
    stage.unasked = None;
    assert_eq!(stage.admitted(&held, Some(&held)), held);
    assert_eq!(told(&stage.admitted(&raised, Some(&running))), format!("{NEW} at v1.25.7+vmware.2"));
}

#[test]
fn what_is_applied_again_as_it_was_typed_changes_nothing() {
    let stage = Stage::new();
    let running = stage.running();
    for typed in ["v1.24", "v1.24.9", "v1.24.9+vmware.1-tkg.1"] {
        assert_eq!(stage.admitted(&with(&running, |object| set_version(object, typed)), Some(&running)), running);
    }
}

#[test]
fn a_cluster_that_its_owner_has_paused_is_resolved_when_the_owner_goes_on() {
    let stage = Stage::new();
    let running = stage.running();
    let paused = with(&running, |object| object["spec"]["paused"] = json!(true));
    let typed = stage.admitted(&with(&paused, |object| set_version(object, "v1.25.7+vmware.2-tkg.1")), Some(&paused));
    assert_eq!(told(&typed), format!("{OLD} at v1.25.7+vmware.2-tkg.1 paused"));
    let resumed = stage.admitted(&with(&typed, |object| object["spec"]["paused"] = json!(false)), Some(&typed));
    assert_eq!(told(&resumed), format!("{NEW} at v1.25.7+vmware.2 paused for {NEW}"));

    // By label, packages may come in; the owner's pause is marked, and what was asked for is not forgotten.
    let labelled = stage.admitted(&with(&paused, |object| set_label(object, NEW)), Some(&paused));
    assert_eq!(told(&labelled), format!("{NEW} at v1.24.9+vmware.1 paused for {NEW} and kept"));
    let let_go = with(&labelled, |object| {
        object["metadata"]["annotations"].as_object_mut().unwrap().remove("tkg.tanzu.vmware.com/paused");
        object["spec"]["paused"] = json!(false);
    });
    let let_go = stage.admitted(&let_go, Some(&labelled));
    assert_eq!(told(&let_go), format!("{NEW} at v1.25.7+vmware.2 paused"), "to let go is not to end the owner's pause");
    let quietly = with(&labelled, |object| {
        let annotations = object["metadata"]["annotations"].as_object_mut().unwrap();
        annotations
            .retain(|key, _| !["tkg.tanzu.vmware.com/paused", "windlass.dev/keep-paused"].contains(&key.as_str()));
    });
    let quietly = stage.admitted(&quietly, Some(&labelled));
    assert_eq!(told(&quietly), format!("{NEW} at v1.24.9+vmware.1 paused"));
    for let_go in [let_go, quietly] {
        let resumed = stage.admitted(&with(&let_go, |object| object["spec"]["paused"] = json!(false)), Some(&let_go));
        assert_eq!(told(&resumed), format!("{NEW} at v1.25.7+vmware.2"), "its packages are in");
    }
}

#[test]
fn a_held_cluster_can_be_asked_for_another_release_and_goes_from_what_its_machines_have() {
    let mut stage = Stage::new();
    let running = stage.running();
    let held = stage.admitted(&with(&running, |object| set_label(object, NEW)), Some(&running));
    let ask = |stage: &Stage, version: &str| {
        stage.admit(&with(&held, |object| set_version(object, version)), Some(&held)).map(|(object, _)| told(&object))
    };
    let back = "spec.topology: v1.24.9+vmware.1-tkg.1 is older than v1.25.7+vmware.2-tkg.1";
    assert!(ask(&stage, "v1.24.9").unwrap_err().starts_with(back));
    stage.control_plane = Some("v1.24.9+vmware.1".parse().unwrap());
    assert_eq!(ask(&stage, "v1.24.9").unwrap(), format!("{OLD} at v1.24.9+vmware.1 paused for {OLD}"));
    let other = "v1.24.10---vmware.1-tkg.1";
    assert_eq!(ask(&stage, "v1.24.10").unwrap(), format!("{other} at v1.24.10+vmware.1 paused for {other}"));
    // One minor from what the machines have, and not from what they were asked to have.
    assert!(ask(&stage, "v1.26").unwrap_err().contains("v1.24.9+vmware.1-tkg.1"));
}

#[test]
fn where_cluster_api_asks_a_cluster_whose_machines_wait_can_go_back_and_is_not_held() {
    let mut stage = Stage { hold_by: HoldBy::Hooks, ..Stage::new() };
    let running = stage.running();
    let asked = stage.admitted(&with(&running, |object| set_label(object, NEW)), Some(&running));
    stage.control_plane = Some("v1.24.9+vmware.1".parse().unwrap());
    let back = stage.admitted(&with(&asked, |object| set_label(object, OLD)), Some(&asked));
    assert_eq!(told(&back), format!("{OLD} at v1.24.9+vmware.1"));
    stage.control_plane = Some("v1.25.7+vmware.2".parse().unwrap());
    let refused = stage.admit(&with(&asked, |object| set_label(object, OLD)), Some(&asked)).unwrap_err();
    assert!(refused.contains("is older than v1.25.7+vmware.2-tkg.1"), "{refused}");
}

#[test]
fn a_release_that_is_gone_or_not_offered_any_more_stays_with_its_cluster() {
    let mut stage = Stage::new();
    let running = stage.running();
    let held = stage.admitted(&with(&running, |object| set_label(object, NEW)), Some(&running));
    stage.releases.clear();
    stage.os_images.clear();
    for cluster in [&running, &held] {
        let scaled = with(cluster, |object| object["spec"]["topology"]["controlPlane"]["replicas"] = json!(3));
        assert_eq!(stage.admitted(&scaled, Some(cluster)), scaled);
    }
}

#[test]
fn what_has_no_packages_or_no_machines_yet_is_not_held() {
    let mut stage = Stage::new();
    let running = stage.running();
    let young = with(&running, |object| object["status"] = json!({}));
    let changed = stage.admitted(&with(&young, |object| set_version(object, "v1.25")), Some(&young));
    assert_eq!(told(&changed), format!("{NEW} at v1.25.7+vmware.2"));
    stage.releases[2].spec.bootstrap_packages = None;
    let changed = stage.admitted(&with(&running, |object| set_version(object, "v1.25")), Some(&running));
    assert_eq!(told(&changed), format!("{NEW} at v1.25.7+vmware.2"));
}

#[test]
fn a_pool_of_another_system_is_told_so_by_itself() {
    let stage = Stage::new();
    let running = stage.running();
    let photon = json!({"annotations": {"run.tanzu.vmware.com/resolve-os-image": "os-name=photon"}});
    let mixed = with(&running, |object| {
        set_version(object, "v1.25");
        object["spec"]["topology"]["workers"]["machineDeployments"][0]["metadata"] = photon;
    });
    let changed = stage.admitted(&mixed, Some(&running));
    let pool = &changed["spec"]["topology"]["workers"]["machineDeployments"][0];
    let data = &pool["variables"]["overrides"][0]["value"];
    assert_eq!(data["v1.25.7+vmware.2"]["labels"]["os-name"], "photon");
    assert_eq!(data["v1.24.9+vmware.1"]["labels"]["os-name"], "ubuntu", "old machines stay what they are");
}

fn check_refused(change: impl FnOnce(&mut Value, &mut Stage), complaint: &str) {
    let mut stage = Stage::new();
    let running = stage.running();
    let mut asked = running.clone();
    change(&mut asked, &mut stage);
    let found = stage.admit(&asked, Some(&running)).unwrap_err();
    assert_eq!(found, complaint);
}

#[test]
fn what_cannot_be_done_is_refused_with_what_could() {
    const KNOWN: &str =
        "there are v1.24.9+vmware.1-tkg.1, v1.24.10+vmware.1-tkg.1, v1.25.7+vmware.2-tkg.1, v1.26.5+vmware.2-tkg.1";
    let none = "no release begins with v1.99";
    check_refused(
        |object, _| set_version(object, "v1.99"),
        &format!("spec.topology: no release fits; the control plane: {none}; pool md-0: {none}; {KNOWN}"),
    );
    check_refused(
        |object, _| {
            set_version(object, "v1.26");
            set_label(object, NEW);
        },
        &format!(
            "metadata.labels[run.tanzu.vmware.com/tkr] asks for {NEW} and spec.topology.version for v1.26, with which that does \
             not begin; change one of them, and the other follows"
        ),
    );
    check_refused(
        |object, stage| {
            set_version(object, "v1.24.10");
            stage.class = None;
        },
        "spec.topology.classRef: there is no ClusterClass dev/default, and without it no release can be resolved; create it \
         first, or remove the annotation run.tanzu.vmware.com/resolve-tkr",
    );
    check_refused(
        |object, _| set_version(object, "v1.26"),
        "spec.topology: v1.26.5+vmware.2-tkg.1 is 2 minors ahead of v1.24.9+vmware.1-tkg.1: go there one minor at a time, 1.25 next",
    );
}

#[test]
fn a_label_that_names_no_release_is_refused_and_not_put_back_in_silence() {
    for label in ["v1.26", "v9", "newest"] {
        check_refused(
            |object, _| set_label(object, label),
            &format!(
                "metadata.labels[run.tanzu.vmware.com/tkr]: {label} names no release: a label has the whole of a name, and the \
                 beginning of a version can be asked for in spec.topology.version; there are {OLD}, v1.24.10---vmware.1-tkg.1, \
                 {NEW}, v1.26.5---vmware.2-tkg.1"
            ),
        );
    }
    let (stage, running) = (Stage::new(), Stage::new().running());
    let refusal = stage.admit(&with(&running, |object| set_label(object, "Newest")), Some(&running)).unwrap_err();
    assert!(refusal.starts_with("Cluster/wl: metadata.labels[run.tanzu.vmware.com/tkr]: "), "{refusal}");
}

#[test]
fn what_asks_for_nothing_is_left_alone() {
    let mut stage = Stage::new();
    let plain = with(&object("v1.30.0"), |object| object["metadata"]["annotations"] = json!({"a": "b"}));
    assert_eq!(stage.admitted(&plain, None), plain);
    stage.class = None;
    assert_eq!(stage.admitted(&plain, Some(&plain)), plain, "its class may come later");
    let read = |object: &Value| concerns(&serde_json::from_value(object.clone()).unwrap());
    assert!(read(&plain));
    assert!(!read(&with(&plain, |object| drop(object["spec"].as_object_mut().unwrap().remove("topology")))));
    assert!(!read(&with(&plain, |object| object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"))));
}
