//! What is verified before a creation.

use serde_json::json;

use crate::creation::{Check, Facts, NodeFact, Outcome, Proxy, ProxyFacts, ReleaseFact, Subject, Wanted, checks};

fn node(name: &str, zone: &str) -> NodeFact {
    let zone = Some(zone.to_owned());
    NodeFact { name: name.to_owned(), ready: true, control_plane: true, kubelet: "v1.24.9+vmware.1".to_owned(), zone }
}

fn release(version: &str) -> ReleaseFact {
    let (name, version) = (version.replace('+', "---"), version.parse().ok());
    ReleaseFact { name, version, excluded: None, fault: None }
}

fn proxy(address: &str) -> Proxy {
    let address = Some(address.to_owned());
    Proxy { http: address.clone(), https: address, exceptions: None }
}

/// A management cluster that nothing is wrong with, and a cluster that is asked for.
fn well() -> Facts {
    Facts {
        server: Ok("v1.24.9+vmware.1".to_owned()),
        nodes: Ok(vec![node("a", "z1"), node("b", "z2"), node("c", "z3")]),
        management: Ok(None),
        releases: Ok(vec![release("v1.24.9+vmware.1-tkg.1"), release("v1.25.7+vmware.2-tkg.1")]),
        proxies: Ok(ProxyFacts::default()),
        authentication: Ok(true),
        wanted: Some(Wanted { release: Some("v1.24.9---vmware.1-tkg.1".parse().unwrap()), proxy: Proxy::default() }),
    }
}

/// What comes of a change of facts that are well: all other checks stay so.
#[track_caller]
fn check(change: impl FnOnce(&mut Facts), subject: Subject, outcome: Outcome, said: &str) {
    let mut facts = well();
    change(&mut facts);
    let found = checks(&facts);
    let one: Vec<&Check> = found.iter().filter(|check| check.subject == subject).collect();
    assert_eq!((one.len(), one[0].outcome, one[0].said.as_str()), (1, outcome, said));
    let must_have_way = matches!(outcome, Outcome::Warning | Outcome::Failed);
    assert_eq!(one[0].way.is_some(), must_have_way, "{found:?}");
}

#[test]
fn all_is_well_where_nothing_is_wrong() {
    let found = checks(&well());
    assert!(found.iter().all(|check| check.outcome == Outcome::Well), "{found:?}");
    assert_eq!(found.len(), 6);
    assert_eq!(found[2].said, "v1.25.7+vmware.2-tkg.1");
}

#[test]
fn nodes_are_there_ready_and_no_newer_than_their_api() {
    let nodes = |facts: &mut Facts, change: &dyn Fn(&mut Vec<NodeFact>)| change(facts.nodes.as_mut().unwrap());
    let subject = Subject::Management;
    let none = "Kubernetes v1.24.9+vmware.1; it shows no nodes that could be looked at";
    check(|it| nodes(it, &Vec::clear), subject, Outcome::Unknown, none);
    check(|it| nodes(it, &|nodes| nodes[1].ready = false), subject, Outcome::Warning, "not ready: b");
    let dead = |nodes: &mut Vec<NodeFact>| nodes.iter_mut().for_each(|node| node.ready = false);
    let said = "none of its 3 nodes is ready: nobody would make the cluster";
    check(|it| nodes(it, &dead), subject, Outcome::Failed, said);
    let newer = |nodes: &mut Vec<NodeFact>| "v1.25.7".clone_into(&mut nodes[2].kubelet);
    check(|it| nodes(it, &newer), subject, Outcome::Warning, "c runs v1.25.7, and the API only v1.24.9+vmware.1");
    let missing = |it: &mut Facts| {
        let own = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "m"}, "spec": {},
            "status": {"controlPlane": {"desiredReplicas": 3}, "workers": {"desiredReplicas": 2}}});
        it.management = Ok(serde_json::from_value(own).unwrap());
    };
    check(missing, subject, Outcome::Warning, "3 of 5 nodes are there");
    let gap = |it: &mut Facts| it.nodes = Err("nodes is forbidden".to_owned());
    check(gap, subject, Outcome::Unknown, "Kubernetes v1.24.9+vmware.1; its nodes cannot be read: nodes is forbidden");
}

#[test]
fn the_control_plane_does_not_fail_with_one_zone() {
    let zones = |zones: [&'static str; 3]| {
        move |facts: &mut Facts| {
            facts.nodes = Ok(zones.iter().zip(["a", "b", "c"]).map(|(zone, name)| node(name, zone)).collect());
        }
    };
    let subject = Subject::AntiAffinity;
    check(zones(["z1", "z2", "z3"]), subject, Outcome::Well, "3 nodes of the control plane in 3 zones");
    check(zones(["z1", "z1", "z3"]), subject, Outcome::Warning, "2 of 3 nodes of the control plane are in z1");
    let free = |facts: &mut Facts| {
        zones(["z1", "z1", "z1"])(facts);
        facts.nodes.as_mut().unwrap().push(NodeFact { control_plane: false, ..node("d", "z2") });
    };
    check(free, subject, Outcome::Warning, "3 of 3 nodes of the control plane are in z1, while z2 has none");
    let unsaid = |facts: &mut Facts| facts.nodes.as_mut().unwrap()[0].zone = None;
    check(unsaid, subject, Outcome::Unknown, "nobody says in which zone a is");
    let single = |facts: &mut Facts| facts.nodes.as_mut().unwrap().truncate(1);
    check(single, subject, Outcome::Well, "one node of the control plane: there is nothing to keep apart");
}

