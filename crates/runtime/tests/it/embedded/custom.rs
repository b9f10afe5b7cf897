//! A custom resource as controllers define it: derived from a Rust type.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::watcher;
use kube::{Api, CustomResourceExt, discovery};
use serde_json::json;

use super::fleet::{self, Fleet, FleetStatus, fleet};
use super::{Cluster, Seen, cluster, refusal};
use crate::world::sleep;

fn definitions(world: &Cluster) -> Api<CustomResourceDefinition> {
    Api::all(world.client())
}

#[test]
fn a_kind_is_served_once_its_definition_is_established_and_not_before() {
    cluster(|world| async move {
        let fleets = world.api::<Fleet>();
        assert_eq!(refusal(fleets.list(&ListParams::default()).await).code, 404);
        fleet::define(&world.client()).await;
        assert_eq!(fleets.list(&ListParams::default()).await.unwrap().items, []);

        let group = discovery::group(&world.client(), "test.windlass.dev").await.unwrap();
        let (resource, capabilities) = group.recommended_kind("Fleet").unwrap();
        assert_eq!(resource.plural, "fleets");
        let mut subresources: Vec<String> = capabilities.subresources.into_iter().map(|(sub, _)| sub.plural).collect();
        subresources.sort();
        assert_eq!(subresources, ["scale", "status"]);
    });
}

#[test]
fn objects_get_defaults_and_are_validated_by_the_derived_schema() {
    cluster(|world| async move {
        fleet::define(&world.client()).await;
        let fleets = world.api::<Fleet>();
        let resource = ApiResource::erase::<Fleet>(&());
        let dynamic: Api<DynamicObject> = Api::default_namespaced_with(world.client(), &resource);
        let sparse = DynamicObject::new("a", &resource).data(json!({"spec": {"count": 2}}));
        dynamic.create(&PostParams::default(), &sparse).await.unwrap();
        assert_eq!(fleets.get("a").await.unwrap().spec.port, "home", "the default of the derived schema");

        let broken = DynamicObject::new("b", &resource).data(json!({"spec": {"count": "many"}}));
        let why = refusal(dynamic.create(&PostParams::default(), &broken).await);
        assert_eq!((why.code, why.details.unwrap().causes[0].field.as_str()), (422, "spec.count"));
        let why = refusal(fleets.create(&PostParams::default(), &fleet("b", 101)).await);
        assert!(why.message.contains("should be less than or equal to 100"), "{}", why.message);
    });
}

#[test]
fn the_status_is_written_apart_from_the_rest() {
    cluster(|world| async move {
        fleet::define(&world.client()).await;
        let fleets = world.api::<Fleet>();
        let mut sent = fleet("a", 2);
        sent.status = Some(FleetStatus { made: 9, observed_generation: 9 });
        let created = fleets.create(&PostParams::default(), &sent).await.unwrap();
        assert_eq!((created.status.clone(), created.metadata.generation), (None, Some(1)));

        let mut changed = created.clone();
        changed.spec.count = 50;
        changed.status = Some(FleetStatus { made: 1, observed_generation: 1 });
        let reported = fleets.replace_status("a", &PostParams::default(), &changed).await.unwrap();
        assert_eq!((reported.spec.count, reported.status.clone()), (2, changed.status.clone()));
        assert_eq!(reported.metadata.generation, Some(1));

        let mut changed = reported.clone();
        (changed.spec.count, changed.status) = (3, None);
        let changed = fleets.replace("a", &PostParams::default(), &changed).await.unwrap();
        assert_eq!((changed.spec.count, changed.status, changed.metadata.generation), (3, reported.status, Some(2)));

        let scale = fleets.get_scale("a").await.unwrap();
        assert_eq!((scale.spec.unwrap().replicas, scale.status.unwrap().replicas), (Some(3), 1));
    });
}

#[test]
fn a_watcher_selects_by_a_field_that_the_definition_makes_selectable() {
    cluster(|world| async move {
        fleet::define(&world.client()).await;
        let fleets = world.api::<Fleet>();
        let away = Seen::watch(fleets.clone(), watcher::Config::default().fields("spec.port=away"));
        fleet::create(&world.client(), &fleet("a", 0)).await;
        let port = |port: &str| Patch::Merge(json!({"spec": {"port": port}}));
        fleets.patch("a", &PatchParams::default(), &port("away")).await.unwrap();
        fleets.patch("a", &PatchParams::default(), &port("home")).await.unwrap();
        sleep(1).await;
        assert_eq!(away.take(), ["init", "done", "applied a", "deleted a"]);
    });
}

#[test]
fn a_definition_takes_its_objects_along_and_watchers_see_them_go() {
    cluster(|world| async move {
        fleet::define(&world.client()).await;
        fleet::create(&world.client(), &fleet("a", 0)).await;
        let seen = Seen::watch(world.api::<Fleet>(), watcher::Config::default());
        sleep(1).await;
        definitions(&world).delete(Fleet::crd_name(), &DeleteParams::default()).await.unwrap();
        sleep(1).await;
        assert_eq!(seen.take()[..4], ["init", "listed a", "done", "deleted a"]);
        assert!(definitions(&world).get_opt(Fleet::crd_name()).await.unwrap().is_none());
        assert_eq!(refusal(world.api::<Fleet>().get("a").await).code, 404);
        // And back again: nothing of the first life is left.
        fleet::define(&world.client()).await;
        assert_eq!(world.api::<Fleet>().list(&ListParams::default()).await.unwrap().items.len(), 0);
        fleet::create(&world.client(), &fleet("b", 0)).await;
        sleep(60).await;
        let seen = seen.take();
        assert_eq!(
            seen.last().map(String::as_str),
            Some("applied b"),
            "the watcher has found the kind again: {seen:?}"
        );
    });
}

#[test]
fn printer_columns_of_the_derived_definition_are_kept() {
    cluster(|world| async move {
        fleet::define(&world.client()).await;
        let definition = definitions(&world).get(Fleet::crd_name()).await.unwrap();
        let version = &definition.spec.versions[0];
        assert_eq!(version.additional_printer_columns.as_ref().unwrap()[0].name, "Made");
        assert_eq!(definition.status.unwrap().accepted_names.unwrap().short_names, Some(vec!["fl".to_owned()]));
        assert_eq!(definition.metadata.managed_fields.unwrap()[0].manager.as_deref(), Some("test"));
    });
}
