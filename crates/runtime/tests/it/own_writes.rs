//! A key is not reconciled before the caches have seen what it wrote.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use windlass_runtime::runner::{Ctx, Options, Outcome, Runner};

use crate::stub::Stub;
use crate::world::{World, name, run_for, sleep, world};

/// Owners each make one child if they see none, in a world where events about children take `lag_seconds` to arrive.
/// Every second something pokes the owners. Returns how many children were made, and what each reconcile was told.
async fn children_made(world: &World, lag_seconds: u64, tell: bool) -> (usize, Vec<bool>) {
    let children = Stub::default();
    children.lag(Duration::from_secs(lag_seconds));
    world.stub.put("owner", json!({}));
    let watch = windlass_runtime::watch::Watch::<ConfigMap>::all(children.client());
    let cache = watch.cache();
    let options = Options { patience: Duration::from_secs(10), ..world.options() };
    let runner = Runner::new("test", world.watch(), options).watches(watch, |_| Vec::new());

    let (made, told) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(Vec::new())));
    let (children_count, answers) = (Arc::clone(&made), Arc::clone(&told));
    let reconcile = move |owner: Arc<ConfigMap>, ctx: Ctx<()>| {
        answers.lock().unwrap().push(ctx.caught_up());
        if ctx.caught_up() && cache.list().is_empty() {
            let mut made = children_count.lock().unwrap();
            *made += 1;
            let child = children.put(&format!("{}-{made}", name(&owner)), json!({}));
            if tell {
                ctx.wrote(&cache, &serde_json::from_value(child).unwrap());
            }
        }
        // A reconcile that fails after its write must wait for it all the same.
        async { Err::<Outcome, _>(std::fmt::Error) }
    };
    let poke = async {
        for n in 0..25 {
            sleep(1).await;
            world.stub.put("owner", json!({"data": {"n": n.to_string()}}));
        }
    };
    tokio::join!(run_for(runner, 30, reconcile), poke);
    let (made, told) = (*made.lock().unwrap(), told.lock().unwrap().clone());
    (made, told)
}

#[test]
fn a_stale_cache_makes_children_twice_when_nobody_is_told_of_the_first() {
    world(|world| async move {
        let (made, _) = children_made(&world, 5, false).await;
        assert!(made > 1, "or else the next test shows nothing");
    });
}

#[test]
fn a_reconciler_reads_its_own_writes() {
    world(|world| async move {
        let (made, told) = children_made(&world, 5, true).await;
        assert_eq!(made, 1);
        assert!(told.iter().all(|caught_up| *caught_up));
        let started = world.lines_with("started");
        assert!(started[1].starts_with("00:00:05"), "as soon as the event has arrived: {started:#?}");
    });
}

#[test]
fn a_cache_that_never_sees_the_write_is_not_waited_for_for_ever() {
    world(|world| async move {
        let (made, told) = children_made(&world, 1000, true).await;
        assert_eq!(made, 1);
        assert!(told.len() > 5, "{told:?}");
        assert!(told[0] && told[1..].iter().all(|caught_up| !caught_up), "told as long as it is so: {told:?}");
        let stale = world.lines_with("stale");
        assert!(stale[0].starts_with("00:00:10Z stale default/owner"), "{stale:#?}");
    });
}
