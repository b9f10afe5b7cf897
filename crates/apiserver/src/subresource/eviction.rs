//! `eviction`: a pod is deleted, if the disruption budget that covers it allows.

use futures::future::BoxFuture;
use http::{Method, Response, StatusCode, header};
use serde_json::{Value, json};

use super::{Described, Subresource, SubresourceRequest};
use crate::body::{self, Body};
use crate::builtin::eviction::{self, Eviction as Decision};
use crate::query::{DeleteOptions, Query};
use crate::server::ApiServer;
use crate::status::ApiError;
use crate::store::{Entry, Expect, Key, Range};
use crate::verb::delete::Deletion;

const BUDGETS: &str = "poddisruptionbudgets.policy";

/// `POST …/pods/NAME/eviction`.
pub(super) struct Eviction;

impl Subresource for Eviction {
    fn describe(&self) -> Described {
        Described { group: "policy", version: "v1", kind: "Eviction", verbs: &["create"] }
    }

    fn call<'a>(
        &'a self,
        server: &'a ApiServer,
        request: SubresourceRequest,
    ) -> BoxFuture<'a, Result<Response<Body>, ApiError>> {
        Box::pin(async move {
            if request.method != Method::POST {
                return Err(ApiError::method_not_allowed());
            }
            let wish = Wish::read(&request)?;
            server.evict(&request, &wish).await?;
            let success =
                json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
            Ok(body::json(StatusCode::CREATED, &success))
        })
    }
}

/// What the client wants to happen to the pod.
struct Wish {
    options: DeleteOptions,
    dry_run: bool,
}

impl Wish {
    fn read(request: &SubresourceRequest) -> Result<Self, ApiError> {
        let sent = request.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let eviction = crate::verb::body::value(sent, &request.body)?;
        let named = eviction["metadata"]["name"].as_str().unwrap_or_default();
        if named != request.name {
            return Err(ApiError::bad_request("name in URL does not match name in Eviction object"));
        }
        let query = Query::parse(&request.query);
        let options =
            DeleteOptions::parse(&Query::default(), Some(&eviction["deleteOptions"]).filter(|o| o.is_object()))?;
        let dry_run = options.dry_run || query.first("dryRun").is_some();
        Ok(Self { options, dry_run })
    }

    /// The deletion, of the very pod that was looked at when that matters.
    fn deletion(&self, request: &SubresourceRequest, exactly: Option<&Entry>) -> Deletion {
        let version = exactly.map(|entry| entry.revision.to_string());
        Deletion {
            propagation: self.options.propagation,
            uid: self.options.preconditions.uid.clone(),
            resource_version: self.options.preconditions.resource_version.clone().or(version),
            grace_seconds: self.options.grace_period_seconds,
            dry_run: self.dry_run,
            user: request.user.clone(),
        }
    }
}

impl ApiServer {
    async fn evict(&self, request: &SubresourceRequest, wish: &Wish) -> Result<(), ApiError> {
        let key = Key::new(&request.namespace, &request.name);
        loop {
            let entry = self
                .store()
                .get(&request.kind.resource, &key)
                .ok_or_else(|| ApiError::not_found("pods", "", &request.name))?;
            let pod = Self::load(&request.kind, &entry);
            let range = Range { namespace: Some(&request.namespace), after: None, limit: 0 };
            let budgets = self.store().list(BUDGETS, range, |_| true).entries;
            let trees: Vec<Value> =
                budgets.iter().map(|budget| budget.to_value("policy/v1", "PodDisruptionBudget")).collect();
            let exactly = match eviction::decide(&pod, &trees, self.now())? {
                Decision::Free => None,
                Decision::Unchanged { .. } => Some(&*entry),
                Decision::Spend { budget, status } => {
                    let spent = wish.dry_run || self.spend(&budgets, &budget, status).await?;
                    if !spent {
                        continue;
                    }
                    None
                }
            };
            let deletion = wish.deletion(request, exactly);
            if !wish.dry_run && exactly.is_none() {
                let now = self.now();
                self.rewrite(&request.kind, &entry, |pod| eviction::mark(pod, now)).await?;
            }
            self.delete_one(&request.kind, &key, &deletion).await?;
            return Ok(());
        }
    }

    /// Writes a budget's new status; false when somebody else wrote first, and all must be decided again.
    async fn spend(&self, budgets: &[std::sync::Arc<Entry>], name: &str, status: Value) -> Result<bool, ApiError> {
        let Some(kind) = self.registry().stored(BUDGETS).cloned() else { return Ok(false) };
        let Some(entry) = budgets.iter().find(|budget| &*budget.key.name == name) else { return Ok(false) };
        let mut budget = entry.to_value(&kind.api_version, &kind.kind);
        budget["status"] = status;
        let committed = self.commit(&kind, &entry.key, Expect::Revision(entry.revision), budget).await?;
        Ok(committed.is_ok())
    }
}
