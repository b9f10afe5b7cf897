//! What the pods of objects are run from.

use std::collections::BTreeSet;

use serde_json::Value;

/// Where a pod lists what it runs.
const CONTAINERS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

/// The images that the pods of objects are run from, wherever in the objects they are described.
pub fn container_images<'o>(objects: impl IntoIterator<Item = &'o Value>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    objects.into_iter().for_each(|object| collect(object, &mut found));
    found
}

fn collect(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                if CONTAINERS.contains(&field.as_str()) {
                    let images = value.as_array().into_iter().flatten().filter_map(|it| it["image"].as_str());
                    found.extend(images.map(str::to_owned));
                } else {
                    collect(value, found);
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| collect(value, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn images_are_found_in_pods_and_in_templates_of_pods_each_once() {
        let pod =
            json!({"spec": {"initContainers": [{"image": "b"}], "containers": [{"image": "a"}, {"name": "without"}]}});
        let deployment =
            json!({"kind": "List", "items": [{"spec": {"template": {"spec": {"containers": [{"image": "a"}]}}}}]});
        let other = json!({"data": {"image": "c"}});
        assert_eq!(container_images([&pod, &deployment, &other]), ["a", "b"].map(str::to_owned).into());
    }
}
