//! The one line that has to change, in files as people write them (`source/corpus/`).

use std::fs;
use std::path::Path;

use windlass_plan::source::{Edit, File, SourceError, Trigger, Wish, edit};

use Trigger::{Distribution, ReleaseName, ReleaseVersion, Topology};

#[expect(clippy::disallowed_methods, reason = "the files of the corpus are read as they are, line endings and all")]
fn corpus(name: &str) -> File {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/source/corpus").join(name);
    File { path: name.to_owned(), text: fs::read_to_string(path).unwrap() }
}

fn file(path: &str, text: &str) -> File {
    File { path: path.to_owned(), text: text.to_owned() }
}

fn wished(files: &[File], trigger: Trigger, to: &str, only: Option<&str>) -> Result<Option<Edit>, SourceError> {
    let cluster = "org-acme/wl".parse().unwrap();
    edit(files, &Wish { cluster: &cluster, trigger, to, only })
}

/// Asserts that one line of a file changes, and what it is then.
fn check_in(files: &[File], trigger: Trigger, to: &str, path: &str, expected: &str) {
    let edit = wished(files, trigger, to, None).unwrap_or_else(|error| panic!("{path}: {error}")).expect(path);
    assert_eq!((edit.place.path.as_str(), edit.to.as_str()), (path, to));
    let old = &files.iter().find(|file| file.path == path).unwrap().text;
    let lines: Vec<(usize, (&str, &str))> = old.split('\n').zip(edit.text.split('\n')).enumerate().collect();
    assert_eq!(old.split('\n').count(), edit.text.split('\n').count(), "{path}");
    let changed: Vec<_> = lines.into_iter().filter(|(_, (old, new))| old != new).collect();
    let [(at, (was, is))] = changed[..] else { panic!("{path}: {changed:?}") };
    assert_eq!(is.trim(), expected, "{path}");
    assert_eq!(was.ends_with('\r'), is.ends_with('\r'), "{path}");
    assert!(was.contains(&edit.from) || was.contains('*'), "{path}: {was} had {}", edit.from);
    // A block begins where its sign stands.
    assert!(at + 1 - edit.place.line <= 1, "{path}: line {at} is not {}", edit.place.line);
    let after: Vec<File> = { files.iter() }
        .map(|file| if file.path == path { File { text: edit.text.clone(), ..file.clone() } } else { file.clone() })
        .collect();
    assert_eq!(wished(&after, trigger, to, None), Ok(None), "{path}: it is done then");
}

fn check(name: &str, trigger: Trigger, to: &str, expected: &str) {
    check_in(&[corpus(name)], trigger, to, name, expected);
}

fn label(name: &str, expected: &str) {
    check(name, ReleaseVersion, "27.1.0", expected);
}

fn refused(name: &str, trigger: Trigger, expected: &str) {
    let refusal = wished(&[corpus(name)], trigger, "27.1.0", None).unwrap_err().to_string();
    assert!(refusal.contains(expected), "{name}: {refusal}");
}

