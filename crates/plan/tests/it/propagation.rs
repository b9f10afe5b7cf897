//! Classes of clusters in other namespaces: what is copied, changed and taken away, and what is left alone.

use serde_json::{Value, json};
use windlass_plan::bootstrap::Write;
use windlass_plan::propagation::{Observed, Target, propagate};

const MARK: &str = "windlass.dev/copied-from";

fn object(kind: &str, name: &str, namespace: &str, spec: &Value) -> Value {
    let metadata = json!({
        "name": name, "namespace": namespace, "uid": format!("{kind}-{name}"), "resourceVersion": "7",
        "labels": {"kapp.k14s.io/app": "1", "colour": "red"},
        "annotations": {"run.tanzu.vmware.com/resolve-tkr": "", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
        "ownerReferences": [{"kind": "App"}],
    });
    json!({"apiVersion": "x.io/v1", "kind": kind, "metadata": metadata, "spec": spec})
}

/// A class that refers to these templates, in this namespace.
fn class(name: &str, namespace: &str, templates: &[&str]) -> Value {
    let parts = templates
        .iter()
        .map(|name| json!({"templateRef": {"apiVersion": "x.io/v1", "kind": "Template", "name": name}}));
    let spec =
        json!({"workers": {"machineDeployments": parts.collect::<Vec<_>>()}, "secret": {"namespace": namespace}});
    object("ClusterClass", name, namespace, &spec)
}

fn template(name: &str, namespace: &str) -> Value {
    object("Template", name, namespace, &json!({"template": {"spec": {"size": 1, "text": "tkg-system"}}}))
}

fn marked(mut object: Value) -> Value {
    object["metadata"]["labels"][MARK] = "tkg-system".into();
    object
}

fn sources() -> Vec<Value> {
    vec![class("big", "tkg-system", &["t1", "t2"]), template("t1", "tkg-system"), template("t2", "tkg-system")]
}

fn copies() -> Vec<Value> {
    [class("big", "dev", &["t1", "t2"]), template("t1", "dev"), template("t2", "dev")].map(marked).to_vec()
}

fn labelled() -> Target {
    Target { namespace: "dev".to_owned(), labelled: true, ..Target::default() }
}

fn naming(class: &str) -> Target {
    let named = [(class.to_owned(), vec!["wl".to_owned()])].into();
    Target { namespace: "dev".to_owned(), named, ..Target::default() }
}

/// What is done, in order, and what is not: `+` for one that is made, `~` for one that changes, `-` for one that goes.
fn check(target: Target, sources: Vec<Value>, here: Vec<Value>, wanted: &[&str], blocked: &[&str]) -> Vec<Write> {
    let decided = propagate(&Observed { source: "tkg-system".to_owned(), target, sources, here });
    let told = decided.steps.iter().map(|step| match &step.write {
        Write::Create { object } => format!("+ {}", object["metadata"]["name"].as_str().unwrap()),
        Write::Patch { object, .. } => format!("~ {}", object.name),
        Write::Delete { object, .. } => format!("- {}", object.name),
        other => panic!("{other:?}"),
    });
    assert_eq!(told.collect::<Vec<_>>(), wanted);
    assert_eq!(decided.blocked.iter().map(ToString::to_string).collect::<Vec<_>>(), blocked);
    assert!(decided.blocked.iter().all(|blocked| !blocked.way_out().is_empty()));
    decided.steps.into_iter().map(|step| step.write).collect()
}

#[test]
fn a_class_comes_after_its_templates_to_those_who_need_it() {
    let writes = check(labelled(), sources(), vec![], &["+ t1", "+ t2", "+ big"], &[]);
    check(naming("big"), sources(), vec![], &["+ t1", "+ t2", "+ big"], &[]);
    check(naming("small"), sources(), vec![], &[], &[]);
    let Write::Create { object } = &writes[2] else { panic!("{writes:?}") };
    let metadata = json!({
        "name": "big", "namespace": "dev", "labels": {"colour": "red", MARK: "tkg-system"},
        "annotations": {"run.tanzu.vmware.com/resolve-tkr": ""},
    });
    assert_eq!(object["metadata"], metadata, "neither owners nor what says whose the source is");
    assert_eq!(object["spec"]["secret"]["namespace"], "dev");
    let Write::Create { object } = &writes[0] else { panic!("{writes:?}") };
    assert_eq!(object["spec"]["template"]["spec"]["text"], "tkg-system", "a text may mean it");
    // What is there is as it should be: nothing is written again.
    check(labelled(), sources(), copies(), &[], &[]);
    // What a crash left out is made up for.
    check(labelled(), sources(), copies().split_off(1), &["+ big"], &[]);
}

#[test]
fn a_copy_is_kept_equal_and_what_somebody_else_made_is_left_alone() {
    let mut here = copies();
    here[0]["spec"]["mine"] = json!({"a": 1});
    here[0]["metadata"]["labels"]["own"] = "yes".into();
    here[1]["spec"]["template"]["spec"]["size"] = 2.into();
    let writes = check(labelled(), sources(), here, &["~ t1", "~ big"], &[]);
    let Write::Patch { patch, expect, .. } = &writes[1] else { panic!("{writes:?}") };
    assert_eq!((patch, expect.resource_version.as_str()), (&json!({"spec": {"mine": null}}), "7"));
    // Somebody's own class of that name; what is the same may stay.
    let own = class("big", "dev", &["t9"]);
    let foreign = "ClusterClass dev/big was made by somebody else and differs from the one that would be copied";
    check(labelled(), sources(), vec![own], &[], &[foreign]);
    let mut here = copies();
    here[1] = template("t1", "dev");
    check(labelled(), sources(), here.clone(), &[], &[]);
    here[1]["spec"]["template"]["spec"]["size"] = 2.into();
    let foreign = "Template dev/t1 was made by somebody else and differs from the one that would be copied";
    check(labelled(), sources(), here, &[], &[foreign]);
    let incomplete = "ClusterClass tkg-system/big is not copied: it refers to the Template t2, which is not there";
    check(labelled(), sources()[..2].to_vec(), vec![], &[], &[incomplete]);
}

#[test]
fn a_copy_goes_with_its_source_or_its_need_but_not_while_it_is_used() {
    check(labelled(), vec![], copies(), &["- t1", "- t2", "- big"], &[]);
    let nobody = Target { namespace: "dev".to_owned(), ..Target::default() };
    check(nobody.clone(), sources(), copies(), &["- t1", "- t2", "- big"], &[]);
    check(nobody, sources(), vec![class("own", "dev", &["t1"]), template("t1", "dev")], &[], &[]);
    check(naming("big"), sources(), copies(), &[], &[]);
    let stays = "ClusterClass dev/big is a copy whose source is gone; it stays, because wl use it";
    check(naming("big"), vec![], copies(), &[], &[stays]);
    // A template that the class does not refer to any more goes after the class has changed, and not before.
    let changed = vec![class("big", "tkg-system", &["t2"]), template("t2", "tkg-system")];
    check(labelled(), changed.clone(), copies(), &["~ big"], &[]);
    let mut here = copies();
    here[0] = marked(class("big", "dev", &["t2"]));
    check(labelled(), changed, here, &["- t1"], &[]);
    let mut going = copies();
    for object in &mut going {
        object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    }
    check(labelled(), vec![], going, &[], &[]);
}
