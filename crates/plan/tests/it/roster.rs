//! Packages and pods: both tables, as documents and as rules.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use serde_json::json;
use windlass_plan::roster::{
    Category, Facts, Finding, Infrastructure, Install, Owner, PACKAGES, PODS, PodRow, Role, Row, Runs, Seen, Wanted,
    findings, of_management, package, parts, pod, rows, verify,
};

/// What the seed's table says: namespace and name as it cuts them, and its marks for management, workload and Windows.
const SEED: &str = include_str!("seed/pods.txt");

/// Every name of the seed's breakdown, under the category that it has there.
const BREAKDOWN: &str = include_str!("seed/packages.txt");

#[test]
fn every_package_of_the_breakdown_is_a_row_of_its_category() {
    let mut category = None;
    for line in BREAKDOWN.lines() {
        match line.strip_prefix("- ") {
            None => category = categories().find(|category| category.word() == line),
            Some(name) => assert_eq!(package(name).map(|row| row.category), category, "{name}"),
        }
    }
}

fn categories() -> impl Iterator<Item = Category> {
    [Category::Management, Category::Core, Category::Standalone, Category::ClusterApi].into_iter()
}

#[test]
fn the_table_of_the_seed_is_ours_but_for_one_mark() {
    let mut differences = Vec::new();
    for (row, [management, workload, windows]) in SEED.lines().map(of_seed) {
        for (role, mark) in [(Role::Management, management), (Role::Workload, workload), (Role::Windows, windows)] {
            if mark_of(row.runs(role)) != mark {
                differences.push(format!("{} {}: {mark}", row.name, role.word()));
                assert!(row.note.is_some(), "{}: what differs is explained", row.name);
            }
        }
    }
    assert_eq!(differences, ["capv-controller-manager workload: yes"]);
}

/// What the seed shows of a management cluster and of a workload cluster is what is verified of one that has all of these packages.
#[test]
fn a_cluster_that_runs_what_the_seed_shows_is_well_but_for_that_mark() {
    let misplaced = "capv-system/capv-controller-manager-0 must not be here: it belongs to management clusters";
    for (role, column, wanted) in [(Role::Management, 0, vec![]), (Role::Workload, 1, vec![misplaced])] {
        let shown = SEED.lines().map(of_seed).filter(|(_, marks)| marks[column] == "yes").map(|(row, _)| row);
        let (mut packages, mut pods) = (BTreeSet::new(), Vec::new());
        for row in shown {
            pods.push(seen(&format!("{}/{}-0", row.namespace, row.name)));
            if let (Owner::Package(name), true) = (row.owner, row.runs(role) != Runs::No) {
                packages.insert(name.to_owned());
            }
        }
        let found: Vec<String> = verify(role, &packages, &pods).iter().map(Finding::to_string).collect();
        assert_eq!(found, wanted, "{}", role.word());
        // Not one of them could be away, but for what comes and goes, and what must not be there.
        for away in 0..pods.len() {
            let (one, others) = (&pods[away], [&pods[..away], &pods[away + 1..]].concat());
            let found = verify(role, &packages, &others).len();
            let expected = match (one.name.as_str(), role) {
                ("register-placeholder-0", _) => wanted.len(),
                ("capv-controller-manager-0", Role::Workload) => 0,
                _ => wanted.len() + 1,
            };
            assert_eq!(found, expected, "{}", one.name);
        }
    }
}

/// A row of ours for one of the seed's, and its marks.
fn of_seed(line: &'static str) -> (&'static PodRow, [&'static str; 3]) {
    let [namespace, name, management, workload, windows] = line.split_whitespace().collect::<Vec<_>>()[..] else {
        panic!("not a row: {line}");
    };
    let row = PODS.iter().find(|row| is_cut(row.namespace, namespace) && is_cut(row.name, name));
    (row.unwrap_or_else(|| panic!("{namespace}/{name} has no row")), [management, workload, windows])
}

/// Whether a name is what the seed's table has room for: cut at its end, or with words in it cut short.
fn is_cut(whole: &str, shown: &str) -> bool {
    let words = [
        ("btstrp-ctrlmgr", "bootstrap-controller-manager"),
        ("btstrp-sys", "bootstrap-system"),
        ("-cp-", "-control-plane-"),
    ];
    let written = words.iter().fold(shown.to_owned(), |text, (short, long)| text.replace(short, long));
    whole == written || (shown.len() >= 33 && whole.starts_with(&written))
}

fn mark_of(runs: Runs) -> &'static str {
    match runs {
        Runs::No => "-",
        Runs::Yes | Runs::Sometimes => "yes",
        Runs::ControlPlane => "CP",
    }
}

