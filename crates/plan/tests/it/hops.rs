//! The way over several minors, walked machine by machine, and judged by rules that are written down here a second time.

use proptest::prelude::*;
use windlass_api::version::KubernetesVersion;
use windlass_plan::resolve::{Hop, Position, Refusal, hops};

/// Minor and patch: all that the rules speak about.
type Short = (u64, u64);

fn full((minor, patch): Short) -> KubernetesVersion {
    format!("v1.{minor}.{patch}+vmware.1-guest.1").parse().unwrap()
}

fn short(version: &KubernetesVersion) -> Short {
    let mut numbers = version.as_str().trim_start_matches("v1.").split('+').next().unwrap().split('.');
    let mut next = || numbers.next().unwrap().parse().unwrap();
    (next(), next())
}

/// How far a kubelet may be behind.
fn allowance(kubelet: Short) -> u64 {
    if kubelet.0 >= 25 { 3 } else { 2 }
}

/// A cluster, machine by machine.
struct Machines {
    api_servers: Vec<Short>,
    workers: Vec<Short>,
}

impl Machines {
    fn new(api_servers: Short, workers: Short) -> Self {
        Self { api_servers: vec![api_servers; 3], workers: vec![workers; 2] }
    }

    /// V1, V2, V3, at this moment.
    fn check(&self) -> Result<(), String> {
        let newest = self.api_servers.iter().map(|it| it.0).max().unwrap();
        let oldest = self.api_servers.iter().map(|it| it.0).min().unwrap();
        if newest - oldest > 1 {
            return Err(format!("V3: API servers of 1.{oldest} and 1.{newest}"));
        }
        for kubelet in &self.workers {
            if kubelet.0 > oldest {
                return Err(format!("V1: a kubelet of 1.{} reaches an API server of 1.{oldest}", kubelet.0));
            }
            if kubelet.0 + allowance(*kubelet) < newest {
                return Err(format!("V2: a kubelet of 1.{} reaches an API server of 1.{newest}", kubelet.0));
            }
        }
        Ok(())
    }

    /// One update: the control plane one machine after the other, then the workers, if it is theirs, too.
    fn walk(&mut self, to: Short, workers: bool) -> Result<(), String> {
        if self.api_servers.iter().any(|at| *at != to) {
            let late = self.workers.iter().find(|kubelet| kubelet.0 + allowance(**kubelet) < to.0);
            if let Some(kubelet) = late {
                return Err(format!("V7: a step to 1.{} begins while a kubelet has 1.{}", to.0, kubelet.0));
            }
        }
        for index in 0..self.api_servers.len() {
            let from = std::mem::replace(&mut self.api_servers[index], to);
            if to < from || to.0 > from.0 + 1 {
                return Err(format!("V6: {from:?} is replaced by {to:?}"));
            }
            self.check()?;
        }
        for index in 0..self.workers.len() {
            if workers {
                self.workers[index] = to;
            }
            self.check()?;
        }
        Ok(())
    }
}

