//! Clusters of all sorts: those whose machines Windlass replaces, those of a class, and those whose release is a label.

use kube::api::{DynamicObject, ListParams};
use kube::core::ApiResource;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::label;

use crate::client::{Error, Management};
use crate::error::{Exit, Failure};
use crate::output;

use super::{Get, Shown, Table, labels, names};

/// The Clusters of Cluster API that have a release.
struct Others {
    resource: ApiResource,
    /// Of a class: Windlass brings their packages.
    of_class: Vec<DynamicObject>,
    /// Their objects are their owner's: Windlass brings them to the release that a label names.
    by_label: Vec<DynamicObject>,
}

impl Get {
    /// Lists the clusters.
    pub(super) async fn clusters(&self, management: &Management) -> Result<Exit, Failure> {
        match Shown::from(self.output) {
            Shown::Table { wide } => self.tables(management, wide).await?,
            Shown::Names => names(&self.all_clusters(management).await?)?,
            Shown::Document(format) => self.documents(format, self.all_clusters(management).await?)?,
        }
        Ok(Exit::Done)
    }

    /// A table for each sort that there is: they differ in what there is to say of them.
    async fn tables(&self, management: &Management, wide: bool) -> Result<(), Failure> {
        let resource = ApiResource::erase::<TanzuKubernetesCluster>(&());
        let ours = self.table(management, &resource, &self.chosen()).await?;
        let mut texts: Vec<String> =
            (!ours.rows.is_empty()).then(|| ours.text(wide, self.all_namespaces)).into_iter().collect();
        if self.is_to_be_looked_for(texts.is_empty()) {
            let others = self.others(management).await?;
            if !others.of_class.is_empty() {
                let mut table = self.table(management, &others.resource, &self.labelled(label::RELEASE.name)).await?;
                table.keep(&others.of_class);
                texts.push(table.text(wide, self.all_namespaces));
            }
            let read = |object: DynamicObject| object.try_parse().map_err(super::Error::Unreadable);
            let by_label: Vec<Cluster> = others.by_label.into_iter().map(read).collect::<Result<_, _>>()?;
            texts.extend((!by_label.is_empty()).then(|| labels::table(&by_label, self.all_namespaces)));
        }
        if texts.is_empty() { self.nothing(management, &resource) } else { Ok(output::data(&texts.join("\n\n"))?) }
    }

    async fn all_clusters(&self, management: &Management) -> Result<Vec<DynamicObject>, Failure> {
        let resource = ApiResource::erase::<TanzuKubernetesCluster>(&());
        let mut found = self.found(management, &resource, &self.chosen()).await?;
        if self.is_to_be_looked_for(found.is_empty()) {
            let others = self.others(management).await?;
            found.extend(others.of_class.into_iter().chain(others.by_label));
        }
        match &self.name {
            Some(name) if found.is_empty() => Err(self.none(management, name).into()),
            _ => Ok(found),
        }
    }

    /// Whether other sorts can have more of it: one that was asked for by name, and was found, is of one sort.
    fn is_to_be_looked_for(&self, none_yet: bool) -> bool {
        none_yet || self.name.is_none()
    }

    fn labelled(&self, label: &str) -> ListParams {
        let selectors: Vec<&str> = [label].into_iter().chain(self.selector.as_deref()).collect();
        ListParams::default().labels(&selectors.join(","))
    }

    /// Whoever may not list Clusters has `TanzuKubernetesCluster`s all the same, and is told what is not among them.
    async fn others(&self, management: &Management) -> Result<Others, Failure> {
        let resource = ApiResource::erase::<Cluster>(&());
        let mut others = Others { resource, of_class: Vec::new(), by_label: Vec::new() };
        for label in [label::RELEASE.name, label::RELEASE_VERSION.name] {
            let found = match self.found(management, &others.resource, &self.labelled(label)).await {
                Ok(found) => found,
                Err(Error::Refused { code: 403, message, .. }) => {
                    output::say(&format!("Clusters of Cluster API are not shown: {message}"));
                    break;
                }
                // Where Cluster API is not installed there are none.
                Err(Error::UnknownKind { .. }) => break,
                Err(error) => return Err(error.into()),
            };
            // One that was asked for by name is not asked for by its labels, and may have both.
            let has = |object: &DynamicObject| object.metadata.labels.as_ref().is_some_and(|it| it.contains_key(label));
            let of_class = |object: &DynamicObject| object.data["spec"]["topology"].is_object();
            let of_a_class = label == label::RELEASE.name;
            let sort = if of_a_class { &mut others.of_class } else { &mut others.by_label };
            sort.extend(found.into_iter().filter(|object| has(object) && of_class(object) == of_a_class));
        }
        Ok(others)
    }
}

