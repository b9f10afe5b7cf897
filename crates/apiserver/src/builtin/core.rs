//! The core group: what every other group refers to.

use super::{BASE, Builtin, Verbs, default};

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
    ..BASE
};

pub(super) const CONFIG_MAP: Builtin = Builtin {
    kind: "ConfigMap",
    plural: "configmaps",
    singular: "configmap",
    short_names: &["cm"],
    definition: "io.k8s.api.core.v1.ConfigMap",
    ..BASE
};

pub(super) const SECRET: Builtin = Builtin {
    kind: "Secret",
    plural: "secrets",
    singular: "secret",
    definition: "io.k8s.api.core.v1.Secret",
    selectable_fields: &["type"],
    default: default::config::secret,
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
    ..BASE
};

pub(super) const POD_TEMPLATE: Builtin = Builtin {
    kind: "PodTemplate",
    plural: "podtemplates",
    singular: "podtemplate",
    definition: "io.k8s.api.core.v1.PodTemplate",
    generation: true,
    default: default::pod::pod_template,
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
    ..BASE
};

pub(super) const SERVICE_ACCOUNT: Builtin = Builtin {
    kind: "ServiceAccount",
    plural: "serviceaccounts",
    singular: "serviceaccount",
    short_names: &["sa"],
    definition: "io.k8s.api.core.v1.ServiceAccount",
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
    ..BASE
};

pub(super) const ENDPOINTS: Builtin = Builtin {
    kind: "Endpoints",
    plural: "endpoints",
    singular: "endpoints",
    short_names: &["ep"],
    definition: "io.k8s.api.core.v1.Endpoints",
    default: default::network::endpoints,
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
    ..BASE
};

pub(super) const LIMIT_RANGE: Builtin = Builtin {
    kind: "LimitRange",
    plural: "limitranges",
    singular: "limitrange",
    short_names: &["limits"],
    definition: "io.k8s.api.core.v1.LimitRange",
    default: default::config::limit_range,
    ..BASE
};
