//! Pods that cannot leave their nodes, or lose something by it.

use std::collections::BTreeMap;

use windlass_api::kind::cluster_api::Amount;

use super::evidence::{Budget, Evidence, Node, Pod};
use super::{Found, Risk, RiskId, Severity, are, count, parts, shown};

const IDS: [RiskId; 4] = [RiskId::PdbNever, RiskId::PdbAtLimit, RiskId::DrainLocalData, RiskId::DrainBarePod];

pub(super) fn check(evidence: &Evidence, found: &mut Found) {
    if !evidence.rolls.any() {
        return;
    }
    let (Some(pods), Some(nodes)) = (found.read_one(&IDS, &evidence.pods), found.read_one(&IDS, &evidence.nodes))
    else {
        return;
    };
    let replaced = nodes.iter().filter(|node| evidence.rolls.replaces(node.control_plane));
    let nodes: BTreeMap<&str, &Node> = replaced.map(|node| (node.name.as_str(), node)).collect();
    let drain = Drain { pods, nodes };
    budgets(evidence, &drain, found);
    scratch(&drain, found);
    local_volumes(evidence, &drain, found);
    bare(&drain, found);
}

/// What is drained.
struct Drain<'e> {
    /// All pods, of other nodes too.
    pods: &'e [Pod],
    /// The nodes that go, by name.
    nodes: BTreeMap<&'e str, &'e Node>,
}

impl<'e> Drain<'e> {
    /// The node that a pod has to leave; `None` if it stays, or goes without being asked.
    fn leaves(&self, pod: &Pod) -> Option<&'e Node> {
        let node = self.nodes.get(pod.node.as_deref()?)?;
        (!pod.stays && !pod.ended).then_some(node)
    }

    /// The pods that have to leave.
    fn leaving(&self) -> impl Iterator<Item = (&'e Pod, &'e Node)> {
        self.pods.iter().filter_map(|pod| Some((pod, self.leaves(pod)?)))
    }

    fn named<'n>(&self, names: &'n [String]) -> impl Iterator<Item = &'e Pod> + use<'n, 'e> {
        let pods = self.pods;
        names.iter().filter_map(move |name| pods.iter().find(|pod| pod.name == *name))
    }
}

fn budgets(evidence: &Evidence, drain: &Drain<'_>, found: &mut Found) {
    let budgets = found.read(&[RiskId::PdbNever, RiskId::PdbAtLimit], &evidence.budgets);
    let mut of_pod: BTreeMap<&str, Vec<&Budget>> = BTreeMap::new();
    for budget in budgets {
        for pod in &budget.pods {
            of_pod.entry(pod).or_default().push(budget);
        }
    }
    for (pod, node) in drain.leaving().filter(|(pod, _)| !pod.pending) {
        if let Some([one, two, ..]) = of_pod.get(pod.name.as_str()).map(Vec::as_slice) {
            found.raise(two_budgets(pod, node, one, two));
        }
    }
    for budget in budgets {
        let is_its_own = |pod: &&Pod| of_pod.get(pod.name.as_str()).is_some_and(|budgets| budgets.len() == 1);
        let pods = drain.named(&budget.pods).filter(is_its_own);
        let stuck: Vec<(&Pod, &Node)> = pods
            .filter(|pod| !pod.pending && (pod.not_ready.is_none() || !budget.lets_unready_go))
            .filter_map(|pod| Some((pod, drain.leaves(pod)?)))
            .collect();
        if let Some(first) = stuck.first() {
            let share = Share::of(budget, drain);
            found.risks.extend(never(budget, &share, &stuck, first).or_else(|| at_limit(budget, &share, drain, first)));
        }
    }
}

/// What a budget comes down to.
struct Share {
    /// How many pods there should be.
    expected: u32,
    /// How many must stay available.
    desired: u32,
    /// The field that says so.
    field: String,
}

