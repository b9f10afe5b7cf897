//! The cells of `kubectl get`, one per column, as Kubernetes prints them.
//!
//! A server always fills in the wide columns too; kubectl leaves them out.

pub(super) mod meta;
