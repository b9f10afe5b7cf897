//! By which signs a text is known to be secret.

use std::ops::Range;

/// What is public in the Secret that a machine boots from: how the rest is written.
pub(super) const BOOTSTRAP_FORMATS: [&str; 2] = ["cloud-config", "ignition"];

/// Fields that are secret wherever they are.
pub(super) const SECRET_FIELDS: [&str; 16] = [
    "token",
    "tlsBootstrapToken",
    "certificateKey",
    "passwd",
    "hashedPasswd",
    "password",
    "passphrase",
    "clientSecret",
    "accessToken",
    "refreshToken",
    "bearerToken",
    "secretKey",
    "privateKey",
    "apiKey",
    "client-key-data",
    "additionalConfig",
];

/// Words that make a name one of something secret.
const WORDS: [&str; 12] = [
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "credential",
    "credentials",
    "apikey",
    "accesskey",
    "privatekey",
    "authorization",
];
/// Words that do so before a `key`.
const BEFORE_KEY: [&str; 7] = ["api", "access", "private", "secret", "signing", "encryption", "client"];
/// Last words of names that tell where or how something secret is, and not what.
const ABOUT: [&str; 15] = [
    "name",
    "names",
    "file",
    "path",
    "dir",
    "ref",
    "namespace",
    "ttl",
    "type",
    "enabled",
    "count",
    "owner",
    "issuer",
    "audience",
    "class",
];

