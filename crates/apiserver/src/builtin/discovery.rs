//! `discovery.k8s.io`: where the pods of a service are.

use super::{BASE, Builtin, default, print};

pub(super) const ENDPOINT_SLICE: Builtin = Builtin {
    group: "discovery.k8s.io",
    kind: "EndpointSlice",
    plural: "endpointslices",
    singular: "endpointslice",
    definition: "io.k8s.api.discovery.v1.EndpointSlice",
    generation: true,
    default: default::network::endpoint_slice,
    columns: print::network::SLICE_COLUMNS,
    row: print::network::endpoint_slice,
    ..BASE
};
