//! Configuration as text in a ConfigMap.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use serde_json::Value;

use crate::upgrader::Error;

/// One entry of a ConfigMap; `None` where there is no such entry.
pub fn read(map: &ConfigMap, key: &str) -> Result<Option<Value>, Error> {
    let Some(text) = map.data.as_ref().and_then(|data| data.get(key)) else { return Ok(None) };
    serde_saphyr::from_str(text).map(Some).map_err(|error| unusable(map, format!("its {key} is not YAML: {error}")))
}

/// Changes one entry of a ConfigMap. `None` where there is no such entry, or nothing changes in it: what does not have to be
/// written keeps its bytes, comments included.
pub fn edited(
    map: &ConfigMap,
    key: &str,
    edit: impl FnOnce(&mut Value) -> Result<(), Error>,
) -> Result<Option<String>, Error> {
    let Some(before) = read(map, key)? else { return Ok(None) };
    let mut after = before.clone();
    edit(&mut after)?;
    if after == before {
        return Ok(None);
    }
    let text = serde_saphyr::to_string(&after);
    text.map(Some).map_err(|error| unusable(map, format!("its {key} cannot be written as YAML: {error}")))
}

fn unusable(map: &ConfigMap, why: String) -> Error {
    Error::Unusable { kind: "ConfigMap", name: map.name_any(), why }
}
