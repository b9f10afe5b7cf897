//! The one line that has to change, in files as people write them (`source/corpus/`).

mod compare;

use std::collections::BTreeSet;
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

const PLAIN: &str = "release.giantswarm.io/version: 27.1.0";
const TKR: &str = "v1.25.7---vmware.2-tkg.1";

/// Every file of the corpus in which one line changes: how it is asked, for what, and what the line is then.
const CHANGED: &[(&str, Trigger, &str, &str)] = &[
    ("plain.yaml", ReleaseVersion, "27.1.0", PLAIN),
    ("crlf.yaml", ReleaseVersion, "27.1.0", PLAIN),
    ("no-newline-at-end.yaml", ReleaseVersion, "27.1.0", PLAIN),
    ("byte-order-mark.yaml", ReleaseVersion, "27.1.0", PLAIN),
    ("byte-order-mark-crlf.yaml", ReleaseVersion, "27.1.0", "release.giantswarm.io/version: '27.1.0'"),
    ("multi-document.yaml", ReleaseVersion, "27.1.0", PLAIN),
    ("empty-documents.yaml", ReleaseVersion, "27.1.0", PLAIN),
    ("directive.yaml", ReleaseVersion, "27.1.0", PLAIN),
    ("fleet.yaml", ReleaseVersion, "27.1.0", PLAIN),
    ("list.yaml", ReleaseVersion, "27.1.0", PLAIN),
    ("alias.yaml", ReleaseVersion, "27.1.0", PLAIN),
    ("merged-elsewhere.yaml", ReleaseVersion, "27.1.0", PLAIN),
    ("overridden-merge.yaml", ReleaseVersion, "27.1.0", PLAIN),
    ("unused-anchor.yaml", ReleaseVersion, "27.1.0", "release.giantswarm.io/version: &release 27.1.0"),
    ("with-a-v.yaml", ReleaseVersion, "27.1.0", PLAIN),
    ("text-that-looks-like-it.yaml", ReleaseVersion, "27.1.0", PLAIN),
    ("same-value-everywhere.yaml", ReleaseVersion, "27.1.0", PLAIN),
    ("commented-out.yaml", ReleaseVersion, "27.1.0", PLAIN),
    ("encrypted-beside.yaml", ReleaseVersion, "27.1.0", PLAIN),
    ("cloud-init.yaml", ReleaseVersion, "27.1.0", PLAIN),
    ("trailing-spaces.yaml", ReleaseVersion, "27.1.0", PLAIN),
    ("mixed-line-endings.yaml", ReleaseVersion, "27.1.0", PLAIN),
    (
        "tab-after-value.yaml",
        ReleaseVersion,
        "27.1.0",
        "release.giantswarm.io/version: 27.1.0\t# bumped by the release train",
    ),
    ("rendered-chart.yaml", ReleaseVersion, "27.1.0", r#"release.giantswarm.io/version: "27.1.0""#),
    ("double-quoted.yaml", ReleaseVersion, "27.1.0", r#""release.giantswarm.io/version": "27.1.0""#),
    (
        "single-quoted.yaml",
        ReleaseVersion,
        "27.1.0",
        "'release.giantswarm.io/version': '27.1.0'   # keep quoted, the linter insists",
    ),
    ("comments.yaml", ReleaseVersion, "27.1.0", "release.giantswarm.io/version: 27.1.0 # renovate: 27.0.0"),
    ("crlf-quoted.yaml", ReleaseVersion, "27.1.0", r#"release.giantswarm.io/version: "27.1.0" # pinned"#),
    (
        "document-ends.yaml",
        ReleaseVersion,
        "27.1.0",
        "metadata: {name: wl, namespace: org-acme, labels: {release.giantswarm.io/version: 27.1.0, tier: gold}}",
    ),
    ("flow.yaml", ReleaseVersion, "27.1.0", r#"labels: {"release.giantswarm.io/version": '27.1.0', a: b}},"#),
    ("cluster.json", ReleaseVersion, "27.1.0", r#""release.giantswarm.io/version": "27.1.0","#),
    (
        "one-line.json",
        ReleaseVersion,
        "27.1.0",
        r#"{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Cluster","metadata":{"name":"wl","labels":{"release.giantswarm.io/version":"27.1.0"}}}"#,
    ),
    ("tagged.yaml", ReleaseVersion, "27.1.0", "release.giantswarm.io/version: !!str 27.1.0"),
    ("spaces.yaml", ReleaseVersion, "27.1.0", "release.giantswarm.io/version:     27.1.0     # aligned"),
    ("not-ascii.yaml", ReleaseVersion, "27.1.0", "release.giantswarm.io/version: 27.1.0 # läuft"),
    ("explicit-keys.yaml", ReleaseVersion, "27.1.0", ": 27.1.0"),
    ("value-on-next-line.yaml", ReleaseVersion, "27.1.0", "27.1.0"),
    ("block-literal.yaml", ReleaseVersion, "27.1.0", "27.1.0"),
    ("block-folded.yaml", ReleaseVersion, "27.1.0", "27.1.0"),
    ("flux-substitute.yaml", ReleaseVersion, "27.1.0", r#"release: "27.1.0""#),
    ("flux-default.yaml", ReleaseVersion, "27.1.0", "substitute: {release: 27.1.0}"),
    ("tkr-label.yaml", ReleaseName, TKR, "run.tanzu.vmware.com/tkr: v1.25.7---vmware.2-tkg.1"),
    ("topology.yaml", Topology, "v1.25.7+vmware.2", "version: v1.25.7+vmware.2   # the prefix of a release is enough"),
    (
        "topology-short.yaml",
        Topology,
        "v1.25",
        "topology: {classRef: {name: tkg-vsphere-default-v1.0.0}, version: v1.25, controlPlane: {replicas: 1}}",
    ),
    ("topology-variables.yaml", Topology, "v1.25.7+vmware.2", "v1.25.7+vmware.2"),
    ("distribution.yaml", Distribution, "v1.17", "version: v1.17"),
    (
        "distribution-quoted.yaml",
        Distribution,
        "v1.17.4",
        r#"distribution: {"version": "v1.17.4", "fullVersion": null}"#,
    ),
    ("distribution-crlf.yaml", Distribution, "v1.17", "version: 'v1.17'\t# the newest of these"),
];

/// Every file of the corpus that is left alone, and why.
const REFUSED: &[(&str, Trigger, &str)] = &[
    ("variable-of-nobody.yaml", ReleaseVersion, "filled in from ${release}, and no Flux Kustomization here sets it"),
    ("for-several-clusters.yaml", ReleaseVersion, "for several clusters"),
    ("distribution-full.yaml", Distribution, "distribution-full.yaml:7 (spec.distribution.fullVersion) names"),
    ("anchored-and-used.yaml", ReleaseVersion, "anchored-and-used.yaml:6 (metadata.labels."),
    ("only-merged.yaml", ReleaseVersion, "is shared with others by an anchor"),
    ("labels-shared.yaml", ReleaseVersion, "is shared with others by an anchor"),
    ("block-of-two-lines.yaml", ReleaseVersion, "cannot be changed in one line"),
    ("no-label.yaml", ReleaseVersion, "no-label.yaml:1 (Cluster) has no metadata.labels.release.giantswarm.io/version"),
    ("twice.yaml", ReleaseVersion, "more than one place says the release: twice.yaml:6 "),
    ("of-another-group.yaml", ReleaseVersion, "no file has Cluster org-acme/wl"),
    ("not-yaml.yaml", ReleaseVersion, "these cannot be read as YAML: not-yaml.yaml"),
];

#[test]
fn of_each_file_one_line_changes_in_the_form_that_it_had() {
    assert!(CHANGED.len() >= 40, "{}", CHANGED.len());
    for (name, trigger, to, expected) in CHANGED {
        check_in(&[corpus(name)], *trigger, to, name, expected);
    }
}

#[test]
fn what_cannot_be_changed_alone_is_refused_with_its_place() {
    for (name, trigger, expected) in REFUSED {
        let refusal = wished(&[corpus(name)], *trigger, "27.1.0", None).unwrap_err().to_string();
        assert!(refusal.contains(expected), "{name}: {refusal}");
    }
}

#[test]
fn every_file_of_the_corpus_is_in_a_table() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/source/corpus");
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let files: BTreeSet<String> = files.collect();
    let known = CHANGED.iter().map(|row| row.0).chain(REFUSED.iter().map(|row| row.0));
    assert_eq!(files, known.map(str::to_owned).collect());
}

#[test]
fn a_variable_is_changed_where_flux_sets_it_for_this_cluster() {
    let edit = wished(&[corpus("flux-substitute.yaml")], ReleaseVersion, "27.1.0", None).unwrap().unwrap();
    assert_eq!(edit.place.to_string(), "flux-substitute.yaml:13 (spec.postBuild.substitute.release)");
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