#[test]
fn what_a_pod_belongs_to_is_a_package_and_what_a_package_waits_for_is_a_part_of_the_same() {
    for row in PODS {
        let Owner::Package(name) = row.owner else { continue };
        assert!(package(name).is_some(), "{}: {name} is no package", row.name);
    }
    for row in PACKAGES {
        for before in row.after {
            assert_eq!(package(before).and_then(|before| before.part_of), row.part_of, "{} after {before}", row.name);
        }
        if let Some(meta) = row.part_of {
            assert!(package(meta).is_some(), "{}: {meta} is no package", row.name);
        }
    }
}

#[test]
fn a_meta_package_brings_its_parts_in_order_and_those_of_one_infrastructure_only_there() {
    let names =
        |meta, infrastructure| -> Vec<&str> { parts(meta, infrastructure).iter().map(|row| row.name).collect() };
    let framework = ["tkr-service", "featuregates", "tanzu-auth", "cliplugins", "addons-manager"];
    assert_eq!(names("framework", Infrastructure::Vsphere), framework);
    assert_eq!(names("tkg-clusterclass", Infrastructure::Aws), ["object-propagation", "tkg-clusterclass-aws"]);
    assert_eq!(names("tkg-clusterclass", Infrastructure::Vsphere), ["object-propagation", "tkg-clusterclass-vsphere"]);
    assert_eq!(names("tkg", Infrastructure::Azure)[0], "framework");
    assert!(of_management(Infrastructure::Azure).contains("tkg-clusterclass-azure"));
    assert!(!of_management(Infrastructure::Azure).contains("tkr-vsphere-resolver"));
    // Nothing is lost and nothing waits for itself.
    let of_tkg = PACKAGES.iter().filter(|row| row.part_of == Some("tkg")).count();
    assert_eq!(parts("tkg", Infrastructure::Vsphere).len(), of_tkg);
}

#[test]
fn values_are_for_packages_that_read_them() {
    let refuses = |name| package(name).and_then(|row| row.category.refuses_values()).is_some();
    assert!(refuses("addons-manager") && refuses("cluster-api"));
    assert!(!refuses("antrea") && !refuses("capabilities"));
}

/// The findings about a cluster of this role with these packages, whose pods are these; `!` for one that is not ready, and
/// `@` for one of the control plane.
fn check(role: Role, packages: &[&str], pods: &[&str], wanted: &[&str]) {
    let packages: BTreeSet<String> = packages.iter().map(ToString::to_string).collect();
    let base = [
        "coredns-0",
        "etcd-n1",
        "kube-apiserver-n1",
        "kube-controller-manager-n1",
        "kube-proxy-x",
        "kube-scheduler-n1",
    ];
    let base = base.iter().map(|name| format!("kube-system/{name}"));
    let seen: Vec<Seen> = base.chain(pods.iter().map(ToString::to_string)).map(|text| seen(&text)).collect();
    let found: Vec<String> = verify(role, &packages, &seen).iter().map(Finding::to_string).collect();
    assert_eq!(found, wanted);
}

fn seen(text: &str) -> Seen {
    let (namespace, name) = text.split_once('/').unwrap();
    let ready = !name.contains('!');
    let control_plane = name.contains('@');
    Seen { namespace: namespace.to_owned(), name: name.replace(['!', '@'], ""), ready, control_plane }
}

#[test]
fn pods_that_are_missing_not_ready_or_where_they_must_not_be_are_found() {
    let csi = ["vmware-system-csi/vsphere-csi-controller-0", "vmware-system-csi/vsphere-csi-node-a"];
    check(Role::Workload, &["vsphere-csi"], &csi, &[]);
    check(
        Role::Windows,
        &["vsphere-csi"],
        &csi,
        &["vmware-system-csi/vsphere-csi-node-a must not be here: it belongs to machines of the control plane"],
    );
    check(Role::Windows, &["vsphere-csi"], &[csi[0], "vmware-system-csi/vsphere-csi-node-a@"], &[]);
    check(
        Role::Workload,
        &["antrea"],
        &["kube-system/antrea-agent-1!", "kube-system/antrea-agent-2!", "kube-system/antrea-controller-0!"],
        &[
            "kube-system/antrea-agent: none of its 2 pods is ready",
            "kube-system/antrea-controller: its pod is not ready",
        ],
    );
    // A node that is not ready does not make a cluster unwell that has others.
    let agents = ["kube-system/antrea-agent-1!", "kube-system/antrea-agent-2", "kube-system/antrea-controller-0"];
    check(Role::Workload, &["antrea"], &agents, &[]);
    // The pod of a Job comes and goes, also where it is not ready any more.
    check(Role::Workload, &["antrea"], &[&agents[..], &["vmware-system-antrea/register-placeholder-0!"]].concat(), &[]);
    check(
        Role::Workload,
        &["antrea"],
        &agents[..2],
        &["kube-system/antrea-controller is missing: package antrea brings it in"],
    );
    check(
        Role::Workload,
        &[],
        &["capv-system/capv-controller-manager-0", "default/my-own-pod"],
        &["capv-system/capv-controller-manager-0 must not be here: it belongs to management clusters"],
    );
    check(Role::Management, &["cluster-api-provider-vsphere"], &["capv-system/capv-controller-manager-0"], &[]);
    let bare = verify(Role::Workload, &BTreeSet::new(), &[]);
    assert_eq!(bare[0].to_string(), "kube-system/coredns is missing: every cluster has it");
    assert_eq!(bare.len(), 6);
}

