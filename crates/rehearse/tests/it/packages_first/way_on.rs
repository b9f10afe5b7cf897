//! A package hangs, and in the end somebody types what they are told: machines go on without it.

use super::*;

/// The command after the words that tell it, up to the end of its sentence.
fn command(message: &str) -> &str {
    let told = message.split_once("to let the machines go on without it: ").unwrap().1;
    told.split_once("; ").map_or(told, |(command, _)| command)
}

/// Types it: the two commands that are ever told, as kubectl makes requests of them.
async fn typed(world: &World, command: &str) {
    let words: Vec<&str> = command.split(' ').collect();
    match words.as_slice() {
        ["kubectl", "-n", "default", "patch", "cluster", "wl", "--type=merge", "-p", patch] => {
            change(world, serde_json::from_str(patch.trim_matches('\'')).unwrap()).await;
        }
        ["kubectl", "-n", "default", "annotate", "--overwrite", "cluster", "wl", annotation] => {
            let (key, value) = annotation.split_once('=').unwrap();
            change(world, json!({"metadata": {"annotations": {(key): value}}})).await;
        }
        other => panic!("nobody can type {other:?}"),
    }
}

#[test]
fn of_a_package_that_hangs_the_way_on_is_told_and_works_and_is_told_no_more() {
    for by in [HoldBy::Pause, HoldBy::Hooks] {
        let (_, complaints) = witnessed(Scenario::default(), by, created(), start::later(), |world| async move {
            fetches(&world, "v9.9.9").await;
            seconds(30).await;
            upgrade(&world).await;
            seconds(1500).await;
            assert_eq!(told(&world, "Stalled").await[0], "False");
            seconds(600).await;
            let [stalled, _, message] = told(&world, "Stalled").await;
            assert_eq!((stalled.as_str(), machines(&world, NEW_KUBERNETES).await), ("True", 0), "{message}");

            typed(&world, command(&message)).await;
            seconds(60).await;
            let [stalled, _, message] = told(&world, "Stalled").await;
            assert_eq!(stalled, "True", "the package is not better for it");
            assert!(!message.contains("go on without"), "{message}");
            rolled(&world, NEW_KUBERNETES).await;
            let [ready, reason, message] = told(&world, "PackagesReady").await;
            assert_eq!([ready.as_str(), reason.as_str()], ["False", "PackageFailed"], "{message}");

            // Machines are there. When the package is repaired, all is as it should be.
            fetches(&world, "v1.9.0_vmware.2-tkg.1-advanced").await;
            seconds(900).await;
            assert_eq!(told(&world, "PackagesReady").await[0], "True");
            assert_eq!(told(&world, "Stalled").await[0], "False");
            assert_eq!(package(&world, "antrea").await, "1.9.0+vmware.2-tkg.1-advanced ReconcileSucceeded");
            assert!(!found(&world).await.spec.paused.unwrap_or_default());
        });
        let seen = complaints.first().map(String::as_str).unwrap_or_default();
        assert!(seen.starts_with("the first machine of v1.25.7+vmware.2 is there, and "), "{by}: {complaints:#?}");
    }
}