#[test]
fn the_label_of_a_cluster_is_one_line_in_any_form() {
    let plain = "release.giantswarm.io/version: 27.1.0";
    for name in ["plain.yaml", "crlf.yaml", "no-newline-at-end.yaml", "byte-order-mark.yaml", "multi-document.yaml"] {
        label(name, plain);
    }
    for name in ["list.yaml", "alias.yaml", "merged-elsewhere.yaml", "overridden-merge.yaml", "with-a-v.yaml"] {
        label(name, plain);
    }
    for name in ["text-that-looks-like-it.yaml", "same-value-everywhere.yaml"] {
        label(name, plain);
    }
    label("double-quoted.yaml", r#""release.giantswarm.io/version": "27.1.0""#);
    label("single-quoted.yaml", "'release.giantswarm.io/version': '27.1.0'   # keep quoted, the linter insists");
    label("comments.yaml", "release.giantswarm.io/version: 27.1.0 # renovate: 27.0.0");
    label("crlf-quoted.yaml", r#"release.giantswarm.io/version: "27.1.0" # pinned"#);
    let flow = "metadata: {name: wl, namespace: org-acme, labels: {release.giantswarm.io/version: 27.1.0, tier: gold}}";
    label("document-ends.yaml", flow);
    label("flow.yaml", r#"labels: {"release.giantswarm.io/version": '27.1.0', a: b}},"#);
    label("cluster.json", r#""release.giantswarm.io/version": "27.1.0","#);
    let one = r#"{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Cluster","metadata":{"name":"wl","labels":{"release.giantswarm.io/version":"27.1.0"}}}"#;
    label("one-line.json", one);
    label("unused-anchor.yaml", "release.giantswarm.io/version: &release 27.1.0");
    label("tagged.yaml", "release.giantswarm.io/version: !!str 27.1.0");
    label("spaces.yaml", "release.giantswarm.io/version:     27.1.0     # aligned");
    label("not-ascii.yaml", "release.giantswarm.io/version: 27.1.0 # läuft");
    label("explicit-keys.yaml", ": 27.1.0");
    for name in ["value-on-next-line.yaml", "block-literal.yaml", "block-folded.yaml"] {
        label(name, "27.1.0");
    }
}

#[test]
fn variables_are_changed_where_flux_sets_them_for_this_cluster() {
    label("flux-substitute.yaml", r#"release: "27.1.0""#);
    let edit = wished(&[corpus("flux-substitute.yaml")], ReleaseVersion, "27.1.0", None).unwrap().unwrap();
    assert_eq!(edit.place.to_string(), "flux-substitute.yaml:13 (spec.postBuild.substitute.release)");
    label("flux-default.yaml", "substitute: {release: 27.1.0}");
    refused(
        "variable-of-nobody.yaml",
        ReleaseVersion,
        "filled in from ${release}, and no Flux Kustomization here sets it",
    );
    refused("for-several-clusters.yaml", ReleaseVersion, "for several clusters");
}

#[test]
fn the_other_ways_to_ask_are_one_line_too() {
    let tkr = "v1.25.7---vmware.2-tkg.1";
    check("tkr-label.yaml", ReleaseName, tkr, &format!("run.tanzu.vmware.com/tkr: {tkr}"));
    let topology = "version: v1.25.7+vmware.2   # the prefix of a release is enough";
    check("topology.yaml", Topology, "v1.25.7+vmware.2", topology);
    let short = "topology: {classRef: {name: tkg-vsphere-default-v1.0.0}, version: v1.25, controlPlane: {replicas: 1}}";
    check("topology-short.yaml", Topology, "v1.25", short);
    check("distribution.yaml", Distribution, "v1.17", "version: v1.17");
    let quoted = r#"distribution: {"version": "v1.17.4", "fullVersion": null}"#;
    check("distribution-quoted.yaml", Distribution, "v1.17.4", quoted);
    refused("distribution-full.yaml", Distribution, "distribution-full.yaml:7 (spec.distribution.fullVersion) names");
}

#[test]
fn what_cannot_be_changed_alone_is_refused_with_its_place() {
    refused("anchored-and-used.yaml", ReleaseVersion, "anchored-and-used.yaml:6 (metadata.labels.");
    refused("only-merged.yaml", ReleaseVersion, "is shared with others by an anchor");
    refused("labels-shared.yaml", ReleaseVersion, "is shared with others by an anchor");
    refused("block-of-two-lines.yaml", ReleaseVersion, "cannot be changed in one line");
    refused(
        "no-label.yaml",
        ReleaseVersion,
        "no-label.yaml:1 (Cluster) has no metadata.labels.release.giantswarm.io/version",
    );
    refused("twice.yaml", ReleaseVersion, "more than one place says the release: twice.yaml:6 ");
    refused("of-another-group.yaml", ReleaseVersion, "no file has Cluster org-acme/wl");
    refused("not-yaml.yaml", ReleaseVersion, "these cannot be read as YAML: not-yaml.yaml");
}

const BASE: &str = "apiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata:\n  name: wl\n  labels:\n    release.giantswarm.io/version: 27.0.0\n";

fn overlaid(overlay: &str, others: &[(&str, &str)]) -> Vec<File> {
    let mut files = vec![
        file("base/cluster.yaml", BASE),
        file("base/kustomization.yaml", "resources: [cluster.yaml]\n"),
        file("overlays/live/kustomization.yaml", overlay),
    ];
    files.extend(others.iter().map(|(path, text)| file(path, text)));
    files
}

#[test]
fn an_overlay_says_more_than_what_it_is_laid_over() {
    let live = "overlays/live/kustomization.yaml";
    let check = |overlay: &str, others: &[(&str, &str)], path: &str, expected: &str| {
        check_in(&overlaid(overlay, others), ReleaseVersion, "27.1.0", path, expected);
    };
    let only = "resources:\n- ../../base\n";
    check(only, &[], "base/cluster.yaml", "release.giantswarm.io/version: 27.1.0");
    let inline = format!(
        "{only}patches:\n- target: {{kind: Cluster, name: wl}}\n  patch: |-\n    - op: replace\n      path: /metadata/labels/release.giantswarm.io~1version\n      value: 27.0.0 # here\n"
    );
    check(&inline, &[], live, "value: 27.1.0 # here");
    let strategic = format!(
        "{only}patches:\n- patch: |\n    apiVersion: cluster.x-k8s.io/v1beta1\n    kind: Cluster\n    metadata:\n      name: wl\n      labels:\n        release.giantswarm.io/version: '27.0.0'\n"
    );
    check(&strategic, &[], live, "release.giantswarm.io/version: '27.1.0'");
    let named = format!("{only}patches:\n- path: release.yaml\n  target: {{kind: Cluster}}\n");
    check(
        &named,
        &[("overlays/live/release.yaml", BASE)],
        "overlays/live/release.yaml",
        "release.giantswarm.io/version: 27.1.0",
    );
    let old = format!("{only}patchesStrategicMerge: [release.yaml]\n");
    check(
        &old,
        &[("overlays/live/release.yaml", BASE)],
        "overlays/live/release.yaml",
        "release.giantswarm.io/version: 27.1.0",
    );
    let labels = format!("{only}labels:\n- pairs:\n    release.giantswarm.io/version: 27.0.0\n");
    check(&labels, &[], live, "release.giantswarm.io/version: 27.1.0");
    let of_others = format!(
        "{only}patches:\n- target: {{kind: Cluster, name: other}}\n  patch: |-\n    metadata: {{labels: {{release.giantswarm.io/version: 27.0.0}}}}\n"
    );
    check(&of_others, &[], "base/cluster.yaml", "release.giantswarm.io/version: 27.1.0");
}

#[test]
fn of_several_overlays_the_one_that_is_meant_has_to_be_named() {
    let labels = "resources: [../../base]\ncommonLabels:\n  release.giantswarm.io/version: 27.0.0\n";
    let files = overlaid(labels, &[("overlays/test/kustomization.yaml", labels)]);
    let refusal = wished(&files, ReleaseVersion, "27.1.0", None).unwrap_err().to_string();
    assert!(refusal.contains("overlays/live/kustomization.yaml:3") && refusal.contains("overlays/test/"), "{refusal}");
    let edit = wished(&files, ReleaseVersion, "27.1.0", Some("./overlays/test/")).unwrap().unwrap();
    assert_eq!(edit.place.path, "overlays/test/kustomization.yaml");
}
