//! What a machine reads when it boots: a cloud-config, with kubeadm's configuration among its files.

use serde_json::{Value, json};
use windlass_api::kind::bootstrap::{CloudConfig, INIT_FILE as INIT, JOIN_FILE as JOIN, NodeRegistration};
use windlass_api::version::KubernetesVersion;

use super::Begins;
use super::record::Configuration;

/// Why bootstrap data cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum UserDataError {
    #[error("it is not a cloud-config")]
    CloudConfig(#[source] Box<serde_saphyr::Error>),
    #[error("it has neither {INIT} nor {JOIN}")]
    NothingToDo,
    #[error("{path} is not YAML")]
    Kubeadm { path: &'static str, source: Box<serde_saphyr::Error> },
    #[error("{path} has no document of kind {kind}")]
    Missing { path: &'static str, kind: &'static str },
    #[error("the nodeRegistration in {path} cannot be read")]
    Registration { path: &'static str, source: serde_json::Error },
    #[error("the kubernetesVersion in {INIT} is no version: {text:?}")]
    Version { text: String },
    #[error("{text:?} among the node-labels in {path} is not key=value")]
    NodeLabel { path: &'static str, text: String },
    #[error("{text:?} among the taints in {path} is not key=value:effect")]
    Taint { path: &'static str, text: String },
}

/// What a machine is to do, and what it is told for that.
pub(super) fn read(user_data: &str) -> Result<(Begins, Configuration), UserDataError> {
    let config: CloudConfig =
        serde_saphyr::from_str(user_data).map_err(|source| UserDataError::CloudConfig(Box::new(source)))?;
    let file = |path: &'static str| config.write_files.iter().find(|file| file.path == path);
    if let Some(file) = file(INIT) {
        return init(&documents(INIT, &file.content)?);
    }
    match file(JOIN) {
        Some(file) => join(&documents(JOIN, &file.content)?),
        None => Err(UserDataError::NothingToDo),
    }
}

fn documents(path: &'static str, content: &str) -> Result<Vec<Value>, UserDataError> {
    serde_saphyr::from_multiple(content).map_err(|source| UserDataError::Kubeadm { path, source: Box::new(source) })
}

fn init(documents: &[Value]) -> Result<(Begins, Configuration), UserDataError> {
    let cluster = of_kind(INIT, documents, "ClusterConfiguration")?;
    let text = cluster["kubernetesVersion"].as_str().unwrap_or_default();
    if text.parse::<KubernetesVersion>().is_err() {
        return Err(UserDataError::Version { text: text.to_owned() });
    }
    let init = of_kind(INIT, documents, "InitConfiguration")?;
    let mut configuration = registration(INIT, init)?;
    configuration.cluster = Some(cluster.clone());
    let skipped = init["skipPhases"].as_array().into_iter().flatten();
    configuration.skip_phases = skipped.filter_map(Value::as_str).map(str::to_owned).collect();
    Ok((Begins::Init, configuration))
}

fn join(documents: &[Value]) -> Result<(Begins, Configuration), UserDataError> {
    let join = of_kind(JOIN, documents, "JoinConfiguration")?;
    let begins = if join["controlPlane"].is_object() { Begins::JoinControlPlane } else { Begins::Join };
    Ok((begins, registration(JOIN, join)?))
}

fn of_kind<'a>(path: &'static str, documents: &'a [Value], kind: &'static str) -> Result<&'a Value, UserDataError> {
    documents.iter().find(|document| document["kind"] == kind).ok_or(UserDataError::Missing { path, kind })
}

fn registration(path: &'static str, document: &Value) -> Result<Configuration, UserDataError> {
    let registration = &document["nodeRegistration"];
    if registration.is_null() {
        return Ok(Configuration::default());
    }
    let typed: NodeRegistration =
        serde_json::from_value(registration.clone()).map_err(|source| UserDataError::Registration { path, source })?;
    let labels = typed.node_labels().unwrap_or_default().split(',').filter(|label| !label.is_empty());
    let labels = labels.map(|label| match label.split_once('=') {
        Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
        None => Err(UserDataError::NodeLabel { path, text: label.to_owned() }),
    });
    let own =
        typed.argument(NodeRegistration::NODE_TAINTS).unwrap_or_default().split(',').filter(|one| !one.is_empty());
    let own: Vec<Value> = own.map(|text| taint(path, text)).collect::<Result<_, _>>()?;
    let said = registration["taints"].as_array().cloned();
    let taints = if own.is_empty() { said } else { Some([own, said.unwrap_or_default()].concat()) };
    Ok(Configuration { node_labels: labels.collect::<Result<_, _>>()?, taints, ..Configuration::default() })
}

/// A taint as an argument of the kubelet has it: `key=value:effect`, or without a value.
fn taint(path: &'static str, text: &str) -> Result<Value, UserDataError> {
    let refused = || UserDataError::Taint { path, text: text.to_owned() };
    let (what, effect) = text.rsplit_once(':').ok_or_else(refused)?;
    let (key, value) = what.split_once('=').map_or((what, None), |(key, value)| (key, Some(value)));
    if key.is_empty() || !["NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&effect) {
        return Err(refused());
    }
    let mut taint = json!({"key": key, "effect": effect});
    if let Some(value) = value.filter(|value| !value.is_empty()) {
        taint["value"] = value.into();
    }
    Ok(taint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(user_data: &str, expected: Result<Begins, &str>) {
        let read = read(user_data).map(|(begins, _)| begins).map_err(|error| error.to_string());
        assert_eq!(read, expected.map_err(str::to_owned), "{user_data}");
    }

    fn file(path: &str, content: &str) -> String {
        let content = serde_json::to_string(content).unwrap();
        format!("## template: jinja\n#cloud-config\nwrite_files:\n- path: {path}\n  content: {content}\n")
    }

    #[test]
    fn what_a_machine_does_first_is_told_by_its_files() {
        let init = "kind: ClusterConfiguration\nkubernetesVersion: v1.16.7+vmware.1\n---\nkind: InitConfiguration\n";
        check(&file(INIT, init), Ok(Begins::Init));
        check(&file(JOIN, "kind: JoinConfiguration\ncontrolPlane: {}\n"), Ok(Begins::JoinControlPlane));
        check(&file(JOIN, "kind: JoinConfiguration\n"), Ok(Begins::Join));
    }

    #[test]
    fn bootstrap_data_that_no_machine_can_begin_with_is_refused_with_a_reason() {
        check("#cloud-config\n{}\n", Err(&UserDataError::NothingToDo.to_string()));
        check(&file(JOIN, "kind: Other\n"), Err(&format!("{JOIN} has no document of kind JoinConfiguration")));
        check(
            &file(INIT, "kind: ClusterConfiguration\n---\nkind: InitConfiguration\n"),
            Err(&format!("the kubernetesVersion in {INIT} is no version: \"\"")),
        );
        let labels =
            "kind: JoinConfiguration\nnodeRegistration:\n  kubeletExtraArgs: [{name: node-labels, value: a}]\n";
        check(&file(JOIN, labels), Err(&format!("\"a\" among the node-labels in {JOIN} is not key=value")));
    }

    #[test]
    fn the_taints_of_the_node_are_read() {
        let read = |registration: &str| {
            let join = format!("kind: JoinConfiguration\nnodeRegistration: {registration}\n");
            read(&file(JOIN, &join)).map(|(_, configuration)| configuration.taints).map_err(|error| error.to_string())
        };
        let [gpu, dedicated] =
            [json!({"key": "gpu", "effect": "NoExecute"}), json!({"key": "a", "value": "b", "effect": "NoSchedule"})];
        assert_eq!(read("{taints: [{key: gpu, effect: NoExecute}]}"), Ok(Some(vec![gpu.clone()])));
        let argument = "{name: register-with-taints, value: 'gpu:NoExecute,a=b:NoSchedule'}";
        assert_eq!(read(&format!("{{kubeletExtraArgs: [{argument}]}}")), Ok(Some(vec![gpu, dedicated])));
        assert_eq!(read("{taints: []}"), Ok(Some(Vec::new())), "none at all, where kubeadm would have one");
        assert_eq!(read("{kubeletExtraArgs: []}"), Ok(None));
        let wrong = "{kubeletExtraArgs: [{name: register-with-taints, value: 'gpu:Never'}]}";
        assert_eq!(read(wrong), Err(format!("\"gpu:Never\" among the taints in {JOIN} is not key=value:effect")));
    }

    #[test]
    fn the_labels_of_the_node_are_read() {
        let join =
            "kind: JoinConfiguration\nnodeRegistration:\n  kubeletExtraArgs: [{name: node-labels, value: 'a=1,b='}]\n";
        let (_, configuration) = read(&file(JOIN, join)).unwrap();
        let expected = [("a", "1"), ("b", "")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(configuration.node_labels, expected.into());
    }
}
