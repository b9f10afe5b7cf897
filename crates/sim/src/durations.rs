//! How long things take, as distributions in one data file; what one of them takes follows from the seed and its name.

use std::ops::RangeInclusive;
use std::time::Duration;

use windlass_runtime::chance::Seed;

/// How long each step takes, in milliseconds from the least to the most.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Durations {
    /// The load balancer for the API of a cluster.
    pub load_balancer: [u64; 2],
    /// From the wish for a virtual machine until it is switched on.
    pub machine_create: [u64; 2],
    /// From being switched on until kubeadm begins.
    pub machine_boot: [u64; 2],
    /// `kubeadm init` on the first machine.
    pub kubeadm_init: [u64; 2],
    /// `kubeadm join` of a machine of the control plane.
    pub kubeadm_join_control_plane: [u64; 2],
    /// `kubeadm join` of a worker.
    pub kubeadm_join: [u64; 2],
    /// From registering until a node is ready.
    pub node_ready: [u64; 2],
    /// From being scheduled until a pod is ready.
    pub pod_start: [u64; 2],
    /// From the wish until a virtual machine is gone.
    pub machine_delete: [u64; 2],
}

impl Default for Durations {
    /// What is in `durations.json`.
    fn default() -> Self {
        serde_json::from_str(include_str!("../durations.json")).unwrap_or_else(|_| Self::all([0, 0]))
    }
}

impl Durations {
    /// The same for all.
    pub fn all(range: [u64; 2]) -> Self {
        Self {
            load_balancer: range,
            machine_create: range,
            machine_boot: range,
            kubeadm_init: range,
            kubeadm_join_control_plane: range,
            kubeadm_join: range,
            node_ready: range,
            pod_start: range,
            machine_delete: range,
        }
    }
}

/// How long this one takes: the same each time it is asked.
pub fn of(range: [u64; 2], seed: Seed, what: &str) -> Duration {
    let [least, most]: [u64; 2] = range;
    let range: RangeInclusive<u64> = least..=most.max(least);
    Duration::from_millis(seed.stream(what).range(*range.start()..range.end().saturating_add(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_file_can_be_read_and_has_no_empty_range() {
        let read: Durations = serde_json::from_str(include_str!("../durations.json")).unwrap();
        assert_eq!(read, Durations::default());
        assert!(read.machine_boot[0] > 0 && read.machine_boot[0] <= read.machine_boot[1]);
    }

    #[test]
    fn a_duration_is_in_its_range_and_the_same_each_time() {
        for name in ["a", "b", "c"] {
            let drawn = of([1_000, 2_000], Seed(7), name);
            assert_eq!(drawn, of([1_000, 2_000], Seed(7), name));
            assert!((1_000..=2_000).contains(&drawn.as_millis()));
        }
    }
}
