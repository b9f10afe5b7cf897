//! Lists the objects of a kind, page by page.

use kube::api::{DynamicObject, ListParams};
use kube::{Api, Client};
use serde_json::Value;

use crate::snapshot::kinds::{Chosen, Row};
use crate::snapshot::redact::Redactor;

/// How many objects are asked for at a time: as many as kubectl does.
const PAGE: u32 = 500;

/// Reads one API server.
pub(super) struct Reader {
    client: Client,
    redactor: Redactor,
    page: u32,
}

impl Reader {
    pub(super) fn new(client: Client) -> Self {
        Self { client, redactor: Redactor::default(), page: PAGE }
    }

    /// The same, with pages of another size.
    #[cfg(test)]
    pub(super) fn paged(client: Client, page: u32) -> Self {
        Self { page, ..Self::new(client) }
    }

    /// The objects of a kind, without what is secret and without what only the server needs.
    pub(super) async fn list(&mut self, row: &Row<'_>, chosen: Chosen) -> Result<Vec<Value>, kube::Error> {
        let kind = row.resource();
        let listed = self.pages(Api::all_with(self.client.clone(), &kind), chosen).await?;
        let mut values = Vec::with_capacity(listed.len());
        for object in listed {
            let mut value = serde_json::to_value(object).map_err(kube::Error::SerdeError)?;
            value["apiVersion"] = kind.api_version.as_str().into();
            value["kind"] = kind.kind.as_str().into();
            shorten(&mut value);
            self.redactor.redact(&mut value);
            values.push(value);
        }
        Ok(values)
    }

    /// All pages. A list that takes longer than the server remembers is asked for at once.
    async fn pages(&self, objects: Api<DynamicObject>, chosen: Chosen) -> Result<Vec<DynamicObject>, kube::Error> {
        let all = match chosen {
            Chosen::All => ListParams::default(),
            Chosen::Labelled(label) => ListParams::default().labels(label),
            Chosen::Named(name) => ListParams::default().fields(&format!("metadata.name={name}")),
        };
        let mut params = all.clone().limit(self.page);
        let mut items = Vec::new();
        loop {
            let page = match objects.list(&params).await {
                Err(kube::Error::Api(status)) if status.code == 410 && params.continue_token.is_some() => {
                    return Ok(objects.list(&all).await?.items);
                }
                page => page?,
            };
            items.extend(page.items);
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(items),
            }
        }
    }
}

/// Of a definition it counts which versions there are and which are stored. Its schemas are longer than all else together.
fn shorten(object: &mut Value) {
    if object["kind"] == "CustomResourceDefinition" {
        for version in object["spec"]["versions"].as_array_mut().into_iter().flatten() {
            if let Some(version) = version.as_object_mut() {
                version.remove("schema");
                version.remove("additionalPrinterColumns");
            }
        }
    }
}
