//! How long a pod takes to end once it is asked to.

use jiff::SignedDuration;
use serde::Deserialize;
use windlass_apiserver::store::Entry;

/// From SIGTERM until a container has ended: most of them heed it.
const CONTAINER_END: SignedDuration = SignedDuration::from_secs(1);

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Pod {
    spec: Spec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    containers: Vec<Container>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Container {
    lifecycle: Lifecycle,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Lifecycle {
    pre_stop: Hook,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Hook {
    sleep: Option<Sleep>,
    exec: Option<Exec>,
}

#[derive(Debug, Deserialize)]
struct Sleep {
    seconds: u32,
}

#[derive(Debug, Deserialize)]
struct Exec {
    #[serde(default)]
    command: Vec<String>,
}

impl Hook {
    /// How long it holds up SIGTERM. Of commands only `sleep` is understood, also behind a shell.
    fn takes(&self) -> SignedDuration {
        let slept = self.sleep.as_ref().map(|sleep| sleep.seconds);
        let command = self.exec.iter().flat_map(|exec| &exec.command).flat_map(|word| word.split_whitespace());
        let mut words = command.skip_while(|word| !matches!(word.rsplit('/').next(), Some("sleep")));
        let told = words.nth(1).and_then(|seconds| seconds.trim_end_matches(';').parse().ok());
        SignedDuration::from_secs(slept.or(told).unwrap_or_default().into())
    }
}

/// How long the pod takes, if it has the time: its containers end side by side, each after its hook.
pub(super) fn takes(pod: &Entry) -> SignedDuration {
    // One that cannot be read has been complained about by whoever keeps the index.
    let pod: Pod = serde_json::from_slice(&pod.json).unwrap_or_default();
    let hooks = pod.spec.containers.iter().map(|container| container.lifecycle.pre_stop.takes());
    CONTAINER_END + hooks.max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(hook: &str, seconds: i64) {
        let hook: Hook = serde_json::from_str(hook).unwrap();
        assert_eq!(hook.takes(), SignedDuration::from_secs(seconds), "{hook:?}");
    }

    #[test]
    fn a_hook_that_sleeps_holds_up_the_end() {
        check("{}", 0);
        check(r#"{"sleep": {"seconds": 7}}"#, 7);
        check(r#"{"exec": {"command": ["/bin/sleep", "20"]}}"#, 20);
        check(r#"{"exec": {"command": ["sh", "-c", "sleep 5; nginx -s quit"]}}"#, 5);
        check(r#"{"exec": {"command": ["sh", "-c", "nginx -s quit && sleep 5"]}}"#, 5);
        check(r#"{"exec": {"command": ["nginx", "-s", "quit"]}}"#, 0);
    }
}