/// Beginnings by which services make their credentials known.
const BEGINNINGS: [&str; 10] =
    ["ghp_", "gho_", "ghs_", "ghu_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "hvs.", "AKIA"];
/// Fewer characters than this after such a beginning are no credential.
const BODY_MIN: usize = 12;

/// The lengths of the two parts of a bootstrap token.
const TOKEN_PARTS: [usize; 2] = [6, 16];

/// As long as this, with all sorts of characters and no blank, a value is random rather than a word.
const RANDOM_MIN: usize = 24;

/// The words of a name, in lower case: of `dbPassword`, `DB_PASSWORD` and `example.com/db-password` alike.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut lower = false;
    for sign in name.chars() {
        if !sign.is_ascii_alphanumeric() || (lower && sign.is_ascii_uppercase()) {
            words.push(String::new());
        }
        lower = sign.is_ascii_lowercase();
        if let Some(word) = words.last_mut().filter(|_| sign.is_ascii_alphanumeric()) {
            word.push(sign.to_ascii_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether a value of this name is secret.
pub(super) fn is_secret_name(name: &str, value: &str) -> bool {
    let words = words(name);
    // A reference says where it is.
    let refers = words.windows(2).any(|pair| pair[0] == "from");
    if refers || is_plain(value) || words.last().is_some_and(|last| ABOUT.contains(&last.as_str())) {
        return false;
    }
    let is_key = |pair: &[String]| BEFORE_KEY.contains(&pair[0].as_str()) && pair[1] == "key";
    words.iter().any(|word| WORDS.contains(&word.as_str())) || (words.windows(2).any(is_key) && !value.starts_with('/'))
}

/// Whether a value is a number or says yes or no: nothing that somebody would keep to themselves.
fn is_plain(value: &str) -> bool {
    matches!(value, "true" | "false" | "null" | "~") || (!value.is_empty() && value.parse::<f64>().is_ok())
}

/// Whether a value looks as if it was made by chance.
pub(super) fn is_random(value: &str) -> bool {
    let sorts: [fn(&char) -> bool; 3] = [char::is_ascii_uppercase, char::is_ascii_lowercase, char::is_ascii_digit];
    value.len() >= RANDOM_MIN
        && value.chars().all(|sign| sign.is_ascii_alphanumeric() || "+/=_-".contains(sign))
        && !value.starts_with('/')
        && sorts.iter().all(|sort| value.chars().any(|sign| sort(&sign)))
}

/// The name and the place of what is secret in a line such as `password: x`, `password = "x"` or `"password": "x",`.
pub(super) fn secret_line(line: &str) -> Option<(&str, Range<usize>)> {
    let at = line.find([':', '='])?;
    let name = line[..at].trim().trim_start_matches("- ").trim_matches(['"', '\'']);
    let is_name = |sign: char| sign.is_ascii_alphanumeric() || "_-./".contains(sign);
    let value = line[at + 1..].trim().trim_end_matches(',').trim_matches(['"', '\'']);
    let is_nested = value.is_empty() || value.starts_with(['{', '[', '|', '>', '&', '*', '=']);
    let is_secret = is_secret_name(name, value) || SECRET_FIELDS.contains(&name);
    if !name.chars().all(is_name) || is_nested || is_plain(value) || !is_secret {
        return None;
    }
    let start = at + 1 + line[at + 1..].find(value)?;
    Some((name, start..start + value.len()))
}

/// The text without the credentials that are in it; `None` where there are none. `stand_in` is told what they are.
pub(super) fn scrub(text: &str, mut stand_in: impl FnMut(&str, &str) -> String) -> Option<String> {
    if text.contains("PRIVATE KEY-----") {
        return Some(stand_in("a private key", text));
    }
    if is_kubeconfig(text) {
        return Some(stand_in("a kubeconfig", text));
    }
    if let Some((flag, value)) = text.strip_prefix("--").and_then(|flag| flag.split_once('='))
        && is_secret_name(flag, value)
    {
        return Some(format!("--{flag}={}", stand_in(&format!("the argument --{flag}"), value)));
    }
    let found = found(text);
    if found.is_empty() {
        return None;
    }
    let (mut clean, mut end) = (String::with_capacity(text.len()), 0);
    for (what, range) in found {
        clean.push_str(&text[end..range.start]);
        clean.push_str(&stand_in(what, &text[range.clone()]));
        end = range.end;
    }
    clean.push_str(&text[end..]);
    Some(clean)
}

/// Whether a text is a kubeconfig with credentials in it. One that only names files is as public as those who use it.
fn is_kubeconfig(text: &str) -> bool {
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    has(&["clusters:", "\"clusters\""])
        && has(&["users:", "\"users\""])
        && has(&["token:", "\"token\"", "password:", "\"password\"", "client-key-data", "auth-provider", "exec:"])
}

/// What is a credential by its looks, from the first to the last.
fn found(text: &str) -> Vec<(&'static str, Range<usize>)> {
    let mut found = Vec::new();
    let mut before = "";
    let mut rest = 0;
    for word in text.split(|sign: char| !(sign.is_ascii_alphanumeric() || "._-".contains(sign))) {
        let range = rest..rest + word.len();
        // What is between two words is one character.
        rest = range.end + text[range.end..].chars().next().map_or(0, char::len_utf8);
        if is_credential(word) || (["Bearer", "Basic"].contains(&before) && word.len() >= BODY_MIN) {
            found.push(("a credential", range));
        }
        before = word;
    }
    for (at, _) in text.match_indices("://") {
        let start = at + "://".len();
        let end = text[start..].find(['/', ' ', '"', '\'', '\n']).map_or(text.len(), |length| start + length);
        let user = text[start..end].rfind('@').map(|length| start..start + length);
        if let Some(user) = user.filter(|user| text[user.clone()].contains(':')) {
            found.retain(|(_, range)| range.end <= user.start || range.start >= user.end);
            found.push(("the user in an address", user));
        }
    }
    found.sort_by_key(|(_, range)| range.start);
    found
}

fn is_credential(word: &str) -> bool {
    let begins = BEGINNINGS.iter().any(|beginning| {
        word.strip_prefix(beginning)
            .is_some_and(|body| body.len() >= BODY_MIN && body.chars().any(|sign| sign.is_ascii_alphanumeric()))
    });
    let parts: Vec<&str> = word.split('.').collect();
    let is_jwt = word.starts_with("eyJ") && parts.len() == 3 && word.len() >= RANDOM_MIN;
    begins || is_jwt || is_bootstrap_token(&parts)
}

/// A word of two parts that have the lengths of a token's and are no words: there is a digit in the second.
fn is_bootstrap_token(parts: &[&str]) -> bool {
    let [id, secret] = parts else { return false };
    [id.len(), secret.len()] == TOKEN_PARTS
        && [id, secret].iter().all(|part| part.chars().all(|sign| sign.is_ascii_lowercase() || sign.is_ascii_digit()))
        && secret.chars().any(|sign| sign.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_what_is_secret_are_known() {
        let check = |name: &str, value: &str, expected| assert_eq!(is_secret_name(name, value), expected, "{name}");
        check("DB_PASSWORD", "hunter2", true);
        check("dbPassword", "hunter2", true);
        check("example.com/api-token", "x", true);
        check("AWS_ACCESS_KEY_ID", "x", true);
        check("kubelet-client-key", "/etc/kubernetes/pki/a.key", false);
        check("service-account-private-key-file", "/etc/kubernetes/pki/sa.key", false);
        check("PASSWORD_FILE", "/run/password", false);
        check("secretName", "a", false);
        check("enable-bootstrap-token-auth", "true", false);
        check("example.com/inject-ca-from-secret", "a/b", false);
        check("monkey", "banana", false);
    }

    #[test]
    fn texts_that_are_credentials_are_known() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(scrub(text, |what, _| format!("<{what}>")).as_deref(), expected, "{text}");
        };
        check("a word, and another", None);
        check("kubeadm join --token abcdef.0123456789abcdef", Some("kubeadm join --token <a credential>"));
        check("policy.networkmanagers", None);
        check("http://u:p@proxy:3128/x", Some("http://<the user in an address>@proxy:3128/x"));
        check("http://proxy:3128/@x", None);
        check("Bearer 0123456789abcdef!", Some("Bearer <a credential>!"));
        check("é eyJhbGciOi.eyJzdWIiOiIx.c2lnbmF0dXJl ü", Some("é <a credential> ü"));
        check("--oidc-client-secret=x", Some("--oidc-client-secret=<the argument --oidc-client-secret>"));
        check("-----BEGIN RSA PRIVATE KEY-----\nx", Some("<a private key>"));
        check("clusters: []\nusers:\n- user: {token: x}\n", Some("<a kubeconfig>"));
        check("clusters: []\nusers:\n- user: {tokenFile: /x}\n", None);
    }

    #[test]
    fn lines_that_say_something_secret_are_known() {
        let check = |line: &str, expected: Option<&str>| {
            let found = secret_line(line).map(|(_, range)| &line[range]);
            assert_eq!(found, expected, "{line}");
        };
        check("password = \"hunter2\"\n", Some("hunter2"));
        check("  - token: abc", Some("abc"));
        check("  \"apiKey\": \"abc\",", Some("abc"));
        check("automountServiceAccountToken: true", None);
        check("secretKeyRef:", None);
        check("secretName: calico-etcd-secrets", None);
        check("tokenFile: /var/run/token", None);
        check("# the token: of an add-on", None);
    }
}
