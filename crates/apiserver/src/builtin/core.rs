//! The core group: what every other group refers to.

use super::{BASE, Builtin, Verbs, default, prepare, print};

pub(super) const NAMESPACE: Builtin = Builtin {
    kind: "Namespace",
    plural: "namespaces",
    singular: "namespace",
    short_names: &["ns"],
    namespaced: false,
    definition: "io.k8s.api.core.v1.Namespace",
    verbs: Verbs::AllButDeleteCollection,
    status: true,
    selectable_fields: &["status.phase"],
    default: default::cluster::namespace,
    columns: print::cluster::NAMESPACE_COLUMNS,
    row: print::cluster::namespace,
    prepare: prepare::cluster::namespace,
    ..BASE
};

pub(super) const CONFIG_MAP: Builtin = Builtin {
    kind: "ConfigMap",
    plural: "configmaps",
    singular: "configmap",
    short_names: &["cm"],
    definition: "io.k8s.api.core.v1.ConfigMap",
    columns: print::config::CONFIG_MAP_COLUMNS,
    row: print::config::config_map,
    ..BASE
};

pub(super) const SECRET: Builtin = Builtin {
    kind: "Secret",
    plural: "secrets",
    singular: "secret",
    definition: "io.k8s.api.core.v1.Secret",
    selectable_fields: &["type"],
    default: default::config::secret,
    columns: print::config::SECRET_COLUMNS,
    row: print::config::secret,
    ..BASE
};

pub(super) const NODE: Builtin = Builtin {
    kind: "Node",
    plural: "nodes",
    singular: "node",
    short_names: &["no"],
    namespaced: false,
    definition: "io.k8s.api.core.v1.Node",
    status: true,
    status_on_create: true,
    selectable_fields: &["spec.unschedulable"],
    default: default::cluster::node,
    columns: print::cluster::NODE_COLUMNS,
    row: print::cluster::node,
    prepare: prepare::cluster::node,
    ..BASE
};

pub(super) const POD: Builtin = Builtin {
    kind: "Pod",
    plural: "pods",
    singular: "pod",
    short_names: &["po"],
    categories: &["all"],
    definition: "io.k8s.api.core.v1.Pod",
    status: true,
    generation: true,
    selectable_fields: &[
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    ],
    default: default::pod::pod,
    columns: print::pod::COLUMNS,
    row: print::pod::pod,
    prepare: prepare::pod::pod,
    ..BASE
};

pub(super) const POD_TEMPLATE: Builtin = Builtin {
    kind: "PodTemplate",
    plural: "podtemplates",
    singular: "podtemplate",
    definition: "io.k8s.api.core.v1.PodTemplate",
    generation: true,
    default: default::pod::pod_template,
    columns: print::pod::TEMPLATE_COLUMNS,
    row: print::pod::pod_template,
    ..BASE
};

pub(super) const REPLICATION_CONTROLLER: Builtin = Builtin {
    kind: "ReplicationController",
    plural: "replicationcontrollers",
    singular: "replicationcontroller",
    short_names: &["rc"],
    categories: &["all"],
    definition: "io.k8s.api.core.v1.ReplicationController",
    status: true,
    scale: true,
    generation: true,
    selectable_fields: &["status.replicas"],
    default: default::workload::replication_controller,
    columns: print::workload::REPLICA_SET_COLUMNS,
    row: print::workload::replication_controller,
    ..BASE
};

pub(super) const SERVICE: Builtin = Builtin {
    kind: "Service",
    plural: "services",
    singular: "service",
    short_names: &["svc"],
    categories: &["all"],
    definition: "io.k8s.api.core.v1.Service",
    status: true,
    selectable_fields: &["spec.clusterIP", "spec.type"],
    default: default::network::service,
    columns: print::network::SERVICE_COLUMNS,
    row: print::network::service,
    prepare: prepare::service::service,
    create_on_update: true,
    ..BASE
};

pub(super) const SERVICE_ACCOUNT: Builtin = Builtin {
    kind: "ServiceAccount",
    plural: "serviceaccounts",
    singular: "serviceaccount",
    short_names: &["sa"],
    definition: "io.k8s.api.core.v1.ServiceAccount",
    columns: print::meta::NAME_AND_AGE_COLUMNS,
    row: print::meta::name_and_age,
    prepare: prepare::cluster::service_account,
    ..BASE
};

pub(super) const EVENT: Builtin = Builtin {
    kind: "Event",
    plural: "events",
    singular: "event",
    short_names: &["ev"],
    definition: "io.k8s.api.core.v1.Event",
    selectable_fields: &[
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ],
    default: default::config::core_event,
    columns: print::event::COLUMNS,
    row: print::event::core,
    create_on_update: true,
    ..BASE
};

pub(super) const ENDPOINTS: Builtin = Builtin {
    kind: "Endpoints",
    plural: "endpoints",
    singular: "endpoints",
    short_names: &["ep"],
    definition: "io.k8s.api.core.v1.Endpoints",
    default: default::network::endpoints,
    columns: print::network::ENDPOINTS_COLUMNS,
    row: print::network::endpoints,
    create_on_update: true,
    ..BASE
};

pub(super) const PERSISTENT_VOLUME: Builtin = Builtin {
    kind: "PersistentVolume",
    plural: "persistentvolumes",
    singular: "persistentvolume",
    short_names: &["pv"],
    namespaced: false,
    definition: "io.k8s.api.core.v1.PersistentVolume",
    status: true,
    default: default::storage::persistent_volume,
    columns: print::storage::VOLUME_COLUMNS,
    row: print::storage::persistent_volume,
    prepare: prepare::storage::persistent_volume,
    ..BASE
};

pub(super) const PERSISTENT_VOLUME_CLAIM: Builtin = Builtin {
    kind: "PersistentVolumeClaim",
    plural: "persistentvolumeclaims",
    singular: "persistentvolumeclaim",
    short_names: &["pvc"],
    definition: "io.k8s.api.core.v1.PersistentVolumeClaim",
    status: true,
    default: default::storage::claim,
    columns: print::storage::CLAIM_COLUMNS,
    row: print::storage::claim,
    prepare: prepare::storage::claim,
    ..BASE
};

pub(super) const RESOURCE_QUOTA: Builtin = Builtin {
    kind: "ResourceQuota",
    plural: "resourcequotas",
    singular: "resourcequota",
    short_names: &["quota"],
    definition: "io.k8s.api.core.v1.ResourceQuota",
    status: true,
    default: default::config::resource_quota,
    columns: print::config::QUOTA_COLUMNS,
    row: print::config::resource_quota,
    ..BASE
};

pub(super) const LIMIT_RANGE: Builtin = Builtin {
    kind: "LimitRange",
    plural: "limitranges",
    singular: "limitrange",
    short_names: &["limits"],
    definition: "io.k8s.api.core.v1.LimitRange",
    default: default::config::limit_range,
    create_on_update: true,
    ..BASE
};
