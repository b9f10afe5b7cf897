//! What must be so before a machine at the new version can join: certificates that outlive machines, and a workload cluster
//! whose configuration of kubeadm and of the kubelets is that of the new version. Each is read to see whether it is so, and made
//! so.

pub mod certificates;
pub mod kubeadm;
pub mod kubelet;
mod text;

use windlass_plan::roll::Preparation;

use super::Error;
use super::attempt::Attempt;
use super::wait::Patience;

/// Makes one thing as it should be.
pub async fn prepare(attempt: &Attempt<'_>, preparation: Preparation) -> Result<(), Error> {
    let of_workload = of_workload(attempt);
    match preparation {
        Preparation::KubeletConfig => of_workload.retry(|| kubelet::copy_config_map(attempt)).await,
        Preparation::KubeletConfigAccess => of_workload.retry(|| kubelet::let_read(attempt)).await,
        Preparation::NodesAccess => of_workload.retry(|| kubelet::let_get_nodes(attempt)).await,
        Preparation::KubeadmConfig => of_workload.retry(|| kubeadm::configure(attempt)).await,
    }
}

/// How long the API of the workload cluster may not answer.
fn of_workload(attempt: &Attempt<'_>) -> Patience {
    attempt.patience()
}
