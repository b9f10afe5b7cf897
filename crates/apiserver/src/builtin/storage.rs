//! `storage.k8s.io`: how volumes come to be, and where they are attached. Stored only: nothing here provisions.

use super::{BASE, Builtin, default, print};

/// What all rows of this group share.
const GROUP: Builtin = Builtin { group: "storage.k8s.io", ..BASE };

pub(super) const STORAGE_CLASS: Builtin = Builtin {
    kind: "StorageClass",
    plural: "storageclasses",
    singular: "storageclass",
    short_names: &["sc"],
    namespaced: false,
    definition: "io.k8s.api.storage.v1.StorageClass",
    default: default::storage::storage_class,
    columns: print::storage::CLASS_COLUMNS,
    row: print::storage::storage_class,
    ..GROUP
};

pub(super) const VOLUME_ATTACHMENT: Builtin = Builtin {
    kind: "VolumeAttachment",
    plural: "volumeattachments",
    singular: "volumeattachment",
    namespaced: false,
    definition: "io.k8s.api.storage.v1.VolumeAttachment",
    status: true,
    unconditional_update: false,
    default: default::storage::volume_attachment,
    columns: print::storage::ATTACHMENT_COLUMNS,
    row: print::storage::attachment,
    ..GROUP
};

pub(super) const CSI_DRIVER: Builtin = Builtin {
    kind: "CSIDriver",
    plural: "csidrivers",
    singular: "csidriver",
    namespaced: false,
    definition: "io.k8s.api.storage.v1.CSIDriver",
    unconditional_update: false,
    default: default::storage::csi_driver,
    columns: print::storage::DRIVER_COLUMNS,
    row: print::storage::csi_driver,
    ..GROUP
};

pub(super) const CSI_NODE: Builtin = Builtin {
    kind: "CSINode",
    plural: "csinodes",
    singular: "csinode",
    namespaced: false,
    definition: "io.k8s.api.storage.v1.CSINode",
    unconditional_update: false,
    default: default::storage::csi_node,
    columns: print::storage::NODE_COLUMNS,
    row: print::storage::csi_node,
    ..GROUP
};
