//! Programs of others that the API asks: webhooks, and APIs that they serve.

use super::evidence::{Evidence, Webhook};
use super::{Found, Risk, RiskId, Severity, count, shown};

/// What Kubernetes gives a webhook unless it says otherwise. A node renews its lease as often.
const USUAL_TIMEOUT_SECONDS: u64 = 10;

pub(super) fn check(evidence: &Evidence, found: &mut Found) {
    if !evidence.rolls.any() {
        return;
    }
    let webhooks = found.read(&[RiskId::WebhookBlocksNodes, RiskId::WebhookSlow], &evidence.webhooks);
    for webhook in webhooks.iter().filter(|webhook| !webhook.node_resources.is_empty()) {
        blocking(webhook, found);
        found.risks.extend(slow(webhook));
    }
    for service in found.read(&[RiskId::WebhookSlow], &evidence.api_services) {
        let Some(why) = &service.unavailable else { continue };
        found.raise(Risk {
            severity: Severity::Risky,
            id: RiskId::WebhookSlow,
            object: format!("APIService {}", service.name),
            message: format!("it is not available: {why}"),
            because: vec![
                "who lists all kinds waits for it: kubectl, garbage collection, the end of namespaces".into(),
            ],
            way_out: format!("repair its service, or kubectl delete apiservice {}", service.name),
        });
    }
}

fn blocking(webhook: &Webhook, found: &mut Found) {
    if !webhook.fails_closed {
        return;
    }
    let Some(ready) = found.read_one(&[RiskId::WebhookBlocksNodes], &webhook.ready_pods) else { return };
    let asked = format!("{} of {}", webhook.name, webhook.configuration);
    let (severity, message) = match ready {
        Some(0) => (
            Severity::Blocks,
            format!(
                "no node can join: {asked} is asked about {}, and {} has 0 ready pods",
                about(webhook),
                webhook.answers
            ),
        ),
        Some(ready) => (
            Severity::Risky,
            format!(
                "{asked} is asked about {}: while the {} of {} {}, no node can join",
                about(webhook),
                count(usize::try_from(*ready).unwrap_or(usize::MAX), "ready pod"),
                webhook.answers,
                if *ready == 1 { "moves" } else { "move" }
            ),
        ),
        None => (
            Severity::Risky,
            format!(
                "{asked} is asked about {}: whenever {} is out of reach, no node can join",
                about(webhook),
                webhook.answers
            ),
        ),
    };
    found.raise(Risk {
        severity,
        id: RiskId::WebhookBlocksNodes,
        object: webhook.configuration.clone(),
        message,
        because: vec!["its failurePolicy is Fail, so what it does not answer is refused".to_owned()],
        way_out: format!(
            "let its rules or its namespaceSelector leave kube-system and nodes out, or set failurePolicy: Ignore in {}",
            webhook.configuration
        ),
    });
}

fn slow(webhook: &Webhook) -> Option<Risk> {
    (webhook.timeout_seconds > USUAL_TIMEOUT_SECONDS).then(|| Risk {
        severity: Severity::Risky,
        id: RiskId::WebhookSlow,
        object: webhook.configuration.clone(),
        message: format!(
            "{} may take {} s to answer each request for {}",
            webhook.name,
            webhook.timeout_seconds,
            about(webhook)
        ),
        because: vec![format!("a node renews its lease every {USUAL_TIMEOUT_SECONDS} s")],
        way_out: format!("set timeoutSeconds: {USUAL_TIMEOUT_SECONDS} or less in {}", webhook.configuration),
    })
}

fn about(webhook: &Webhook) -> String {
    shown(&webhook.node_resources)
}