#[test]
fn of_names_that_begin_alike_the_longest_counts() {
    let name = |pod_name| pod("cert-manager", pod_name).map(|row: &PodRow| row.name);
    assert_eq!(name("cert-manager-7d9f-x"), Some("cert-manager"));
    assert_eq!(name("cert-manager-webhook-7d9f-x"), Some("cert-manager-webhook"));
    assert_eq!(name("cert-managers"), None);
    assert_eq!(pod("default", "cert-manager-0"), None);
}

#[test]
#[allow(clippy::disallowed_methods, reason = "documents are read and written where their tests are")]
fn the_document_has_both_tables() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/packages.md");
    let document = fs::read_to_string(&path).unwrap();
    let written = between(&document, "packages", &package_table());
    let written = between(&written, "pods", &pod_table());
    if env::var_os("WINDLASS_UPDATE").is_some() {
        fs::write(&path, &written).unwrap();
    }
    assert_eq!(document, written, "WINDLASS_UPDATE=1 cargo test -p windlass-plan --test it roster");
}

/// The document with other lines between two of its marks.
fn between(document: &str, mark: &str, table: &str) -> String {
    let (begin, end) = (format!("<!-- {mark} -->\n"), format!("<!-- end of {mark} -->\n"));
    let (before, rest) = document.split_once(&begin).expect("the document has both marks");
    let (_, after) = rest.split_once(&end).expect("the document has both marks");
    format!("{before}{begin}{table}{end}{after}")
}

fn package_table() -> String {
    let mut table = "| package | category | comes with | after | only on |\n|---|---|---|---|---|\n".to_owned();
    for row in PACKAGES {
        let only = row.only_on.map(|only| format!("{only:?}")).unwrap_or_default();
        let (word, meta, after) = (row.category.word(), row.part_of.unwrap_or_default(), row.after.join(", "));
        writeln!(table, "| {} | {word} | {meta} | {after} | {only} |", row.name).unwrap();
    }
    table
}

fn pod_table() -> String {
    let mut table =
        "| namespace | pod | of | management | workload | Windows |\n|---|---|---|---|---|---|\n".to_owned();
    let mark = |runs| match runs {
        Runs::No => "",
        Runs::Yes => "✓",
        Runs::ControlPlane => "control plane",
        Runs::Sometimes => "✓ (for a while)",
    };
    let noted: Vec<&str> = PODS.iter().filter_map(|row| row.note).collect();
    for row in PODS {
        let owner = match row.owner {
            Owner::Kubernetes => "Kubernetes",
            Owner::Package(package) => package,
        };
        let [management, workload, windows] = [row.management, row.workload, row.windows].map(mark);
        let number = noted.iter().position(|note| Some(*note) == row.note).map(|at| format!(" ({})", at + 1));
        let number = number.unwrap_or_default();
        let (namespace, name) = (row.namespace, row.name);
        writeln!(table, "| {namespace} | {name}{number} | {owner} | {management} | {workload} | {windows} |").unwrap();
    }
    noted.iter().enumerate().for_each(|(at, note)| writeln!(table, "\n({}) {note}", at + 1).unwrap());
    table
}

/// A `PackageInstall` of a package: `antrea 1.9.0 succeeded`.
fn install(text: &str) -> Install {
    let [package, version, state] = text.split(' ').collect::<Vec<_>>()[..] else { panic!("{text}") };
    let condition = match state {
        "succeeded" => "ReconcileSucceeded",
        "failed" => "ReconcileFailed",
        "deleting" => "Deleting",
        _ => "Reconciling",
    };
    let observed = if state == "outdated" { 1 } else { 2 };
    let install = json!({
        "metadata": {"name": format!("wl-{package}"), "namespace": "tkg-system", "generation": 2},
        "spec": {
            "packageRef": {
                "refName": format!("{package}.tanzu.vmware.com"), "versionSelection": {"constraints": version},
            },
            "paused": (state == "paused"),
        },
        "status": {
            "observedGeneration": observed, "version": version, "usefulErrorMessage": "kapp: Error: no",
            "conditions": [{"type": condition, "status": "True"}],
        },
    });
    Install::of(&serde_json::from_value(install).unwrap())
}