impl Share {
    fn of(budget: &Budget, drain: &Drain<'_>) -> Self {
        let there = drain.named(&budget.pods).filter(|pod| !pod.ended).count();
        let expected = budget.expected.unwrap_or_else(|| u32::try_from(there).unwrap_or(u32::MAX));
        let (desired, field) = match (&budget.max_unavailable, &budget.min_available) {
            (Some(max), _) => {
                let gone = max.of_rounded_up(expected).unwrap_or_default();
                (expected.saturating_sub(gone), format!("maxUnavailable {}", text(max)))
            }
            (None, Some(min)) => {
                (min.of_rounded_up(expected).unwrap_or(expected), format!("minAvailable {}", text(min)))
            }
            // The default of Kubernetes.
            (None, None) => (1, "minAvailable 1".to_owned()),
        };
        Self { expected, desired, field }
    }
}

fn text(amount: &Amount) -> String {
    match amount {
        Amount::Count(count) => count.to_string(),
        Amount::Share(share) => share.clone(),
    }
}

/// How long a drain waits: for ever, where one of the nodes does.
fn waits(stuck: &[(&Pod, &Node)]) -> (Severity, String) {
    let timeouts: Option<Vec<u64>> = stuck.iter().map(|(_, node)| node.drain_timeout_seconds).collect();
    match timeouts.and_then(|all| all.into_iter().max()) {
        Some(seconds) => {
            (Severity::Risky, format!("the drain is given up after {seconds} s, and the pod goes with its node"))
        }
        None => (Severity::Blocks, "the drain has no time limit: it waits for ever".to_owned()),
    }
}

fn two_budgets(pod: &Pod, node: &Node, one: &Budget, two: &Budget) -> Risk {
    let (severity, waits) = waits(&[(pod, node)]);
    let (namespace, name) = parts(&two.name);
    Risk {
        severity,
        id: RiskId::PdbNever,
        object: format!("PodDisruptionBudget {}", one.name),
        message: format!(
            "Pod {} can never be evicted from {}: PodDisruptionBudget {} is for it too, and no pod with two is evicted",
            pod.name, node.name, two.name
        ),
        because: vec![waits],
        way_out: format!("kubectl -n {namespace} delete pdb {name}, or let its selector leave the pod out"),
    }
}

