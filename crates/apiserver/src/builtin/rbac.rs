//! `rbac.authorization.k8s.io`: who may do what. Stored, not enforced.

use super::{BASE, Builtin, default, print};

/// What all rows of this group share.
const GROUP: Builtin = Builtin { group: "rbac.authorization.k8s.io", create_on_update: true, ..BASE };

pub(super) const ROLE: Builtin = Builtin {
    kind: "Role",
    plural: "roles",
    singular: "role",
    definition: "io.k8s.api.rbac.v1.Role",
    default: default::config::role,
    ..GROUP
};

pub(super) const ROLE_BINDING: Builtin = Builtin {
    kind: "RoleBinding",
    plural: "rolebindings",
    singular: "rolebinding",
    definition: "io.k8s.api.rbac.v1.RoleBinding",
    default: default::config::role_binding,
    columns: print::config::BINDING_COLUMNS,
    row: print::config::role_binding,
    ..GROUP
};

pub(super) const CLUSTER_ROLE: Builtin = Builtin {
    kind: "ClusterRole",
    plural: "clusterroles",
    singular: "clusterrole",
    namespaced: false,
    definition: "io.k8s.api.rbac.v1.ClusterRole",
    default: default::config::role,
    ..GROUP
};

pub(super) const CLUSTER_ROLE_BINDING: Builtin = Builtin {
    kind: "ClusterRoleBinding",
    plural: "clusterrolebindings",
    singular: "clusterrolebinding",
    namespaced: false,
    definition: "io.k8s.api.rbac.v1.ClusterRoleBinding",
    default: default::config::role_binding,
    columns: print::config::BINDING_COLUMNS,
    row: print::config::role_binding,
    ..GROUP
};
