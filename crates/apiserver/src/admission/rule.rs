//! Which requests a webhook is asked about.

use super::Attributes;
use crate::kind::Kind;

/// Which requests a webhook is asked about. `*` stands for all.
#[derive(Debug, Clone, Default)]
pub struct Rule {
    /// `CREATE`, `UPDATE`, `DELETE`.
    pub operations: Vec<String>,
    /// The API groups.
    pub groups: Vec<String>,
    /// The versions.
    pub versions: Vec<String>,
    /// `pods`, `pods/status`, `pods/*`, `*/status`, `*` (no subresources), `*/*`.
    pub resources: Vec<String>,
    /// Inside of namespaces or outside.
    pub scope: Scope,
}

/// Where objects are that a rule is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scope {
    /// Anywhere.
    #[default]
    All,
    /// In a namespace.
    Namespaced,
    /// Outside of namespaces, as namespaces themselves are.
    Cluster,
}

impl Rule {
    /// Whether the rule is about a write, if that is one of an object of this kind.
    pub(super) fn matches(&self, attributes: &Attributes<'_>, kind: &Kind) -> bool {
        let any = |list: &[String], value: &str| list.iter().any(|item| item == "*" || item == value);
        let scope = match self.scope {
            Scope::All => true,
            Scope::Namespaced => kind.namespaced,
            Scope::Cluster => !kind.namespaced,
        };
        scope
            && any(&self.operations, attributes.operation.as_str())
            && any(&self.groups, &kind.group)
            && any(&self.versions, &kind.version)
            && self.resources.iter().any(|wanted| {
                let (resource, subresource) = wanted.split_once('/').unwrap_or((wanted, ""));
                (resource == "*" || resource == kind.plural)
                    && (subresource == "*" || subresource == attributes.subresource)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Operation;
    use super::*;
    use crate::auth::User;
    use crate::kind::builtins;

    fn rule(resources: &[&str], groups: &[&str], operations: &[&str], scope: Scope) -> Rule {
        let owned = |list: &[&str]| list.iter().map(|&item| item.to_owned()).collect();
        Rule {
            operations: owned(operations),
            groups: owned(groups),
            versions: owned(&["v1"]),
            resources: owned(resources),
            scope,
        }
    }

    #[track_caller]
    fn check(rule: &Rule, resource: &str, subresource: &str, operation: Operation, expected: bool) {
        let (registry, user) = (builtins::registry(), User::admin());
        let attributes = Attributes {
            kind: registry.stored(resource).unwrap(),
            operation,
            subresource,
            namespace: "default",
            name: "a",
            user: &user,
            dry_run: false,
            namespace_labels: &[],
            query: "",
        };
        assert_eq!(
            rule.matches(&attributes, attributes.kind),
            expected,
            "{rule:?} of {operation:?} {resource}/{subresource}"
        );
    }

    #[test]
    fn resources_and_subresources_match_as_written() {
        use Operation::Update;
        let of = |resources: &[&str]| rule(resources, &["*"], &["*"], Scope::All);
        for (resources, pods, status, nodes) in [
            (["pods"], true, false, false),
            (["pods/status"], false, true, false),
            (["pods/*"], true, true, false),
            (["*"], true, false, true),
            (["*/status"], false, true, false),
            (["*/*"], true, true, true),
            (["nodes"], false, false, true),
        ] {
            check(&of(&resources), "pods", "", Update, pods);
            check(&of(&resources), "pods", "status", Update, status);
            check(&of(&resources), "nodes", "", Update, nodes);
        }
    }

    #[test]
    fn groups_versions_and_operations_match_exactly_or_all() {
        use Operation::{Create, Delete};
        let apps = rule(&["deployments"], &["apps"], &["CREATE"], Scope::All);
        check(&apps, "deployments.apps", "", Create, true);
        check(&apps, "deployments.apps", "", Delete, false);
        check(&rule(&["deployments"], &[""], &["*"], Scope::All), "deployments.apps", "", Create, false);
        check(&rule(&["*"], &[""], &["CREATE", "DELETE"], Scope::All), "pods", "", Delete, true);
        check(&Rule { versions: vec!["v2".into()], ..apps.clone() }, "deployments.apps", "", Create, false);
        check(&Rule { versions: vec!["*".into()], ..apps.clone() }, "deployments.apps", "", Create, true);
        check(&Rule { resources: vec![], ..apps }, "deployments.apps", "", Create, false);
    }

    #[test]
    fn a_scope_leaves_out_what_is_elsewhere() {
        use Operation::Create;
        for (scope, pods, nodes) in
            [(Scope::All, true, true), (Scope::Namespaced, true, false), (Scope::Cluster, false, true)]
        {
            let everything = rule(&["*"], &["*"], &["*"], scope);
            check(&everything, "pods", "", Create, pods);
            check(&everything, "nodes", "", Create, nodes);
            check(&everything, "namespaces", "", Create, nodes);
        }
    }
}
