//! What a machine is told when it boots, without what is secret in it: a simulated machine goes on with the rest.

use serde_json::{Value, json};
use windlass_api::kind::bootstrap::{CloudConfig, INIT_FILE, JOIN_FILE};

/// Where the configuration of kubeadm is.
const FILES: [&str; 2] = [INIT_FILE, JOIN_FILE];

/// What kubeadm is told about the cluster and the node; `None` where a text is no bootstrap data.
pub(super) fn told(text: &str) -> Option<Value> {
    if !FILES.iter().any(|path| text.contains(path)) {
        return None;
    }
    let config: CloudConfig = serde_saphyr::from_str(text).ok()?;
    let file = config.write_files.into_iter().find(|file| FILES.contains(&file.path.as_str()))?;
    let documents: Vec<Value> = serde_saphyr::from_multiple(&file.content).ok()?;
    let documents: Vec<Value> = documents.iter().filter_map(kept).collect();
    Some(json!({"path": file.path, "documents": documents}))
}

/// The part of a document that others can see afterwards, too.
fn kept(document: &Value) -> Option<Value> {
    let fields: &[&str] = match document["kind"].as_str()? {
        "ClusterConfiguration" => return Some(document.clone()),
        "InitConfiguration" => &["apiVersion", "kind", "nodeRegistration", "skipPhases"],
        "JoinConfiguration" => &["apiVersion", "kind", "nodeRegistration"],
        _ => return None,
    };
    let there = fields.iter().filter_map(|field| Some(((*field).to_owned(), document.get(field)?.clone())));
    let mut kept: Value = there.collect();
    // That it joins the control plane is all there is to know of this.
    if document["controlPlane"].is_object() {
        kept["controlPlane"] = json!({});
    }
    Some(kept)
}

/// A cloud-config that says no more than that. JSON is YAML.
pub(super) fn render(told: &Value) -> String {
    let documents = told["documents"].as_array().into_iter().flatten();
    let content = documents.fold(String::new(), |content, document| format!("{content}---\n{document}\n"));
    format!("#cloud-config\n{}\n", json!({"write_files": [{"path": told["path"], "content": content}]}))
}
