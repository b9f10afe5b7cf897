//! What the programs of Jobs are told and say.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{AsyncReadExt, FutureExt};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::ResourceExt;
use kube::api::{ListParams, LogParams, PostParams};
use serde_json::json;
use windlass_runtime::chance::Seed;
use windlass_runtime::virtual_time::run_virtual;
use windlass_sim::door::Inside;
use windlass_sim::program::{Container, Exit, Programs};
use windlass_sim::world::World;

use crate::world::{base, minutes, settings};

/// Where programs run.
const SYSTEM: &str = "vmware-system-tkg";

/// Says what it was told, and one line more after a minute.
struct Chatty;

impl Programs for Chatty {
    fn run(&self, container: Container) -> BoxFuture<'static, Exit> {
        async move {
            container.log.write(&format!("{:?}\nwith {:?}", container.command, container.env));
            minutes(1).await;
            container.log.write("done");
            Exit { code: 0, message: "done".to_owned() }
        }
        .boxed()
    }
}

async fn job(world: &World) {
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "talk"},
        "spec": {"backoffLimit": 0, "template": {"spec": {"restartPolicy": "Never", "containers": [{
            "name": "c", "image": "talk", "command": ["talk"], "args": ["--to=$(WHOM)"],
            "env": [{"name": "WHOM", "value": "people"}],
        }]}}},
    });
    let api = Api::<Job>::namespaced(world.client(), SYSTEM);
    api.create(&PostParams::default(), &serde_json::from_value(job).unwrap()).await.unwrap();
}

fn talking<F: Future<Output = T>, T>(body: impl FnOnce(World, Api<Pod>, String) -> F) -> T {
    run_virtual(Seed(7), base(), |virtual_run| async move {
        let world = World::new(settings(virtual_run.clock)).await.unwrap();
        let doors = Arc::new(Inside { seed: Seed(7) });
        let told = async {
            job(&world).await;
            tokio::time::sleep(Duration::from_millis(500)).await;
            let pods = Api::<Pod>::namespaced(world.client(), SYSTEM);
            let name = pods.list(&ListParams::default()).await.unwrap().items[0].name_any();
            body(world.clone(), pods, name).await
        };
        tokio::select! {
            biased;
            told = told => told,
            () = world.run(Arc::new(Chatty), doors, std::future::pending()) => panic!("the World came to an end"),
        }
    })
    .unwrap()
}

const FIRST: &str = "[\"talk\", \"--to=people\"]\nwith {\"WHOM\": \"people\"}\n";

#[test]
fn what_a_program_says_can_be_read_as_it_is_said_and_afterwards() {
    talking(|world, pods, name| async move {
        assert_eq!(pods.logs(&name, &LogParams::default()).await.unwrap(), "", "it has not begun");
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(pods.logs(&name, &LogParams::default()).await.unwrap(), FIRST);
        let mut read = String::new();
        let follow = LogParams { follow: true, ..LogParams::default() };
        pods.log_stream(&name, &follow).await.unwrap().read_to_string(&mut read).await.unwrap();
        assert_eq!(read, format!("{FIRST}done\n"), "it ends with the pod");

        let last = LogParams { tail_lines: Some(1), timestamps: true, ..LogParams::default() };
        let last = pods.logs(&name, &last).await.unwrap();
        assert!(last.starts_with("2026-01-01T00:0") && last.ends_with("Z done\n"), "{last}");
        let since = LogParams { since_seconds: Some(20), ..LogParams::default() };
        assert_eq!(pods.logs(&name, &since).await.unwrap(), "done\n");
        let fork = Api::<Pod>::namespaced(world.fork(world.settings().clone()).client(), SYSTEM);
        assert_eq!(fork.logs(&name, &LogParams::default()).await.unwrap(), format!("{FIRST}done\n"));
    });
}

#[test]
fn a_log_that_there_is_not_is_refused_with_a_reason() {
    talking(|_, pods, name| async move {
        minutes(3).await;
        let refused = |params: LogParams| {
            let (pods, name) = (pods.clone(), name.clone());
            async move { pods.logs(&name, &params).await.unwrap_err().to_string() }
        };
        let other = LogParams { container: Some("other".to_owned()), ..LogParams::default() };
        let refusal = refused(other).await;
        assert!(refusal.contains(&format!("container other is not valid for pod {name}")), "{refusal}");
        let previous = LogParams { previous: true, ..LogParams::default() };
        let refusal = refused(previous).await;
        assert!(
            refusal.contains(&format!("previous terminated container \"c\" in pod \"{name}\" not found")),
            "{refusal}"
        );
        let gone = pods.logs("nobody", &LogParams::default()).await.unwrap_err().to_string();
        assert!(gone.contains("pods \"nobody\" not found"), "{gone}");
    });
}