impl Table {
    /// Keeps the rows of these objects.
    fn keep(&mut self, objects: &[DynamicObject]) {
        self.rows.retain(|row| {
            let of = |field: &str| row.object["metadata"][field].as_str();
            let is_it = |object: &DynamicObject| {
                object.metadata.name.as_deref() == of("name") && object.metadata.namespace.as_deref() == of("namespace")
            };
            objects.iter().any(is_it)
        });
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use clap::Parser;
    use http::{Request, Response, StatusCode};
    use http_body_util::BodyExt as _;
    use kube::Client;
    use kube::api::{Api, PostParams};
    use kube::client::Body;
    use serde_json::json;
    use tower::{ServiceExt as _, service_fn};
    use windlass_apiserver::{ApiServer, Options};

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        get: Get,
    }

    /// A server that somebody may ask for everything but Clusters.
    fn without_clusters(server: ApiServer) -> Client {
        let service = service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                if !request.uri().path().contains("/apis/cluster.x-k8s.io/") {
                    let (parts, body) = server.oneshot(request).await?.into_parts();
                    let bytes = body.collect().await.unwrap().to_bytes();
                    return Ok::<_, Infallible>(Response::from_parts(parts, Body::from(bytes.to_vec())));
                }
                let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                    "message": "clusters is forbidden", "reason": "Forbidden", "code": 403});
                let mut response = Response::new(Body::from(status.to_string().into_bytes()));
                *response.status_mut() = StatusCode::FORBIDDEN;
                Ok(response)
            }
        });
        Client::new(service, "default")
    }

    async fn names(client: Client, line: &str) -> Result<Vec<String>, Failure> {
        let line = Line::parse_from(["get"].into_iter().chain(line.split(' ')));
        let management = Management::of(client, "default".parse().unwrap());
        line.get.tables(&management, false).await?;
        let found = line.get.all_clusters(&management).await?;
        Ok(found.into_iter().filter_map(|object| object.metadata.name).collect())
    }

    #[tokio::test]
    async fn clusters_of_all_sorts_are_listed_and_whoever_may_not_list_some_has_the_others() {
        let server = ApiServer::new(Options::default());
        let client = Client::new(server.clone(), "default");
        let cluster_api = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "clusters.cluster.x-k8s.io", "annotations": {}},
            "spec": {
                "group": "cluster.x-k8s.io", "scope": "Namespaced",
                "names": {"plural": "clusters", "singular": "cluster", "kind": "Cluster", "listKind": "ClusterList"},
                "versions": [{"name": "v1beta2", "served": true, "storage": true, "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
            },
        });
        let definitions = crate::manifests::definitions().unwrap().into_iter();
        let tkc = definitions.filter(|it| it["metadata"]["name"] == "tanzukubernetesclusters.run.tanzu.vmware.com");
        for definition in tkc.chain([cluster_api]) {
            put(&client, definition).await;
        }
        let machines = json!({"count": 1, "class": "small", "storageClass": "plain"});
        put(&client, json!({"apiVersion": "run.tanzu.vmware.com/v1alpha1", "kind": "TanzuKubernetesCluster",
            "metadata": {"name": "ours", "namespace": "default"},
            "spec": {"topology": {"controlPlane": machines, "workers": machines}, "distribution": {"version": "v1.16"}}}))
        .await;
        let cluster = |name: &str, label: &str, spec| {
            json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "spec": spec,
                "metadata": {"name": name, "namespace": "default", "labels": {label: "v1.0.0"}}})
        };
        let topology = json!({"topology": {"classRef": {"name": "a"}, "version": "v1.36.1"}});
        put(&client, cluster("of-class", label::RELEASE.name, topology.clone())).await;
        put(&client, cluster("by-label", label::RELEASE_VERSION.name, json!({}))).await;
        put(&client, cluster("of-others", "some", topology)).await;

        assert_eq!(names(client.clone(), "clusters").await.unwrap(), ["ours", "of-class", "by-label"]);
        for name in ["ours", "of-class", "by-label"] {
            assert_eq!(names(client.clone(), &format!("clusters {name}")).await.unwrap(), [name]);
        }
        assert!(names(client, "clusters of-others").await.is_err());
        let restricted = without_clusters(server);
        assert_eq!(names(restricted.clone(), "clusters").await.unwrap(), ["ours"]);
        assert_eq!(names(restricted.clone(), "clusters ours").await.unwrap(), ["ours"]);
        assert!(names(restricted, "clusters of-class").await.is_err());
    }

    async fn put(client: &Client, object: serde_json::Value) {
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let types = object.types.clone().unwrap();
        let (group, version) = types.api_version.split_once('/').unwrap();
        let resource = ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk(group, version, &types.kind));
        let api: Api<DynamicObject> = match &object.metadata.namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        };
        api.create(&PostParams::default(), &object).await.unwrap();
    }
}
