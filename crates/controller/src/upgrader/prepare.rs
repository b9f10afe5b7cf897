//! What must be so before a machine at the new version can join: certificates that outlive machines, and a workload cluster
//! whose configuration of kubeadm and of the kubelets is that of the new version.

mod certificates;
pub mod kubeadm;
mod kubelet;
mod text;

use super::Error;
use super::attempt::Attempt;

/// Makes everything so. What is so already is not written.
pub async fn run(attempt: &Attempt<'_>) -> Result<(), Error> {
    certificates::own(attempt).await?;
    kubelet::configure(attempt).await?;
    // Last: from here on a machine that joins has the new version, so everything that it needs has to be there.
    kubeadm::configure(attempt).await
}
