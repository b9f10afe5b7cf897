//! kube's `Api`: create, read, replace, delete, and lists in pages.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{DeleteParams, ListParams, PostParams, Preconditions, PropagationPolicy};
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::json;

use super::{cluster, config_map, named, refusal};

#[test]
fn a_client_is_made_from_the_server_itself() {
    cluster(|world| async move {
        let client = Client::new(world.server.clone(), "default");
        let version = client.apiserver_version().await.unwrap();
        assert_eq!((version.major.as_str(), version.minor.as_str()), ("1", "36"));
        let namespaces: Api<Namespace> = Api::all(client);
        let names: Vec<String> =
            namespaces.list(&ListParams::default()).await.unwrap().iter().map(ResourceExt::name_any).collect();
        assert_eq!(names, ["default", "kube-node-lease", "kube-public", "kube-system"]);
    });
}

#[test]
fn what_was_created_is_read_back_with_what_the_server_adds() {
    cluster(|world| async move {
        let maps = world.api::<ConfigMap>();
        let created = maps.create(&PostParams::default(), &config_map("a", &[("k", "v")])).await.unwrap();
        assert!(created.uid().is_some() && created.resource_version().is_some());
        assert_eq!(created.creation_timestamp().unwrap().0, world.clock.now());
        assert_eq!(maps.get("a").await.unwrap(), created);
        assert_eq!(maps.get_opt("b").await.unwrap(), None);
        assert_eq!(maps.get_metadata("a").await.unwrap().metadata, created.metadata);
        assert_eq!(refusal(maps.get("b").await).message, "configmaps \"b\" not found");

        let again = refusal(maps.create(&PostParams::default(), &config_map("a", &[])).await);
        assert!(again.is_already_exists(), "{again:?}");
    });
}

#[test]
fn names_are_generated_where_none_is_given() {
    cluster(|world| async move {
        let maps = world.api::<ConfigMap>();
        let mut map = config_map("", &[]);
        map.metadata.name = None;
        map.metadata.generate_name = Some("job-".into());
        let first = maps.create(&PostParams::default(), &map).await.unwrap().name_any();
        let second = maps.create(&PostParams::default(), &map).await.unwrap().name_any();
        assert!(first.starts_with("job-") && first.len() == 9, "{first}");
        assert_ne!(first, second);
    });
}

#[test]
fn a_replace_needs_the_version_that_it_replaces() {
    cluster(|world| async move {
        let maps = world.api::<ConfigMap>();
        let first = maps.create(&PostParams::default(), &config_map("a", &[("k", "1")])).await.unwrap();
        let mut second = first.clone();
        second.data = config_map("", &[("k", "2")]).data;
        let second = maps.replace("a", &PostParams::default(), &second).await.unwrap();
        assert_ne!(second.resource_version(), first.resource_version());

        let stale = refusal(maps.replace("a", &PostParams::default(), &first).await);
        assert!(stale.is_conflict(), "{stale:?}");
        assert_eq!(maps.get("a").await.unwrap(), second);
    });
}

#[test]
fn an_entry_is_made_once_and_then_changed() {
    cluster(|world| async move {
        let maps = world.api::<ConfigMap>();
        for value in ["1", "2"] {
            let entry = maps.entry("a").await.unwrap();
            let mut entry = entry.or_insert(|| config_map("a", &[]));
            entry.get_mut().data = config_map("", &[("k", value)]).data;
            entry.commit(&PostParams::default()).await.unwrap();
        }
        assert_eq!(maps.get("a").await.unwrap().data.unwrap()["k"], "2");
        assert_eq!((world.requests(&["POST"]), world.requests(&["PUT"])), (1, 1));
    });
}

#[test]
fn a_dry_run_answers_and_changes_nothing() {
    cluster(|world| async move {
        let maps = world.api::<ConfigMap>();
        let before = world.server.store().revision();
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        let imagined = maps.create(&dry, &config_map("a", &[("k", "v")])).await.unwrap();
        assert_eq!(imagined.data.unwrap()["k"], "v");
        assert_eq!(maps.get_opt("a").await.unwrap(), None);
        assert_eq!(world.server.store().revision(), before);
    });
}

#[test]
fn a_delete_with_preconditions_spares_another_object_of_the_name() {
    cluster(|world| async move {
        let maps = world.api::<ConfigMap>();
        let created = maps.create(&PostParams::default(), &config_map("a", &[])).await.unwrap();
        let only = |uid: Option<String>, resource_version: Option<String>| {
            DeleteParams::default().preconditions(Preconditions { uid, resource_version })
        };
        for wrong in [only(Some("other".into()), None), only(created.uid(), Some("1".into()))] {
            assert!(refusal(maps.delete("a", &wrong).await).is_conflict(), "{wrong:?}");
        }
        let gone = maps.delete("a", &only(created.uid(), created.resource_version())).await.unwrap();
        assert_eq!(gone.right().unwrap().details.unwrap().uid, created.uid().unwrap());
        assert!(refusal(maps.delete("a", &DeleteParams::default()).await).is_not_found());
    });
}

