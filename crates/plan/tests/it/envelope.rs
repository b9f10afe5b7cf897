//! What an update may do, and what names it.

use windlass_plan::envelope::Envelope;
use windlass_plan::target::Target;

use crate::sample::target;

fn envelope(from: &Target, to: &Target) -> Envelope {
    Envelope::of(to, Some(&from.end()))
}

/// The machines that may be replaced between two targets.
fn check(from: &Target, to: &Target, replaced: &[&str]) {
    let envelope = envelope(from, to);
    assert_eq!(envelope.replaced.iter().map(String::as_str).collect::<Vec<_>>(), replaced);
    let job = envelope.allowed.iter().any(|allowed| allowed.kind == "Job");
    assert_eq!(job, replaced.contains(&"control-plane/0"), "a Job only where it has something to do");
}

#[test]
fn only_what_differs_may_be_replaced() {
    let old = target(3, 1, "v1.15.5");
    let mut workers_only = old.clone();
    workers_only.pools[0].machines.class = "best-effort-large".parse().ok();
    check(&old, &old, &[]);
    check(&old, &workers_only, &["workers/default"]);
    check(
        &old,
        &target(3, 1, "v1.16.7"),
        &["control-plane/0", "control-plane/1", "control-plane/2", "workers/default"],
    );
    check(&old, &target(3, 5, "v1.15.5"), &[]);
}

#[test]
fn the_digest_covers_both_ends_and_the_release() {
    let (old, new) = (target(3, 1, "v1.15.5"), target(3, 1, "v1.16.7"));
    let digest = envelope(&old, &new).digest();
    assert_eq!(digest, envelope(&old, &new).digest());
    assert_ne!(digest, envelope(&new, &new).digest());
    assert_ne!(digest, envelope(&old, &target(3, 1, "v1.16.8")).digest());
    assert_ne!(digest, envelope(&old, &target(3, 2, "v1.16.7")).digest());
}

#[test]
fn objects_are_named_by_what_they_are() {
    let envelope = envelope(&target(1, 1, "v1.15.5"), &target(1, 1, "v1.16.7"));
    for (role, object) in &envelope.objects {
        assert_eq!(object["metadata"]["name"], role.as_str());
        assert_eq!(object["metadata"]["labels"].get("windlass.dev/update-id"), None, "{role}");
        assert_eq!(object["metadata"].get("ownerReferences"), None, "{role}");
    }
    let roles: Vec<&str> = envelope.objects.keys().map(String::as_str).collect();
    assert!(roles.contains(&"addon/kube-proxy/DaemonSet") && roles.contains(&"control-plane/Job"), "{roles:?}");
}
