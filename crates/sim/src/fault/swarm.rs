//! Scenarios by seed: a random subset of faults, each at a random rate, as simulators of databases have it; and a fleet
//! in which a few clusters have a fault each.
//!
//! Everything ends after a while, so that it can be asked whether all becomes well again.

use windlass_api::name::NamespacedName;
use windlass_runtime::chance::{Chance, Seed};

use super::kind::{
    EtcdFault, Fault, InfrastructureFault, LoadBalancerFault, Loss, MachineFault, NodeFault, Silence, WatchEnd,
};
use super::pattern::{Pattern, Whom};
use super::request::Requests;
use super::scenario::{Injection, Scenario, When};
use super::span::Span;
use crate::actor::Caller;

/// How long a swarm stings.
const LASTS_MINUTES: u64 = 40;

impl Scenario {
    /// The scenario of a seed: each sort of fault is in it with a probability of one third.
    pub fn swarm(seed: Seed) -> Self {
        let seed = seed.child("swarm");
        let sorts = (0..SORTS).filter(|sort| seed.stream(&format!("in {sort}")).below(3) == 0);
        let faults = sorts.map(|sort| injection(sort, &Whom::default(), &mut seed.stream(&format!("sort {sort}"))));
        Self { name: format!("swarm {seed}"), faults: faults.collect(), ..Self::default() }
    }

    /// The scenario of a fleet: a share of the clusters has one fault each, which is for nobody else.
    pub fn fleet(seed: Seed, clusters: &[NamespacedName], share: f64) -> Self {
        let seed = seed.child("fleet");
        let bitten = clusters.iter().filter(|cluster| seed.stream(&format!("bitten {cluster}")).f64() < share);
        let of = |cluster: &NamespacedName| {
            let mut chance = seed.stream(&format!("fault {cluster}"));
            let sort = OF_ONE_CLUSTER + chance.below(SORTS - OF_ONE_CLUSTER);
            injection(sort, &Whom::of(&cluster.to_string()), &mut chance)
        };
        Self { name: format!("fleet {seed}"), faults: bitten.map(of).collect(), ..Self::default() }
    }
}

/// How many sorts there are.
const SORTS: u64 = 20;
/// From this sort on they are about the clusters that they are told.
const OF_ONE_CLUSTER: u64 = 8;

fn injection(sort: u64, of: &Whom, chance: &mut Chance) -> Injection {
    let whom = of.clone();
    let clusters: Pattern = of.clusters.clone();
    let anybody = Requests::default();
    let fault = match sort {
        0 => {
            let code = pick(chance, [409, 429, 500, 503]);
            let on = Requests::to("write", "*").by(pick(chance, [Caller::Controllers, Caller::Upgrader]));
            Fault::Refusal { on, code, retry_after_seconds: Some(1).filter(|_| code == 429) }
        }
        1 => {
            let instead = pick(chance, [Loss::InternalError, Loss::GatewayTimeout, Loss::Reset]);
            Fault::LostAnswer { on: Requests::to("write", "*"), instead }
        }
        2 => Fault::Repetition { on: Requests::to("write", "*") },
        3 => Fault::Delay { on: anybody, least: Span::default(), most: Span::seconds(1 + chance.below(10)) },
        4 => {
            let how = pick(chance, [WatchEnd::Dropped, WatchEnd::Expired, WatchEnd::Stalled]);
            Fault::WatchEnds { on: anybody, how, after: Span::seconds(1 + chance.below(120)) }
        }
        5 => Fault::Lag { on: anybody, by: Span::seconds(1 + chance.below(20)) },
        6 => Fault::Coalescing { on: anybody, within: Span::seconds(1 + chance.below(10)) },
        7 => Fault::AnyOrder {},
        8 => Fault::Machine { of: whom, how: MachineFault::BootsLate { by: Span::minutes(1 + chance.below(15)) } },
        9 => Fault::Machine { of: whom, how: MachineFault::NeverBoots },
        10 => Fault::Machine { of: whom, how: MachineFault::Vanishes { after: Span::minutes(1 + chance.below(10)) } },
        11 => Fault::Node { of: whom, how: NodeFault::NotReady },
        12 => Fault::Node { of: whom, how: NodeFault::LateLabels { by: Span::minutes(1 + chance.below(5)) } },
        13 => Fault::Etcd { of: whom, how: EtcdFault::LeaderFlaps { every: Span::seconds(10 + chance.below(60)) } },
        14 => Fault::Etcd { of: whom, how: EtcdFault::RemovalUnanswered },
        15 => {
            Fault::Unreachable { clusters, on: anybody, how: pick(chance, [Silence::Refused, Silence::Unauthorized]) }
        }
        16 => Fault::LoadBalancer { clusters, how: LoadBalancerFault::DeadBackend },
        17 => Fault::LoadBalancer { clusters, how: LoadBalancerFault::Moves },
        18 => Fault::Infrastructure { of: whom, how: InfrastructureFault::Throttled },
        _ => Fault::FinalizerStays { of: whom },
    };
    let after = chance.below(LASTS_MINUTES / 2);
    let until = after + 1 + chance.below(LASTS_MINUTES - after);
    let when = When::between(Span::minutes(after), Span::minutes(until));
    // Of requests some, in hundredths; of machines one or two; of a network all, and of an order, too.
    let when = match sort {
        7 | 15..=17 => when,
        0..OF_ONE_CLUSTER => When { chance: Some(f64::from(1 + low(chance, 20)) / 100.0), ..when },
        _ => When { times: Some(1 + chance.below(2)), ..when },
    };
    Injection { fault, when }
}

fn low(chance: &mut Chance, bound: u64) -> u32 {
    u32::try_from(chance.below(bound)).unwrap_or_default()
}

fn pick<T: Copy, const N: usize>(chance: &mut Chance, of: [T; N]) -> T {
    of[usize::try_from(chance.below(N as u64)).unwrap_or_default()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_swarm_and_another_seed_another() {
        assert_eq!(Scenario::swarm(Seed(7)), Scenario::swarm(Seed(7)));
        let all: Vec<Scenario> = (0..300).map(|seed| Scenario::swarm(Seed(seed))).collect();
        assert!(all.windows(2).all(|pair| pair[0].faults != pair[1].faults));
        let sizes: Vec<usize> = all.iter().map(|scenario| scenario.faults.len()).collect();
        assert!(sizes.iter().min() < Some(&4) && sizes.iter().max() > Some(&9), "{sizes:?}");
        for scenario in all {
            assert_eq!(Scenario::from_yaml(&scenario.to_yaml()).unwrap(), scenario);
            assert!(scenario.faults.iter().all(|injection| injection.when.until.is_some()), "all ends");
        }
    }

    #[test]
    fn in_a_fleet_a_share_of_the_clusters_has_one_fault_each() {
        let clusters: Vec<NamespacedName> = (0..1_000).map(|n| format!("default/c-{n}").parse().unwrap()).collect();
        let fleet = Scenario::fleet(Seed(7), &clusters, 0.05);
        assert!((30..=70).contains(&fleet.faults.len()), "{}", fleet.faults.len());
        assert_eq!(fleet, Scenario::fleet(Seed(7), &clusters, 0.05));
        let sorts: std::collections::BTreeSet<&str> = fleet.faults.iter().map(|one| one.fault.id()).collect();
        assert!(sorts.len() > 5, "{sorts:?}");
    }
}