/// The rules that Cluster API has for an upgrade plan.
fn is_a_plan(from: Short, workers: Short, to: Short, hops: &[Hop<'_, KubernetesVersion>]) -> Result<(), String> {
    let all: Vec<Short> = hops.iter().map(|hop| short(hop.release)).collect();
    let control_plane: Vec<Short> = all.iter().copied().filter(|at| *at != from).collect();
    let rolled: Vec<Short> = hops.iter().filter(|hop| hop.workers).map(|hop| short(hop.release)).collect();
    if all.windows(2).any(|pair| pair[0] >= pair[1]) {
        return Err(format!("not ascending: {all:?}"));
    }
    if from != to && (control_plane.last() != Some(&to) || rolled.last() != Some(&to)) {
        return Err(format!("does not end at {to:?}: {all:?}, workers {rolled:?}"));
    }
    for minor in from.0 + 1..=to.0 {
        if !control_plane.iter().any(|at| at.0 == minor) {
            return Err(format!("1.{minor} is left out: {control_plane:?}"));
        }
    }
    let mut at = workers;
    for step in rolled {
        if step.0 > at.0 + 3 {
            return Err(format!("workers would go from {at:?} to {step:?}"));
        }
        at = step;
    }
    Ok(())
}

/// Whether some list with fewer replacements of workers would keep the skew rules as well. Tried out, not reasoned.
fn fewer_would_do(from: Short, workers: Short, hops: &[Hop<'_, KubernetesVersion>]) -> bool {
    let rolls: Vec<usize> = (0..hops.len()).filter(|index| hops[*index].workers).collect();
    let inner = rolls.len().saturating_sub(1);
    let stations = hops.len().saturating_sub(1);
    (0..1u32 << stations).filter(|set| (set.count_ones() as usize) < inner).any(|set| {
        let mut machines = Machines::new(from, workers);
        hops.iter().enumerate().all(|(index, hop)| {
            let rolled = index == stations || set & (1 << index) != 0;
            machines.walk(short(hop.release), rolled).is_ok()
        })
    })
}

/// Some patches of nearly every minor, and what of it a cluster is and should be.
fn case() -> impl Strategy<Value = (Vec<Short>, Short, Short, Short)> {
    let patches = || prop::collection::btree_set(0..20u64, 1..4);
    let patches = prop_oneof![1 => Just(std::collections::BTreeSet::new()), 15 => patches()];
    (15..30u64, prop::collection::vec(patches, 1..9)).prop_flat_map(|(first, minors)| {
        let rows = minors.iter().enumerate();
        let releases: Vec<Short> =
            rows.flat_map(|(row, patches)| patches.iter().map(move |patch| (first + row as u64, *patch))).collect();
        let minor = first..first + minors.len() as u64;
        let others = (any::<prop::sample::Index>(), any::<bool>());
        (Just(releases), (minor, 0..20u64), (0..4u64, 0..20u64), others).prop_map(
            |(mut releases, from, (behind, patch), (index, known))| {
                let workers = from.min((from.0 - behind, patch));
                if known {
                    releases.push(from);
                }
                let to = if releases.is_empty() { from } else { *index.get(&releases) };
                (releases, from, workers, to)
            },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, max_global_rejects: 8000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_way_keeps_the_rules_at_every_point((releases, from, workers, to) in case()) {
        // A cluster that breaks the rules already is another story.
        prop_assume!(Machines::new(from, workers).check().is_ok());
        let catalogue: Vec<KubernetesVersion> = releases.iter().copied().map(full).collect();
        let (control_plane, kubelets) = (full(from), full(workers));
        let position = Position { control_plane: &control_plane, workers: Some(&kubelets) };
        match hops(position, &full(to), &catalogue) {
            Ok(hops) => {
                prop_assert!(to >= from);
                prop_assert_eq!(is_a_plan(from, workers, to, &hops), Ok(()));
                let mut machines = Machines::new(from, workers);
                for hop in &hops {
                    prop_assert_eq!(machines.walk(short(hop.release), hop.workers), Ok(()), "{:?}", hops);
                }
                prop_assert!(machines.workers.iter().all(|at| *at == to), "all end at {:?}: {:?}", to, hops);
                prop_assert!(!fewer_would_do(from, workers, &hops), "{:?}", hops);
            }
            Err(Refusal::Downgrade { .. }) => prop_assert!(to < from),
            Err(Refusal::NoPath { missing, .. }) => {
                let minor = missing.minor;
                let usable = |at: &Short| at.0 == minor && *at >= from && *at < to;
                prop_assert!(minor >= from.0 && minor < to.0);
                prop_assert!(!releases.iter().any(usable), "1.{} is there", minor);
            }
            Err(Refusal::NoRelease { .. }) => prop_assert!(!releases.contains(&to)),
            Err(other) => prop_assert!(false, "{}", other),
        }
    }
}

#[test]
fn the_rules_written_down_here_can_be_broken() {
    let walk = |from, workers, to, rolled| Machines::new(from, workers).walk(to, rolled).unwrap_err();
    assert!(walk((15, 0), (15, 0), (17, 0), true).starts_with("V6"));
    assert!(walk((17, 0), (15, 0), (18, 0), true).starts_with("V7"));
    assert!(walk((17, 1), (17, 1), (17, 0), true).starts_with("V6"));
    let check = |api_servers: [u64; 2], kubelet| {
        let api_servers = api_servers.map(|minor| (minor, 0)).into();
        Machines { api_servers, workers: vec![(kubelet, 0)] }.check().unwrap_err()
    };
    assert!(check([17, 16], 17).starts_with("V1"));
    assert!(check([18, 18], 15).starts_with("V2"));
    assert!(check([16, 18], 16).starts_with("V3"));
}
