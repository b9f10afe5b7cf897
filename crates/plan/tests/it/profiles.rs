//! Infrastructure profiles: which can be read, what others are told, and what a cluster on such an infrastructure gets of a release.

use serde_json::{Value, json};
use windlass_api::kind::ContractReference;
use windlass_api::name::UpdateId;
use windlass_plan::change::{Effect, Origin, classify};
use windlass_plan::envelope::Envelope;
use windlass_plan::profile::{ImageNeed, Profile, Profiles, SHIPPED};
use windlass_plan::render::Scope;
use windlass_plan::render::classic::all;
use windlass_plan::resolve::labelled::Published;
use windlass_plan::target::Target;

use crate::classic::{inventory, maps, parts_of};

/// All that a profile can say.
const WHOLE: &str = "apiVersion: infrastructure.example.com/v1beta2
template: BoxMachineTemplate
cluster: BoxCluster
image: {field: spec.template.spec.source.image}
class: spec.template.spec.size
storageClass: 'spec.template.spec[example.com/disk]'
";

#[test]
fn a_profile_says_where_in_which_template_is_what() {
    let profile = Profile::read("a file", WHOLE).unwrap();
    assert_eq!(profile.api_version(), "infrastructure.example.com/v1beta2");
    assert_eq!((profile.machine(), profile.map_kind().as_str()), ("BoxMachine", "boxmachinetemplate"));
    assert_eq!(profile.required_image().unwrap().to_string(), "spec.template.spec.source.image");
    let machine = json!({"source": {"image": "a"}, "size": "large", "example.com/disk": "fast"});
    let text = |field: &windlass_plan::profile::MachineField| field.of(&machine).unwrap().as_str().unwrap().to_owned();
    assert_eq!(text(&profile.image.as_ref().unwrap().field), "a");
    assert_eq!(text(profile.class.as_ref().unwrap()), "large");
    assert_eq!(text(profile.storage_class.as_ref().unwrap()), "fast");
}

#[test]
fn little_is_needed() {
    let least = Profile::read("a file", "apiVersion: a.example.com/v1\ntemplate: AMachineTemplate").unwrap();
    assert_eq!((least.cluster, least.image, least.class, least.storage_class), (None, None, None, None));
}

#[test]
fn those_that_come_with_windlass_can_be_read_and_do_not_meet() {
    let read = Profiles::read(SHIPPED.map(|(name, text)| (name, Some(text))));
    assert_eq!(read.malformed(), []);
    let kinds: Vec<&str> = read.iter().map(|profile| profile.template.as_str()).collect();
    assert_eq!(kinds, ["DevMachineTemplate", "DockerMachineTemplate", "WCPMachineTemplate"]);
    assert!(read.added().all(|profile| profile.image.as_ref().unwrap().need == ImageNeed::Optional));
}

fn check(change: fn(&str) -> String, told: &str) {
    let text = change(WHOLE);
    let error = Profile::read("profile.yaml", &text).unwrap_err().to_string();
    assert!(error.starts_with("profile.yaml: profile") && error.contains(told), "{text}\n{error}");
}

