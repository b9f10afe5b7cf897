//! How long things take, as distributions in one data file; what one of them takes follows from the seed and its name.
//!
//! Each is log-normal, as times of machines are: most are near the middle, a few take much longer, none takes less than nothing. A
//! distribution is told by its median and its 90th percentile.

use std::time::Duration;

use windlass_runtime::chance::Seed;

/// How long something takes, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// Half of them take less.
    pub p50: u64,
    /// Nine of ten take less.
    pub p90: u64,
}

/// How long each step takes.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Durations {
    /// The load balancer for the API of a cluster.
    pub load_balancer: Spread,
    /// From the wish for a virtual machine until it is switched on.
    pub machine_create: Spread,
    /// From being switched on until kubeadm begins.
    pub machine_boot: Spread,
    /// `kubeadm init` on the first machine.
    pub kubeadm_init: Spread,
    /// `kubeadm join` of a machine of the control plane.
    pub kubeadm_join_control_plane: Spread,
    /// `kubeadm join` of a worker.
    pub kubeadm_join: Spread,
    /// From registering until a node is ready.
    pub node_ready: Spread,
    /// From being scheduled until a pod is ready.
    pub pod_start: Spread,
    /// From the wish until a virtual machine is gone.
    pub machine_delete: Spread,
}

impl Default for Durations {
    /// What is in `durations.json`.
    fn default() -> Self {
        serde_json::from_str(include_str!("../durations.json")).unwrap_or_else(|_| Self::all(Spread::default()))
    }
}

impl Durations {
    /// The same for all.
    pub fn all(spread: Spread) -> Self {
        Self {
            load_balancer: spread,
            machine_create: spread,
            machine_boot: spread,
            kubeadm_init: spread,
            kubeadm_join_control_plane: spread,
            kubeadm_join: spread,
            node_ready: spread,
            pod_start: spread,
            machine_delete: spread,
        }
    }
}

impl Spread {
    /// Always the same.
    pub fn always(millis: u64) -> Self {
        Self { p50: millis, p90: millis }
    }
}

/// The 90th percentile of the normal distribution, in standard deviations.
const P90: f64 = 1.281_551_565_545;
/// Nothing is further from the middle than so many standard deviations: one of 740 would be.
const DEVIATIONS_MAX: f64 = 3.0;

/// How long this one takes: the same each time it is asked, and on every machine.
pub fn of(spread: Spread, seed: Seed, what: &str) -> Duration {
    if spread.p90 <= spread.p50 {
        return Duration::from_millis(spread.p50);
    }
    let mut chance = seed.stream(what);
    // The sum of twelve uniform numbers is as good as normal up to three deviations, and exact wherever it is computed.
    let normal = (0..12).map(|_| chance.f64()).sum::<f64>() - 6.0;
    let deviations = normal.clamp(-DEVIATIONS_MAX, DEVIATIONS_MAX) / P90;
    let factor = exp(ln(float(spread.p90) / float(spread.p50)) * deviations);
    Duration::from_millis(rounded(float(spread.p50) * factor))
}

/// The natural logarithm of a number from 1 on, by its series for the inverse hyperbolic tangent. The library's own may differ
/// in the last bit from system to system, and so could a timeline.
fn ln(x: f64) -> f64 {
    // Halved until the series converges fast; each half is worth ln 2.
    let (mut x, mut halves) = (x, 0.0);
    while x > 1.5 {
        (x, halves) = (x / 2.0, halves + 1.0);
    }
    let t = (x - 1.0) / (x + 1.0);
    let (mut power, mut sum) = (t, 0.0);
    for odd in [1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0] {
        (sum, power) = (sum + power / odd, power * t * t);
    }
    2.0 * sum + halves * std::f64::consts::LN_2
}

/// The exponential function, by its series around 0 after a division by 2¹⁰, squared ten times.
fn exp(x: f64) -> f64 {
    let x = x / 1024.0;
    let small = 1.0 + x * (1.0 + x / 2.0 * (1.0 + x / 3.0 * (1.0 + x / 4.0)));
    (0..10).fold(small, |power, _| power * power)
}

#[allow(clippy::cast_precision_loss, reason = "milliseconds of centuries fit into 53 bits")]
fn float(millis: u64) -> f64 {
    millis as f64
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and far below 2^53")]
fn rounded(millis: f64) -> u64 {
    millis.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_file_can_be_read_and_its_percentiles_are_in_order() {
        let read: Durations = serde_json::from_str(include_str!("../durations.json")).unwrap();
        assert_eq!(read, Durations::default());
        assert!(read.machine_boot.p50 > 0 && read.machine_boot.p50 < read.machine_boot.p90);
    }

    #[test]
    fn a_duration_is_the_same_each_time_and_as_spread_as_its_percentiles_say() {
        let spread = Spread { p50: 60_000, p90: 90_000 };
        let drawn = |name: usize| of(spread, Seed(7), &name.to_string()).as_millis();
        assert_eq!(drawn(1), drawn(1));
        let mut all: Vec<u128> = (0..10_000).map(drawn).collect();
        all.sort_unstable();
        let near = |found: u128, wanted: u128| found.abs_diff(wanted) < wanted / 50;
        assert!(near(all[5_000], 60_000) && near(all[9_000], 90_000), "{} {}", all[5_000], all[9_000]);
        assert!(near(all[1_000], 40_000), "as far below as above, in factors: {}", all[1_000]);
        // 60 s · (90/60)^(±3/1.2816)
        assert!(all[0] >= 23_000 && all[9_999] <= 155_500, "{} {}", all[0], all[9_999]);
        assert_eq!(of(Spread::always(5), Seed(7), "a"), Duration::from_millis(5));
    }

    #[test]
    fn the_series_are_as_good_as_the_functions_of_the_library() {
        for x in [1.0, 1.1, 1.49, 1.6, 2.0, 5.0, 40.0] {
            assert!((ln(x) - x.ln()).abs() < 1e-9, "{x}");
        }
        for x in [-3.0, -0.5, 0.0, 0.1, 1.0, 3.0] {
            assert!((exp(x) / x.exp() - 1.0).abs() < 1e-9, "{x}");
        }
    }
}
