//! The kinds that packages are brought in by: a cluster gets them with its kapp-controller, and one that is made of objects before.

use kube::Client;

use super::Workload;
use crate::{catalogue, world};

impl Workload {
    /// Serves the kinds.
    pub async fn serve_packages(&self) -> Result<(), world::Error> {
        catalogue::furnish_packages(&Client::new(self.server().clone(), "default")).await
    }
}
