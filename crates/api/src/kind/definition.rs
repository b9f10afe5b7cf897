//! The definitions of the kinds that we are the controller of, as they are in `deploy/crds`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube_core::crd::v1::CustomResourceExt;

use super::cluster_update::ClusterUpdate;
use super::release::{ClusterBootstrap, ClusterBootstrapTemplate, OSImage, TanzuKubernetesRelease};
use super::tanzu::TanzuKubernetesCluster;
use super::wcp::{WCPCluster, WCPClusterTemplate, WCPMachine, WCPMachineTemplate};

/// All of them, sorted by name.
pub fn ours() -> Vec<CustomResourceDefinition> {
    let mut all = vec![
        ClusterBootstrap::crd(),
        ClusterBootstrapTemplate::crd(),
        ClusterUpdate::crd(),
        OSImage::crd(),
        TanzuKubernetesCluster::crd(),
        TanzuKubernetesRelease::crd(),
        WCPCluster::crd(),
        WCPClusterTemplate::crd(),
        WCPMachine::crd(),
        WCPMachineTemplate::crd(),
    ];
    for definition in &mut all {
        let versions = definition.spec.versions.iter_mut();
        let schemas = versions.filter_map(|version| version.schema.as_mut()?.open_api_v3_schema.as_mut());
        schemas.for_each(name_known_formats);
    }
    all.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    all
}

/// Names the formats of numbers as API servers know them. They know none without a sign, and warn everybody who installs such
/// a definition; that a number is not negative is said by its minimum.
fn name_known_formats(schema: &mut JSONSchemaProps) {
    if let Some(format) = &mut schema.format {
        match format.as_str() {
            "uint8" | "uint16" => "int32".clone_into(format),
            "uint32" | "uint64" => "int64".clone_into(format),
            _ => {}
        }
    }
    schema.properties.iter_mut().flatten().for_each(|(_, property)| name_known_formats(property));
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        name_known_formats(items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        name_known_formats(values);
    }
}
