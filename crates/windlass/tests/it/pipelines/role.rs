//! Roles as they are in `deploy/roles`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::proxy::Asked;

/// What each of them is for.
const WHAT: [(&str, &str); 4] = [
    ("viewer", "Looks: get, status, why, release, gitops check. Everybody who has another role has this one, too."),
    (
        "planner",
        "Plans, rehearses, takes snapshots. It reads the kubeconfigs of workload clusters, and so may do all that they allow.",
    ),
    (
        "approver",
        "Approves and rejects updates. The verb approve is what counts; Kubernetes knows no rights for single annotations.",
    ),
    ("operator", "Creates, updates, upgrades, tries again, gives up."),
];

/// Asserts that a role is what was asked for, and nothing else.
pub fn check(folder: &Path, name: &str, asked: &BTreeSet<Asked>) {
    let (path, text) = (folder.join(format!("{name}.yaml")), written(name, asked));
    if std::env::var_os("WINDLASS_UPDATE").is_some() {
        fs::create_dir_all(folder).unwrap();
        fs::write(&path, &text).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, text, "{}", path.display());
}

fn written(name: &str, asked: &BTreeSet<Asked>) -> String {
    let what = WHAT.iter().find(|(role, _)| *role == name).unwrap().1;
    let mut verbs: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for Asked { group, resource, verb } in asked {
        verbs.entry((group, resource)).or_default().insert(verb);
    }
    // Resources of a group that are asked for alike are one rule.
    let mut rules: BTreeMap<(&str, Vec<&str>), Vec<&str>> = BTreeMap::new();
    for ((group, resource), verbs) in verbs {
        rules.entry((group, verbs.into_iter().collect())).or_default().push(resource);
    }
    let head = format!(
        "# {what}\n# Written by the test pipelines of crates/windlass, which runs the commands and sees what they ask for.\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: windlass-{name}\nrules:\n"
    );
    let rule = |((group, verbs), resources): ((&str, Vec<&str>), Vec<&str>)| {
        let listed = |items: &[&str]| items.join(", ");
        let (resources, verbs) = (listed(&resources), listed(&verbs));
        format!("- apiGroups: [\"{group}\"]\n  resources: [{resources}]\n  verbs: [{verbs}]\n")
    };
    rules.into_iter().map(rule).fold(head, |text, rule| text + &rule)
}
