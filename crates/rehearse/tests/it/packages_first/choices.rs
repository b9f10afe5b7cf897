//! What people chose for a cluster stays over an upgrade: another network, values, packages of their own, and such as have left the
//! template.

use windlass_api::kind::release::{ClusterBootstrapTemplate, TanzuKubernetesRelease};

use super::*;

/// A cluster with another network, with values for a package, and with a package of its own. Made once.
fn created_by_choice() -> &'static World {
    static CREATED: OnceLock<World> = OnceLock::new();
    CREATED.get_or_init(|| {
        play(HoldBy::Pause, &empty(), start::founded(), |world| async move {
            offer_own(&world).await;
            let chosen: ClusterBootstrap = serde_json::from_value(json!({
                "metadata": {"name": "wl", "annotations": {"tkg.tanzu.vmware.com/add-missing-fields-from-tkr": OLD}},
                "spec": {
                    "cni": {"refName": "calico*"},
                    "additionalPackages": [
                        {
                            "refName": "metrics-server.tanzu.vmware.com.0.6.2+vmware.1-tkg.1",
                            "valuesFrom": {"inline": {"deployment": {"updateStrategy": "Recreate"}}},
                        },
                        {"refName": "own.example.com.1.0.0"},
                    ],
                },
            }))
            .unwrap();
            Api::default_namespaced(world.client()).create(&PostParams::default(), &chosen).await.unwrap();
            cluster(&world).await;
            ready(&world).await;
            rolled(&world, "v1.24.9+vmware.1").await;
            seconds(600).await;
        })
    })
}

/// A package that is in no release.
async fn offer_own(world: &World) {
    let notes = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "notes", "namespace": "default"}});
    let package: Package = serde_json::from_value(json!({
        "metadata": {"name": "own.example.com.1.0.0"},
        "spec": {"refName": "own.example.com", "version": "1.0.0", "template": {"spec": {
            "fetch": [{"inline": {"paths": {"config.yaml": notes.to_string()}}}],
            "template": [{"ytt": {}}], "deploy": [{"kapp": {}}],
        }}},
    }))
    .unwrap();
    let packages: Api<Package> = Api::namespaced(world.client(), "tkg-system");
    packages.create(&PostParams::default(), &package).await.unwrap();
}

/// The template of the new release has neither of the two; the release itself lacks the second.
async fn leave_the_template(world: &World, [listed, not_listed]: [&str; 2]) {
    let templates: Api<ClusterBootstrapTemplate> = Api::namespaced(world.client(), "tkg-system");
    let mut spec = templates.get(NEW).await.unwrap().spec;
    let is_left = |name: &str, short: &str| name.split('.').next() == Some(short);
    spec.packages.additional_packages.retain(|it| !is_left(&it.ref_name, listed) && !is_left(&it.ref_name, not_listed));
    templates.delete(NEW, &DeleteParams::default()).await.unwrap();
    templates.create(&PostParams::default(), &ClusterBootstrapTemplate::new(NEW, spec)).await.unwrap();
    let releases: Api<TanzuKubernetesRelease> = Api::all(world.client());
    let mut of_release = releases.get(NEW).await.unwrap().spec.bootstrap_packages.unwrap();
    of_release.retain(|it| !is_left(&it.name, not_listed));
    let patch = Patch::Merge(json!({"spec": {"bootstrapPackages": of_release}}));
    releases.patch(NEW, &PatchParams::default(), &patch).await.unwrap();
    seconds(30).await;
}

#[test]
fn what_people_chose_stays_over_an_upgrade_and_what_left_the_template_is_raised_or_told() {
    for by in [HoldBy::Pause, HoldBy::Hooks] {
        play(by, created_by_choice(), start::later(), |world| async move {
            assert_eq!(package(&world, "calico").await, "3.24.1+vmware.1-tkg.1 ReconcileSucceeded");
            leave_the_template(&world, ["metrics-server", "secretgen-controller"]).await;
            upgrade(&world).await;
            rolled(&world, NEW_KUBERNETES).await;
            seconds(600).await;

            // The network that was chosen, in the version of the release. (Whoever watches saw it before the first machine.)
            for (short, wanted) in [
                ("calico", "3.24.1+vmware.1-tkg.2"),
                ("vsphere-csi", "2.7.1+vmware.2-tkg.1"),
                ("metrics-server", "0.6.2+vmware.1-tkg.2"),
                ("secretgen-controller", "0.11.2+vmware.1-tkg.1"),
                ("own", "1.0.0"),
                ("pinniped", "0.12.1+vmware.3-tkg.3"),
            ] {
                assert_eq!(package(&world, short).await, format!("{wanted} ReconcileSucceeded"), "{short}");
            }
            assert_eq!(package(&world, "antrea").await, "none");
            // Its values are in what runs.
            let deployments: Api<k8s_openapi::api::apps::v1::Deployment> =
                Api::namespaced(inside(&world), "kube-system");
            let strategy = deployments.get("metrics-server").await.unwrap().spec.unwrap().strategy.unwrap();
            assert_eq!(strategy.type_.as_deref(), Some("Recreate"));
            let [outside, _, message] = told(&world, "PackagesOutsideRelease").await;
            assert_eq!(outside, "True");
            let named = "own.example.com.1.0.0, secretgen-controller.tanzu.vmware.com.0.11.2+vmware.1-tkg.1: they stay";
            assert!(message.contains(named), "{message}");
            assert_eq!(told(&world, "PackagesReady").await[0], "True", "they hold nobody");
        });
    }
}