fn never(budget: &Budget, share: &Share, stuck: &[(&Pod, &Node)], first: &(&Pod, &Node)) -> Option<Risk> {
    let Share { expected, desired, field } = share;
    if *expected == 0 || desired < expected {
        return None;
    }
    let pods = usize::try_from(*expected).unwrap_or(usize::MAX);
    let (severity, waits) = waits(stuck);
    let others = stuck.len() - 1;
    let others = if others == 0 { String::new() } else { format!(" (nor can {others} more of its pods)") };
    let (pod, node) = first;
    let (namespace, name) = parts(&budget.name);
    let patch = match (&budget.max_unavailable, expected) {
        (Some(_), _) => r#"{"spec":{"maxUnavailable":1}}"#.to_owned(),
        (None, expected) => format!(r#"{{"spec":{{"minAvailable":{}}}}}"#, expected.saturating_sub(1)),
    };
    let way_out = format!("kubectl -n {namespace} patch pdb {name} --type=merge -p '{patch}'");
    let owner = pod.owner.as_deref().filter(|_| budget.max_unavailable.is_none());
    let way_out = owner.map_or_else(|| way_out.clone(), |owner| format!("{way_out}, or one replica more of {owner}"));
    let mut because = vec![format!("{desired} of {expected} pods must stay available, so 0 may ever go"), waits];
    because.extend(stuck.iter().skip(1).take(5).map(|(pod, node)| format!("Pod {} on {}", pod.name, node.name)));
    Some(Risk {
        severity,
        id: RiskId::PdbNever,
        object: format!("PodDisruptionBudget {}", budget.name),
        message: format!(
            "Pod {} can never be evicted from {}: the budget has {field} and there {} {}{others}",
            pod.name,
            node.name,
            are(pods),
            count(pods, "pod")
        ),
        because,
        way_out,
    })
}

fn at_limit(budget: &Budget, share: &Share, drain: &Drain<'_>, first: &(&Pod, &Node)) -> Option<Risk> {
    let there: Vec<&Pod> = drain.named(&budget.pods).filter(|pod| !pod.ended).collect();
    let healthy = there.iter().filter(|pod| pod.not_ready.is_none()).count();
    let desired = usize::try_from(share.desired).unwrap_or(usize::MAX);
    if healthy > desired {
        return None;
    }
    let unready = there.iter().filter_map(|pod| Some((pod, pod.not_ready.as_ref()?)));
    let mut because: Vec<String> =
        unready.take(5).map(|(pod, why)| format!("Pod {} is not ready: {why}", pod.name)).collect();
    if because.is_empty() {
        because.push(format!("{} of {} {} there", there.len(), share.expected, are(there.len())));
    }
    let (pod, node) = first;
    let (namespace, name) = parts(&budget.name);
    Some(Risk {
        severity: Severity::Risky,
        id: RiskId::PdbAtLimit,
        object: format!("PodDisruptionBudget {}", budget.name),
        message: format!(
            "it allows 0 disruptions: {} needs {desired} of {} healthy, and {healthy} {}; the drain of {} waits with Pod \
             {} until one more is",
            share.field,
            count(usize::try_from(share.expected).unwrap_or(usize::MAX), "pod"),
            are(healthy),
            node.name,
            pod.name
        ),
        because,
        way_out: format!("see to the pods that are not ready: kubectl -n {namespace} describe pdb {name}"),
    })
}

/// Volumes that are gone with the node, by who has the pods.
fn scratch(drain: &Drain<'_>, found: &mut Found) {
    let mut owners: BTreeMap<(&str, &str), Vec<&Pod>> = BTreeMap::new();
    for (pod, _) in drain.leaving().filter(|(pod, _)| !pod.scratch.is_empty()) {
        let owner = pod.owner.as_deref().unwrap_or(&pod.name);
        owners.entry((parts(&pod.name).0, owner)).or_default().push(pod);
    }
    for ((namespace, _), pods) in owners {
        let Some(first) = pods.first() else { continue };
        let names: Vec<&str> = pods.iter().map(|pod| pod.name.as_str()).collect();
        found.raise(Risk {
            severity: Severity::Info,
            id: RiskId::DrainLocalData,
            object: format!("Pod {}", first.name),
            message: format!(
                "what {} has in the emptyDir {} is deleted when its node is drained",
                if names.len() == 1 { "it".to_owned() } else { format!("each of {}", count(names.len(), "pod")) },
                shown(&first.scratch)
            ),
            because: if names.len() == 1 { Vec::new() } else { vec![format!("they are {}", shown(&names))] },
            way_out: format!(
                "nothing, if that is a cache; else a claim: spec.volumes of what makes it, in {namespace}"
            ),
        });
    }
}

/// Volumes that cannot follow their pod.
fn local_volumes(evidence: &Evidence, drain: &Drain<'_>, found: &mut Found) {
    let claims: Vec<(&Pod, &Node, &String)> =
        drain.leaving().flat_map(|(pod, node)| pod.claims.iter().map(move |claim| (pod, node, claim))).collect();
    if claims.is_empty() {
        return;
    }
    let volumes = found.read(&[RiskId::DrainLocalData], &evidence.volumes);
    for (pod, node, claim) in claims {
        let its_own = volumes.iter().filter(|volume| volume.claim.as_ref() == Some(claim));
        for volume in its_own {
            let Some(how) = &volume.on_node else { continue };
            found.raise(Risk {
                severity: Severity::Risky,
                id: RiskId::DrainLocalData,
                object: format!("Pod {}", pod.name),
                message: format!(
                    "its volume {} is a part of {} ({how}): it is lost with that machine, and the pod can start nowhere else",
                    volume.name, node.name
                ),
                because: vec![format!("PersistentVolumeClaim {claim} is bound to it")],
                way_out: format!("move the data of PersistentVolumeClaim {claim} to a storage class that nodes share"),
            });
        }
    }
}

fn bare(drain: &Drain<'_>, found: &mut Found) {
    for (pod, node) in drain.leaving().filter(|(pod, _)| pod.owner.is_none()) {
        let (namespace, name) = parts(&pod.name);
        found.raise(Risk {
            severity: Severity::Risky,
            id: RiskId::DrainBarePod,
            object: format!("Pod {}", pod.name),
            message: format!("nobody makes it again when {} is drained: no controller has it", node.name),
            because: vec!["a drained pod is deleted, and not moved".to_owned()],
            way_out: format!("kubectl -n {namespace} get pod {name} -o yaml, and make a Deployment of it"),
        });
    }
}
