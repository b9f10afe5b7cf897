//! `networking.k8s.io`: traffic rules. Stored only: nothing here forwards.

use super::{BASE, Builtin, default, print};

/// What all rows of this group share.
const GROUP: Builtin = Builtin { group: "networking.k8s.io", ..BASE };

pub(super) const NETWORK_POLICY: Builtin = Builtin {
    kind: "NetworkPolicy",
    plural: "networkpolicies",
    singular: "networkpolicy",
    short_names: &["netpol"],
    definition: "io.k8s.api.networking.v1.NetworkPolicy",
    generation: true,
    default: default::network::network_policy,
    columns: print::network::POLICY_COLUMNS,
    row: print::network::network_policy,
    ..GROUP
};

pub(super) const INGRESS: Builtin = Builtin {
    kind: "Ingress",
    plural: "ingresses",
    singular: "ingress",
    short_names: &["ing"],
    definition: "io.k8s.api.networking.v1.Ingress",
    status: true,
    generation: true,
    default: default::network::ingress,
    columns: print::network::INGRESS_COLUMNS,
    row: print::network::ingress,
    ..GROUP
};
