//! Which kubeconfigs of workload clusters are used.
//!
//! Such a file was written by somebody who may write Secrets in the namespace of a cluster, and is used by a program that may do
//! more than they. It may say where a server is and how we are known there, and nothing else: no program to run, no file of this
//! machine to read, nobody to act as, no proxy to send it all through, and no address that means this machine or its cloud.

use std::net::IpAddr;

use http::Uri;
use kube::config::Kubeconfig;

/// Larger ones are none: a few certificates are a few kilobytes.
const BYTES_MAX: usize = 256 * 1024;

/// Reads a kubeconfig that somebody else has written; why it is not used.
pub fn read(kubeconfig: &[u8], loopback: Loopback) -> Result<Kubeconfig, String> {
    if kubeconfig.len() > BYTES_MAX {
        return Err(format!("the kubeconfig has {} bytes; accepted are {BYTES_MAX}", kubeconfig.len()));
    }
    let text = std::str::from_utf8(kubeconfig).map_err(|error| error.to_string())?;
    let kubeconfig = Kubeconfig::from_yaml(text).map_err(|error| error.to_string())?;
    let users = kubeconfig.auth_infos.iter().filter_map(|named| Some((&named.name, named.auth_info.as_ref()?)));
    for (name, user) in users {
        let fields = [
            ("exec", user.exec.is_some()),
            ("auth-provider", user.auth_provider.is_some()),
            ("tokenFile", user.token_file.is_some()),
            ("client-certificate", user.client_certificate.is_some()),
            ("client-key", user.client_key.is_some()),
            ("as", user.impersonate.is_some()),
            ("as-groups", user.impersonate_groups.is_some()),
        ];
        if let Some((field, _)) = fields.iter().find(|(_, is_set)| *is_set) {
            return Err(format!(
                "the kubeconfig is not used: the user {name} has the field {field}; accepted are data"
            ));
        }
    }
    let clusters = kubeconfig.clusters.iter().filter_map(|named| Some((&named.name, named.cluster.as_ref()?)));
    for (name, cluster) in clusters {
        let fields = [
            ("certificate-authority", cluster.certificate_authority.is_some()),
            ("proxy-url", cluster.proxy_url.is_some()),
            ("insecure-skip-tls-verify", cluster.insecure_skip_tls_verify == Some(true)),
        ];
        if let Some((field, _)) = fields.iter().find(|(_, is_set)| *is_set) {
            return Err(format!("the kubeconfig is not used: the cluster {name} has the field {field}"));
        }
        let server = cluster.server.as_deref().unwrap_or_default();
        checked(server, loopback).map_err(|why| format!("the kubeconfig is not used: the server {server:?} {why}"))?;
    }
    Ok(kubeconfig)
}

/// Whether a server may be this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loopback {
    /// It may: the clusters of `windlass up` are.
    Allowed,
    /// It may not: in a pod that is ourselves.
    Refused,
}

fn checked(server: &str, loopback: Loopback) -> Result<(), &'static str> {
    let uri: Uri = server.parse().map_err(|_| "is no address")?;
    if uri.scheme_str() != Some("https") {
        return Err("is not reached by https");
    }
    let host = uri.host().unwrap_or_default();
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let is_local_name = host == "localhost" || host.ends_with(".localhost");
    let address = match host.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) => address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4),
        Ok(address) => address,
        Err(_) if is_local_name => IpAddr::from([127, 0, 0, 1]),
        Err(_) => return Ok(()),
    };
    let link_local = match address {
        // That of the machine's cloud, which gives away keys to whoever asks from here.
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.segments()[0] & 0xffc0 == 0xfe80,
    };
    if link_local || address.is_unspecified() || address.is_multicast() {
        return Err("is an address that no cluster has");
    }
    if address.is_loopback() && loopback == Loopback::Refused {
        return Err("is the machine that asks");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kubeconfig(server: &str, cluster: &str, user: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
             clusters: [{{name: c, cluster: {{server: \"{server}\"{cluster}}}}}]\nusers: [{{name: u, user: {{{user}}}}}]\n"
        )
    }

    fn check(text: &str, expected: Option<&str>) {
        let refused = read(text.as_bytes(), Loopback::Refused).err();
        match (&refused, expected) {
            (None, None) => {}
            (Some(why), Some(expected)) => assert!(why.contains(expected), "{text}: {why}"),
            _ => panic!("{text}: {refused:?}"),
        }
    }

    #[test]
    fn a_kubeconfig_says_where_a_server_is_and_who_we_are_there_and_nothing_else() {
        let server = "https://10.0.0.7:6443";
        check(&kubeconfig(server, "", "token: abc"), None);
        check(
            &kubeconfig("https://[2001:db8::7]:6443", "", "client-certificate-data: QQ==, client-key-data: QQ=="),
            None,
        );
        check(
            &kubeconfig(server, "", "exec: {command: sh, apiVersion: client.authentication.k8s.io/v1}"),
            Some("exec"),
        );
        check(&kubeconfig(server, "", "tokenFile: /var/run/secrets/token"), Some("tokenFile"));
        check(&kubeconfig(server, "", "client-key: /etc/key"), Some("client-key"));
        check(&kubeconfig(server, "", "as: system:admin"), Some("the field as"));
        check(&kubeconfig(server, ", proxy-url: \"http://elsewhere\"", ""), Some("proxy-url"));
        check(&kubeconfig(server, ", insecure-skip-tls-verify: true", ""), Some("insecure-skip-tls-verify"));
        check(&kubeconfig(server, ", certificate-authority: /etc/ca", ""), Some("certificate-authority"));
    }

    #[test]
    fn no_server_is_this_machine_or_its_cloud() {
        for server in [
            "https://169.254.169.254",
            "https://[fe80::1]:6443",
            "https://0.0.0.0:1",
            "https://[::ffff:169.254.169.254]",
        ] {
            check(&kubeconfig(server, "", ""), Some("no cluster has"));
        }
        for server in ["https://127.0.0.1:6443", "https://localhost:6443", "https://[::1]:6443"] {
            check(&kubeconfig(server, "", ""), Some("the machine that asks"));
            assert!(read(kubeconfig(server, "", "").as_bytes(), Loopback::Allowed).is_ok());
        }
        check(&kubeconfig("http://10.0.0.7", "", ""), Some("https"));
        check(&kubeconfig("https://api.my-tkc.example:6443", "", ""), None);
    }

    #[test]
    fn what_is_too_large_is_not_read() {
        check(&"x".repeat(BYTES_MAX + 1), Some("accepted are"));
    }
}