#[test]
fn a_collection_is_deleted_by_its_labels() {
    cluster(|world| async move {
        let maps = world.api::<ConfigMap>();
        for (name, colour) in [("a", "red"), ("b", "blue"), ("c", "red")] {
            let mut map = config_map(name, &[]);
            map.labels_mut().insert("colour".into(), colour.into());
            maps.create(&PostParams::default(), &map).await.unwrap();
        }
        let red = ListParams::default().labels("colour=red");
        maps.delete_collection(&DeleteParams::default(), &red).await.unwrap().left().unwrap();
        let left: Vec<String> =
            maps.list(&ListParams::default()).await.unwrap().iter().map(ResourceExt::name_any).collect();
        assert_eq!(left, ["b"]);
    });
}

#[test]
fn pages_show_one_moment_though_the_world_goes_on() {
    cluster(|world| async move {
        let maps = world.api::<ConfigMap>();
        for n in 0..7 {
            maps.create(&PostParams::default(), &config_map(&format!("m{n}"), &[])).await.unwrap();
        }
        let mut params = ListParams::default().limit(3);
        let mut pages = Vec::new();
        loop {
            let page = maps.list(&params).await.unwrap();
            pages.push((page.metadata.resource_version.clone(), page.metadata.remaining_item_count, page.items.len()));
            maps.create(&PostParams::default(), &config_map(&format!("z{}", pages.len()), &[])).await.unwrap();
            maps.delete(&format!("m{}", 7 - pages.len()), &DeleteParams::default()).await.unwrap();
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => break,
            }
        }
        let version = pages[0].0.clone();
        assert!(version.is_some());
        assert_eq!(pages, [(version.clone(), Some(4), 3), (version.clone(), Some(1), 3), (version, None, 1)]);
    });
}

#[test]
fn owned_objects_go_with_their_owner_unless_they_are_orphaned() {
    cluster(|world| async move {
        let maps = world.api::<ConfigMap>();
        for (owner, policy, left) in [
            ("background", PropagationPolicy::Background, false),
            ("foreground", PropagationPolicy::Foreground, false),
            ("orphan", PropagationPolicy::Orphan, true),
        ] {
            let parent = maps.create(&PostParams::default(), &config_map(owner, &[])).await.unwrap();
            let mut child = config_map(&format!("{owner}-child"), &[]);
            child.metadata.owner_references = Some(vec![parent.controller_owner_ref(&()).unwrap()]);
            maps.create(&PostParams::default(), &child).await.unwrap();
            let params = DeleteParams { propagation_policy: Some(policy), ..DeleteParams::default() };
            maps.delete(owner, &params).await.unwrap();
            let child = maps.get_opt(&child.name_any()).await.unwrap();
            assert_eq!(child.is_some(), left, "{owner}");
            assert!(child.is_none_or(|child| child.owner_references().is_empty()), "{owner}");
            assert_eq!(maps.get_opt(owner).await.unwrap(), None);
        }
    });
}

#[test]
fn a_deployment_gets_its_defaults_and_its_scale() {
    cluster(|world| async move {
        let deployments = world.api::<Deployment>();
        let deployment: Deployment = serde_json::from_value(json!({
            "metadata": {"name": "web"},
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "web", "image": "nginx"}]},
                },
            },
        }))
        .unwrap();
        let created = deployments.create(&PostParams::default(), &deployment).await.unwrap();
        let spec = created.spec.unwrap();
        assert_eq!(
            (spec.replicas, spec.revision_history_limit, created.metadata.generation),
            (Some(1), Some(10), Some(1))
        );
        assert_eq!(spec.template.spec.unwrap().restart_policy.as_deref(), Some("Always"));

        let mut scale = deployments.get_scale("web").await.unwrap();
        scale.spec.as_mut().unwrap().replicas = Some(3);
        deployments.replace_scale("web", &PostParams::default(), &scale).await.unwrap();
        let scaled = deployments.get("web").await.unwrap();
        assert_eq!((scaled.spec.unwrap().replicas, scaled.metadata.generation), (Some(3), Some(2)));
    });
}

#[test]
fn secrets_and_leases_keep_their_own_types_of_values() {
    cluster(|world| async move {
        let secret = Secret {
            metadata: named("s"),
            string_data: Some([("plain".to_owned(), "text".to_owned())].into()),
            ..Secret::default()
        };
        let secret = world.api::<Secret>().create(&PostParams::default(), &secret).await.unwrap();
        assert_eq!(secret.data.unwrap()["plain"].0, b"text");
        assert_eq!((secret.string_data, secret.type_.as_deref()), (None, Some("Opaque")));

        let mut lease = Lease { metadata: named("leader"), ..Lease::default() };
        let spec = lease.spec.get_or_insert_default();
        spec.holder_identity = Some("replica-0".into());
        spec.renew_time = Some(MicroTime(world.clock.now()));
        let leases = world.api::<Lease>();
        let held = leases.create(&PostParams::default(), &lease).await.unwrap();
        // Whoever read the lease before it was taken over does not get it.
        let mut taken = held.clone();
        taken.spec.as_mut().unwrap().holder_identity = Some("replica-1".into());
        leases.replace("leader", &PostParams::default(), &taken).await.unwrap();
        assert!(refusal(leases.replace("leader", &PostParams::default(), &held).await).is_conflict());
        assert_eq!(leases.get("leader").await.unwrap().spec.unwrap().holder_identity.as_deref(), Some("replica-1"));
    });
}
