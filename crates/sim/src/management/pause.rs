//! Who lets go of an object when its cluster is paused, and how others see that it has.
//!
//! Every controller of Cluster API begins with [`held`]: it says `Paused` on the object, for the generation that it has seen, and
//! from then on the controller writes nothing to it. Whoever waits for quiet waits for that condition on everything.
//!
//! That an object is *not* paused is said by [`write::status`](super::write::status), with whatever else its controller has to
//! say: a write of its own would double the cost of a machine.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde_json::{Value, json};
use windlass_api::annotation;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::{Condition, condition};
use windlass_runtime::runner::Outcome;

use super::conditions::{self, Fact};
use super::context::{Error, Turn, is_paused};
use super::write::{self, Writable};

const PAUSED: &str = "Paused";

/// Whether the object is to be left alone for this turn, and when to look again. Says so on the object first, if it does not
/// say so yet.
pub(super) async fn held<K: Writable>(
    turn: &Turn,
    object: &K,
    cluster: Option<&Cluster>,
) -> Result<Option<Outcome>, Error> {
    let Some(known) = object.said() else { return Ok(None) };
    let before = condition(known, PAUSED);
    let fact = fact(object, cluster);
    let (holds, generation) = (fact.holds(), object.metadata().generation);
    let said = before.is_some_and(|before| {
        before.status == fact.status.to_string()
            && before.message == fact.message
            && (!holds || before.observed_generation == generation)
    });
    if said || (before.is_none() && !holds) {
        return Ok(holds.then(Outcome::done));
    }
    let mut after = known.to_vec();
    conditions::set(&mut after, fact, generation, &turn.now());
    write::conditions(turn, object, &after).await?;
    // What is let loose goes on from what was just written.
    Ok(Some(if holds { Outcome::done() } else { Outcome::requeue_after(Duration::ZERO) }))
}

/// Why the object is paused, or that it is not.
fn fact<K: Writable>(object: &K, cluster: Option<&Cluster>) -> Fact {
    let of_cluster = cluster.is_some_and(|cluster| cluster.spec.paused == Some(true));
    let own = is_paused(object.metadata());
    let why = [
        of_cluster.then(|| "Cluster spec.paused is set to true".to_owned()),
        own.then(|| format!("{} has the {} annotation", object.called(), annotation::PAUSED)),
    ];
    let why: Vec<String> = why.into_iter().flatten().collect();
    if why.is_empty() {
        Fact::no(PAUSED, "NotPaused", "")
    } else {
        Fact { message: why.join(", "), ..Fact::yes(PAUSED, "Paused") }
    }
}

/// Puts it into a status that its controller writes: whoever does has not let go.
pub(super) fn deny(status: &mut Value, meta: &ObjectMeta, now: &Time) {
    let known = status.get("conditions").cloned().unwrap_or_else(|| json!([]));
    // What is no list of conditions is for the API to refuse.
    let Ok(mut all) = serde_json::from_value::<Vec<Condition>>(known) else { return };
    conditions::set(&mut all, Fact::no(PAUSED, "NotPaused", ""), meta.generation, now);
    status["conditions"] = json!(all);
}

#[cfg(test)]
mod tests {
    use windlass_api::kind::cluster_api::Machine;

    use super::*;

    fn check(cluster_paused: Option<bool>, annotated: bool, expected: Option<&str>) {
        let mut cluster = Cluster::default();
        cluster.spec.paused = cluster_paused;
        let mut machine = Machine::default();
        machine.metadata.annotations = annotated.then(|| [(annotation::PAUSED.name.to_owned(), String::new())].into());
        let found = fact(&machine, Some(&cluster));
        assert_eq!(found.holds().then_some(found.message.as_str()), expected);
    }

    #[test]
    fn the_reason_for_a_pause_is_the_cluster_the_object_or_both() {
        let (cluster, own) =
            ("Cluster spec.paused is set to true", "Machine has the cluster.x-k8s.io/paused annotation");
        check(None, false, None);
        check(Some(false), false, None);
        check(Some(true), false, Some(cluster));
        check(None, true, Some(own));
        check(Some(true), true, Some(&format!("{cluster}, {own}")));
    }

    #[test]
    fn the_annotation_of_a_cluster_holds_nothing_but_the_cluster() {
        let mut cluster = Cluster::default();
        cluster.metadata.annotations = Some([(annotation::PAUSED.name.to_owned(), String::new())].into());
        assert!(fact(&cluster, Some(&cluster)).holds());
        assert!(!fact(&Machine::default(), Some(&cluster)).holds());
    }
}
