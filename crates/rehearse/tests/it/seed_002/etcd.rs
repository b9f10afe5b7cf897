//! What kubeadm looks for and does not find.

use windlass_sim::fault::Span;

use super::{End, Row, action, check, delete};

const CLUSTER: &str = "default/my-tkc";

#[test]
fn a_kubelet_configuration_that_is_missing_is_named() {
    let config = delete(Some(CLUSTER), "v1", "ConfigMap", "kube-system/kubelet-config-1.15");
    let scenario = action("the configuration of kubelets is deleted", Span::default(), config);
    check(&Row {
        id: "F8",
        size: (1, 1),
        scenario,
        end: End::Failed,
        tolerated: &[],
        because: &["kubelet-config-1.15"],
    });
}