#[test]
fn the_release_that_is_wanted_is_whole_and_others_may_have_faults() {
    let fault = |index: usize| {
        move |facts: &mut Facts| facts.releases.as_mut().unwrap()[index].fault = Some("OSImage x is missing".to_owned())
    };
    check(fault(0), Subject::Releases, Outcome::Failed, "OSImage x is missing");
    check(fault(1), Subject::Releases, Outcome::Warning, "OSImage x is missing");
    check(fault(1), Subject::DefaultRelease, Outcome::Well, "v1.24.9+vmware.1-tkg.1");
    let excluded = |facts: &mut Facts| facts.releases.as_mut().unwrap()[1].excluded = Some("deactivated");
    check(excluded, Subject::Releases, Outcome::Well, "1 of 2 can be used, with all that belongs to them");
    let none = |facts: &mut Facts| facts.releases.as_mut().unwrap().clear();
    check(none, Subject::DefaultRelease, Outcome::Failed, "there is none that can be used");
    let plain = |facts: &mut Facts| {
        none(facts);
        facts.wanted = Some(Wanted::default());
    };
    check(plain, Subject::Releases, Outcome::Warning, "none of 0 can be used");
}

#[test]
fn proxies_agree_and_their_addresses_are_told_to_nobody() {
    let secret = "http://me:hunter2@proxy:3128";
    let facts = |management: Option<&'static str>, told: Option<&'static str>, wanted: Option<&'static str>| {
        move |facts: &mut Facts| {
            let of = |address: Option<&str>| address.map(proxy).unwrap_or_default();
            let told = vec![("ConfigMap/kapp-controller-config".to_owned(), of(told))];
            facts.proxies = Ok(ProxyFacts { management: of(management), told });
            facts.wanted.as_mut().unwrap().proxy = of(wanted);
        }
    };
    let subject = Subject::Proxy;
    check(facts(None, None, None), subject, Outcome::Well, "none");
    check(facts(Some(secret), Some(secret), Some(secret)), subject, Outcome::Well, "everybody is told the same");
    let said = "ConfigMap/kapp-controller-config has none, and the management cluster one";
    check(facts(Some(secret), None, Some(secret)), subject, Outcome::Warning, said);
    let said = "ConfigMap/kapp-controller-config has one, and the management cluster another, or none";
    check(facts(None, Some(secret), None), subject, Outcome::Warning, said);
    let said = "the management cluster has one, and the new cluster none";
    check(facts(Some(secret), Some(secret), None), subject, Outcome::Warning, said);
    let said = "httpProxy of the new cluster is no address that begins with http:// or https://";
    check(facts(None, None, Some("proxy:3128")), subject, Outcome::Failed, said);
    let mut shown = well();
    facts(Some(secret), None, Some(secret))(&mut shown);
    assert!(!format!("{shown:?} {:?}", checks(&shown)).contains("hunter2"));
}

#[test]
fn a_proxy_is_read_from_the_variable_of_a_class_or_from_annotations() {
    let read = |metadata: serde_json::Value, variables: serde_json::Value| {
        let cluster = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": metadata,
            "spec": {"topology": {"classRef": {"name": "a"}, "version": "v1", "variables": variables}}});
        Proxy::of_cluster(&serde_json::from_value(cluster).unwrap())
    };
    let variable = json!([{"name": "proxy", "value": {"httpProxy": "http://a", "noProxy": ["x", "y"]}}]);
    let found = read(json!({"name": "a"}), variable);
    assert_eq!((found.http.as_deref(), found.exceptions.as_deref()), (Some("http://a"), Some("x,y")));
    let annotations =
        json!({"tkg.tanzu.vmware.com/tkg-https-proxy": "https://b", "tkg.tanzu.vmware.com/tkg-http-proxy": " "});
    let found = read(json!({"name": "a", "annotations": annotations}), json!([]));
    assert_eq!((found.http, found.https.as_deref()), (None, Some("https://b")));
    assert!(read(json!({"name": "a"}), json!([])).is_none());
}

#[test]
fn who_authenticates_nobody_is_warned() {
    let without = |facts: &mut Facts| facts.authentication = Ok(false);
    let mut facts = well();
    without(&mut facts);
    let warned: Vec<Check> = checks(&facts).into_iter().filter(|check| check.outcome == Outcome::Warning).collect();
    assert_eq!(warned.len(), 1);
    assert!(warned[0].said.starts_with("pinniped is not configured"), "{warned:?}");
}
