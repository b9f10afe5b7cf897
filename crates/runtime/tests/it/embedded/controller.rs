//! kube's `Controller` with `owns` and `watches`, its `finalizer`, and requeues, under a paused clock.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::controller::Action;
use kube::runtime::finalizer::{Event, finalizer};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::{Controller, watcher};
use kube::{Api, Resource, ResourceExt};
use serde_json::json;

use super::fleet::{self, Fleet, fleet};
use super::{Cluster, cluster, config_map, named};
use crate::world::sleep;

#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct Failed(#[from] kube::runtime::finalizer::Error<kube::Error>);

/// What happened, in words.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    fn note(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

struct Context {
    world: Cluster,
    diary: Diary,
}

/// Has one config map for each fleet, and puts it back when it goes.
async fn reconcile(fleet: Arc<Fleet>, context: Arc<Context>) -> Result<Action, Failed> {
    let fleets = context.world.api::<Fleet>();
    let step = |event| async {
        match event {
            Event::Apply(fleet) => apply(&fleet, &context).await,
            Event::Cleanup(fleet) => {
                context.diary.note(format!("cleanup {}", fleet.name_any()));
                Ok(Action::await_change())
            }
        }
    };
    Ok(finalizer(&fleets, "test.windlass.dev/controller", fleet, step).await?)
}

async fn apply(fleet: &Fleet, context: &Context) -> kube::Result<Action> {
    let at = context.world.clock.now();
    context.diary.note(format!("{at} apply {}", fleet.name_any()));
    let metadata = json!({"name": fleet.name_any(), "ownerReferences": [fleet.controller_owner_ref(&())]});
    let member =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"port": fleet.spec.port}});
    let members = context.world.api::<ConfigMap>();
    members.patch(&fleet.name_any(), &PatchParams::apply("controller").force(), &Patch::Apply(member)).await?;
    Ok(Action::requeue(Duration::from_secs(3600)))
}

fn start(world: &Cluster) -> Diary {
    let diary = Diary::default();
    let (client, context) = (world.client(), Context { world: world.clone(), diary: diary.clone() });
    let by_name = |secret: Secret| Some(ObjectRef::new(&secret.name_any()).within("default"));
    let controller = Controller::new(Api::<Fleet>::all(client.clone()), watcher::Config::default())
        .owns(Api::<ConfigMap>::all(client.clone()), watcher::Config::default())
        .watches(Api::<Secret>::all(client), watcher::Config::default(), by_name)
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_secs(5)), Arc::new(context));
    tokio::spawn(controller.for_each(|_| async {}));
    diary
}

#[test]
fn a_controller_finalizes_owns_watches_and_requeues() {
    cluster(|world| async move {
        fleet::define(&world.client()).await;
        fleet::create(&world.client(), &fleet("a", 1)).await;
        let diary = start(&world);
        let (fleets, members) = (world.api::<Fleet>(), world.api::<ConfigMap>());
        sleep(10).await;
        assert!(!diary.take().is_empty());
        assert_eq!(fleets.get("a").await.unwrap().finalizers(), ["test.windlass.dev/controller"]);
        assert_eq!(members.get("a").await.unwrap().data.unwrap()["port"], "home");

        // Owned: what is deleted comes back.
        members.delete("a", &DeleteParams::default()).await.unwrap();
        sleep(10).await;
        assert!(!diary.take().is_empty());
        assert!(members.get_opt("a").await.unwrap().is_some());

        // Watched.
        let secret = Secret { metadata: named("a"), ..Secret::default() };
        world.api::<Secret>().create(&PostParams::default(), &secret).await.unwrap();
        sleep(10).await;
        assert_eq!(diary.take().len(), 1);

        // Nothing is left to do, so that the next one is the requeue.
        let before = world.server.store().revision();
        sleep(3000).await;
        assert_eq!(diary.take(), Vec::<String>::new());
        sleep(4000).await;
        assert_eq!(diary.take().len(), 1);
        assert_eq!(world.server.store().revision(), before, "applying the same again is no write");

        // The end: cleaned up, and what was owned is collected.
        fleets.delete("a", &DeleteParams::default()).await.unwrap();
        sleep(10).await;
        assert_eq!(diary.take(), ["cleanup a"]);
        assert!(fleets.get_opt("a").await.unwrap().is_none());
        assert!(members.get_opt("a").await.unwrap().is_none());
    });
}

#[test]
fn a_controller_keeps_up_with_many_objects() {
    cluster(|world| async move {
        fleet::define(&world.client()).await;
        start(&world);
        for n in 0..100 {
            fleet::create(&world.client(), &fleet(&format!("f-{n}"), 1)).await;
        }
        let stranger = config_map("stranger", &[]);
        world.api::<ConfigMap>().create(&PostParams::default(), &stranger).await.unwrap();
        sleep(60).await;
        assert_eq!(world.server.store().count("configmaps"), 101);
        // An hour of waiting, watches that are resumed, and no further write but none.
        let before = world.server.store().revision();
        sleep(3000).await;
        assert_eq!(world.server.store().revision(), before);
    });
}
