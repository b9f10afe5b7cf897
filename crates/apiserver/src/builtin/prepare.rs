//! What a server decides whatever the user says, and what it adds to an object as it takes it in.
//!
//! On a create the object has its name, uid and creationTimestamp already. Times come from there: nothing here looks at a
//! clock.

pub(super) mod cluster;
pub(super) mod pod;
pub(super) mod service;
pub(super) mod storage;
pub(super) mod workload;