fn facts(role: Role, wanted: Option<&[&str]>, installs: &[&str], pods: &[&str]) -> Facts {
    let wanted = wanted.map(|wanted| {
        let one = |text: &&str| {
            let (package, version) = text.split_once(' ').unwrap();
            Wanted { package: package.to_owned(), version: version.to_owned() }
        };
        wanted.iter().map(one).collect()
    });
    let installs = installs.iter().map(|text| install(text)).collect();
    Facts { role, wanted, installs, pods: pods.iter().map(|text| seen(text)).collect() }
}

/// Rows in a line each: package, whether it should and does run, versions and state.
fn check_rows(facts: &Facts, wanted: &[&str]) {
    let line = |row: Row| {
        let [asked, found] = [row.wanted_version, row.observed_version].map(|version| version.unwrap_or("-".into()));
        format!("{} {:?} {:?} {asked} {found} {:?}", row.package, row.should_run, row.runs, row.state)
    };
    assert_eq!(rows(facts).into_iter().map(line).collect::<Vec<_>>(), wanted);
}

#[test]
fn what_should_run_and_what_does_are_told_apart() {
    let listed = ["kapp-controller 0.41.7", "antrea 1.9.0", "tkg-storageclass 0.28.1", "metrics-server 0.6.2"];
    let installs = [
        "antrea 1.9.0 outdated",
        "tkg-storageclass 0.28.1 failed",
        "calico 3.24.1 succeeded",
        "addons-manager 0.28.1 reconciling",
        "capabilities 0.28.1 paused",
        "shop 2.0.0 succeeded",
        "metrics-server 0.6.2 succeeded",
    ];
    let pods = ["tkg-system/kapp-controller-0", "kube-system/antrea-agent-x", "capv-system/capv-controller-manager-0"];
    let facts = facts(Role::Workload, Some(&listed), &installs, &pods);
    check_rows(
        &facts,
        &[
            "kapp-controller Yes Yes 0.41.7 - NotInstalled",
            // What is known is about another wish, and the old pods run.
            "antrea Yes Yes 1.9.0 - Reconciling",
            // kapp-controller is content, and no pod is there.
            "metrics-server Yes No 0.6.2 0.6.2 Succeeded",
            "tkg-storageclass Yes Unknown 0.28.1 - Failed",
            "addons-manager No Unknown 0.28.1 - Reconciling",
            "calico No Yes 3.24.1 3.24.1 Succeeded",
            "cluster-api-provider-vsphere No Yes - - ByManifests",
            "capabilities Open No 0.28.1 - Held",
            "shop Open Yes 2.0.0 2.0.0 Succeeded",
        ],
    );
    let found = findings(&facts);
    let told: Vec<String> = found.iter().map(ToString::to_string).filter(|told| told.starts_with("package")).collect();
    let wanted = [
        "package kapp-controller is missing",
        "package tkg-storageclass failed: kapp: Error: no",
        "package addons-manager must not be here: it belongs to management clusters",
        "package calico must not be here: the ClusterBootstrap does not list it",
    ];
    assert_eq!(told, wanted);
    assert_eq!(found[2].object(), "packageinstall/wl-addons-manager -n tkg-system");
    for finding in &found {
        assert!(!finding.way_out(Some("wl")).is_empty() && !finding.object().is_empty(), "{finding}");
    }
    // A cluster without a list has whatever it has.
    let unlisted = Facts { wanted: None, ..facts };
    assert!(!findings(&unlisted).iter().any(|finding| finding.to_string().contains("calico")));
}

#[test]
fn a_management_cluster_should_have_all_management_packages_or_none() {
    let missing = |facts: &Facts| {
        let found = findings(facts).into_iter();
        let names = found.filter_map(|finding| match finding {
            Finding::PackageMissing { package, .. } => Some(package),
            _ => None,
        });
        names.collect::<BTreeSet<String>>()
    };
    assert_eq!(missing(&facts(Role::Management, None, &[], &[])), BTreeSet::new());
    let one = facts(Role::Management, None, &["tkg 0.28.1 succeeded"], &["capv-system/capv-controller-manager-0"]);
    let mut wanted: BTreeSet<String> = of_management(Infrastructure::Vsphere).into_iter().map(str::to_owned).collect();
    wanted.remove("tkg");
    assert_eq!(missing(&one), wanted);
    // What is there of a core package says that the rest of it should be.
    let half = facts(Role::Management, None, &[], &["kube-system/antrea-agent-x"]);
    let found: Vec<String> = findings(&half).iter().map(ToString::to_string).collect();
    assert!(found.contains(&"kube-system/antrea-controller is missing: package antrea brings it in".to_owned()));
}
