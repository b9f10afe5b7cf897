//! What the kubelet does to containers: probes and lifecycle hooks.

use serde_json::Value;

use super::container::Around;
use crate::builtin::validate::{Errors, formed, non_negative, port_number_or_name, required};
use crate::field::FieldError;
use crate::meta::format;
use crate::path::Path;
use crate::value::Fields;

/// What is wrong with a probe, if there is one. `field` is the name of the field that it stands in.
pub fn probe(probe: &Value, field: &str, around: &Around<'_>, path: &Path<'_>, errors: &mut Errors) {
    if probe.is_null() {
        return;
    }
    handler(probe, &["exec", "httpGet", "tcpSocket", "grpc"], around, path, errors);
    for field in ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"] {
        non_negative(probe, field, path, errors);
    }
    if let Some(seconds) = probe.int("terminationGracePeriodSeconds") {
        let path = path.field("terminationGracePeriodSeconds");
        if seconds <= 0 {
            errors.push(FieldError::invalid(path, seconds, "must be greater than 0"));
        }
        if field == "readinessProbe" {
            errors.push(FieldError::invalid(path, seconds, "must not be set for readinessProbes"));
        }
    }
    let threshold = probe.int("successThreshold").unwrap_or_default();
    if field != "readinessProbe" && threshold != 1 {
        errors.push(FieldError::invalid(path.field("successThreshold"), threshold, "must be 1"));
    }
}

/// What is wrong with the hooks at a container's start and end, if there are any.
pub fn lifecycle(lifecycle: &Value, spec: &Value, around: &Around<'_>, path: &Path<'_>, errors: &mut Errors) {
    for field in ["postStart", "preStop"] {
        if lifecycle.has(field) {
            handler(
                lifecycle.at(field),
                &["exec", "httpGet", "tcpSocket", "sleep"],
                around,
                &path.field(field),
                errors,
            );
        }
    }
    if lifecycle.has("stopSignal") && !spec.has("os") {
        let detail = "may not be set for containers with empty `spec.os.name`";
        errors.push(FieldError::forbidden(path.field("stopSignal"), detail));
    }
}

fn handler(handler: &Value, kinds: &[&str], around: &Around<'_>, path: &Path<'_>, errors: &mut Errors) {
    let mut found = false;
    for kind in kinds {
        let action = handler.at(kind);
        if action.is_null() {
            continue;
        }
        let path = path.field(kind);
        if found {
            errors.push(FieldError::forbidden(path, "may not specify more than 1 handler type"));
            continue;
        }
        found = true;
        match *kind {
            "exec" if action.list("command").is_empty() => {
                errors.push(FieldError::required(path.field("command"), ""));
            }
            "httpGet" => http_get(action, &path, errors),
            "tcpSocket" | "grpc" => port_number_or_name(action.at("port"), &path.field("port"), errors),
            "sleep" => {
                let seconds = action.int("seconds").unwrap_or_default();
                if let Some(grace) = around.grace.filter(|grace| seconds < 0 || seconds > *grace) {
                    let detail = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
                    errors.push(FieldError::invalid(path, seconds, detail));
                }
            }
            _ => {}
        }
    }
    if !found {
        errors.push(FieldError::required(path, "must specify a handler type"));
    }
}

fn http_get(action: &Value, path: &Path<'_>, errors: &mut Errors) {
    required(action, "path", path, errors);
    port_number_or_name(action.at("port"), &path.field("port"), errors);
    let scheme = action.text("scheme");
    if !matches!(scheme, "HTTP" | "HTTPS") {
        errors.push(FieldError::not_supported(path.field("scheme"), scheme, &["HTTP", "HTTPS"]));
    }
    for header in action.list("httpHeaders") {
        formed(header.text("name"), &path.field("httpHeaders"), format::is_http_header_name, errors);
    }
}