#[test]
fn a_bad_profile_is_refused_with_the_field_and_what_would_be_right() {
    check(|_| "- a list".to_owned(), "profile cannot be read");
    check(|text| text.replace("template:", "templates:"), "unknown field");
    check(|text| text.replace("template: BoxMachineTemplate\n", ""), "missing field");
    check(|text| text.replace("{field:", "{required: perhaps, field:"), "profile cannot be read");
    check(|text| text.replace("/v1beta2", ""), r#"profile.apiVersion is "infrastructure.example.com"; accepted are"#);
    check(
        |text| text.replace("infrastructure.example.com/v1beta2", "'*/v1beta2'"),
        r#"profile.apiVersion is "*/v1beta2""#,
    );
    check(|text| text.replace("/v1beta2", "/*"), "profile.apiVersion is");
    check(|text| text.replace("infrastructure.example.com", "cluster.x-k8s.io"), "are Cluster API's own");
    check(|text| text.replace("BoxMachineTemplate", "'*'"), r#"profile.template is "*", which is no kind"#);
    check(|text| text.replace("BoxMachineTemplate", "BoxMachine"), "the kind of a template ends in Template");
    check(|text| text.replace("BoxMachineTemplate", "Template"), "the kind of a template ends in Template");
    check(|text| text.replace("BoxCluster", "box clusters"), "profile.cluster is");
    check(|text| text.replace("spec.source.image", "spec..image"), "profile.image.field is");
    check(
        |text| text.replace("spec.template.spec.size", "spec.size"),
        "profile.class is spec.size; accepted is a field of the machine, within spec.template.spec",
    );
    check(|text| text.replace("spec.template.spec.size", "spec.template.spec"), "profile.class is spec.template.spec;");
    check(
        |text| text.replace("spec.template.spec.size", "spec.template.spec.source"),
        "profile.class is spec.template.spec.source, which is what image.field is about, too",
    );
    check(|text| format!("{text}# {}", "x".repeat(1 << 20)), "at most 1048576 are read");
}

#[test]
fn a_profile_that_cannot_be_read_spoils_no_other_and_two_that_differ_are_none() {
    let other = WHOLE.replace("size", "flavour");
    let read = Profiles::read([
        ("a", Some(WHOLE)),
        ("b", Some("nonsense: [")),
        ("c", None),
        ("same", Some(WHOLE)),
        ("dev", Some(SHIPPED[0].1)),
    ]);
    let kinds: Vec<&str> = read.added().map(|profile| profile.template.as_str()).collect();
    assert_eq!(kinds, ["BoxMachineTemplate", "DevMachineTemplate"], "said twice, and the same");
    let told: Vec<String> = read.malformed().iter().map(ToString::to_string).collect();
    assert!(told[0].starts_with("ConfigMap windlass-system/b: data: profile cannot be read"), "{told:?}");
    assert_eq!(told[1], "ConfigMap windlass-system/c: data: profile is missing; accepted is a profile, as YAML");

    let read = Profiles::read([("a", Some(WHOLE)), ("z", Some(other.as_str()))]);
    assert_eq!(read.added().count(), 0, "nobody could tell which was meant");
    let [why] = read.malformed() else { panic!("{:?}", read.malformed()) };
    assert!(why.to_string().contains("another profile about it is in ConfigMap a"), "{why}");

    let built_in = WHOLE.replace("BoxMachineTemplate", "WCPMachineTemplate");
    let read = Profiles::read([("mine", Some(built_in.as_str()))]);
    assert!(read.malformed()[0].to_string().contains("built into Windlass"), "{:?}", read.malformed());
    let of_wcp = Profile::built_in().reference("a");
    assert_eq!(read.of(&of_wcp), Some(Profile::built_in()), "it stays what it is");
}

#[test]
fn a_kind_that_no_profile_is_about_is_told_which_there_are_and_what_adds_one() {
    let read = Profiles::read([("a", Some(WHOLE)), ("b", Some("nonsense: ["))]);
    let reference = |group: &str| ContractReference {
        api_group: group.to_owned(),
        kind: "BoxMachineTemplate".to_owned(),
        name: "a".to_owned(),
    };
    assert!(read.of(&reference("infrastructure.example.com")).is_some());
    assert!(read.of(&reference("infrastructure.example.org")).is_none(), "of another group");
    let way_out = read.way_out();
    assert!(way_out.contains(r#""BoxMachineTemplate", "WCPMachineTemplate""#), "{way_out}");
    assert!(
        way_out.contains("windlass install --profile FILE")
            && way_out.contains("one cannot be read: ConfigMap windlass-system/b")
    );
}

/// The releases of the example, with what they say about machines said about those of another infrastructure.
fn published(text: &str, spec: &str) -> Published {
    let profiles = Profiles::read([("a", Some(text))]);
    let kind = profiles.added().next().unwrap().map_kind();
    let maps = maps().into_iter().map(|mut map| {
        let name = map.metadata.name.clone().unwrap();
        if let Some(version) = name.strip_prefix("wcpmachinetemplate-") {
            map.metadata.name = Some(format!("{kind}-{version}"));
            map.data.insert("spec".to_owned(), spec.replace("VERSION", version));
            map.data.remove("releaseOwned");
            map.data.remove("userOwned");
        }
        map
    });
    Published::read(&maps.collect::<Vec<_>>(), profiles)
}

/// What the machines of the example are made from, as templates of another infrastructure.
fn templates(profile: &Profile, machine: &Value) -> impl Fn(&mut Value) {
    let (profile, machine) = (profile.clone(), machine.clone());
    move |object| {
        if object["kind"] == "WCPMachineTemplate" {
            object["apiVersion"] = json!(profile.api_version());
            object["kind"] = json!(profile.template);
            object["spec"]["template"]["spec"] = machine.clone();
        }
        for place in ["/spec/machineTemplate/spec/infrastructureRef", "/spec/template/spec/infrastructureRef"] {
            if let Some(reference) = object.pointer_mut(place) {
                reference["apiGroup"] = json!(profile.group);
                reference["kind"] = json!(profile.template);
            }
        }
    }
}

#[test]
fn a_release_leads_templates_of_any_infrastructure_and_names_their_fields() {
    let published = published(WHOLE, "template: {spec: {source: {image: boxes/VERSION}}}");
    let profile = published.profiles().added().next().unwrap().clone();
    let machine =
        json!({"source": {"image": "boxes/35-2-0", "cache": true}, "size": "small", "example.com/disk": "fast"});
    let parts = parts_of(&profile, templates(&profile, &machine));
    let release = published.find(&"36.1.0".parse().unwrap()).unwrap().clone();
    let target = Target::of_classic(&parts, release).unwrap();
    assert_eq!((target.control_plane.class(), target.control_plane.storage_class()), ("small", "fast"));

    let scope = Scope { target: &target, update: UpdateId::new(&target.cluster.uid, 1) };
    let rendered = all(&scope, &inventory(&parts));
    let roles: Vec<&str> = rendered.iter().map(|it| it.role.as_str()).collect();
    let wanted = [
        "control-plane/BoxMachineTemplate",
        "control-plane/KubeadmControlPlane",
        "workers/shop-workers/BoxMachineTemplate",
        "workers/shop-workers/MachineDeployment",
    ];
    assert_eq!(roles, wanted);
    let made = &rendered[0].object;
    assert_eq!(made["apiVersion"], "infrastructure.example.com/v1beta2");
    let machine =
        json!({"source": {"image": "boxes/36-1-0", "cache": true}, "size": "small", "example.com/disk": "fast"});
    assert_eq!(made["spec"]["template"]["spec"], machine, "with all that was in the one before");
    let reference = &rendered[1].object["spec"]["machineTemplate"]["spec"]["infrastructureRef"];
    let name = &made["metadata"]["name"];
    assert_eq!(
        *reference,
        json!({"apiGroup": "infrastructure.example.com", "kind": "BoxMachineTemplate", "name": name})
    );

    let change = classify(&target, &inventory(&parts));
    let image = change.changes.iter().find(|it| it.kind == "BoxMachineTemplate").unwrap();
    assert_eq!(
        (image.field.as_str(), image.effect, image.origin),
        ("spec.template.spec.source.image", Effect::Replaces, Origin::Release)
    );
    let lines = change.lines();
    assert!(lines[0].starts_with("control-plane: version v1.35.2+vmware.1 -> v1.36.1+vmware.1"), "{lines:?}");
    assert!(lines[0].contains("image boxes/35-2-0 -> boxes/36-1-0, forces replacement: "), "{lines:?}");

    let mut from = target.end();
    from.outdated = vec!["control-plane".to_owned(), "workers/shop-workers".to_owned()];
    let envelope = Envelope::of(&target, Some(&from));
    let kinds: Vec<&str> = envelope.allowed.iter().map(|it| it.kind.as_str()).collect();
    assert!(kinds.contains(&"BoxMachineTemplate") && !kinds.contains(&"WCPMachineTemplate"), "{kinds:?}");
}

#[test]
fn a_release_has_to_say_the_image_only_where_the_profile_wants_one() {
    let release = |text: &str| published(text, "template: {spec: {size: small}}");
    let check = |text: &str, refusal: Option<&str>| {
        let published = release(text);
        let profile = published.profiles().added().next().unwrap().clone();
        let parts = parts_of(&profile, templates(&profile, &json!({"size": "small", "example.com/disk": "fast"})));
        let release = published.find(&"36.1.0".parse().unwrap()).unwrap().clone();
        match (Target::of_classic(&parts, release), refusal) {
            (Ok(_), None) => {}
            (Err(why), Some(words)) => assert!(why.to_string().starts_with(words), "{why}"),
            (answer, _) => panic!("{answer:?}"),
        }
    };
    check(
        WHOLE,
        Some(
            "release 36.1.0 is not complete: no ConfigMap boxmachinetemplate-36-1-0 says spec.template.spec.source.image",
        ),
    );
    check(&WHOLE.replace("image}", "image, required: false}"), None);
    check(&WHOLE.replace("image: {field: spec.template.spec.source.image}\n", ""), None);
}

#[test]
fn an_image_is_its_releases_and_text() {
    let check = |spec: &str, told: &str| {
        let published = published(WHOLE, spec);
        let why = published.find(&"36.1.0".parse().unwrap()).unwrap_err().to_string();
        assert!(
            why.contains("boxmachinetemplate-36-1-0: spec.template.spec.source.image") && why.contains(told),
            "{why}"
        );
    };
    check("template: {spec: {source: {image: 7}}}", "is no name");
    check("template: {spec: {source: {image: ''}}}", "is no name");
}
