//! Who asks.
//!
//! Whoever lets a request in puts a [`User`] into its extensions: the HTTPS listener the one that the credentials name, an
//! in-process caller usually [`User::admin`]. Being known is being admin here: RBAC objects are stored, not enforced.

use std::collections::BTreeMap;

/// The group whose members may do everything.
pub const GROUP_MASTERS: &str = "system:masters";
/// The group of everybody with valid credentials.
pub const GROUP_AUTHENTICATED: &str = "system:authenticated";
/// The group of everybody else.
pub const GROUP_UNAUTHENTICATED: &str = "system:unauthenticated";

/// The user that a request is made for, as `SelfSubjectReview` and admission see it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    /// `system:admin`, `kubernetes-admin`, ….
    pub name: String,
    /// The groups, in the order that the credentials name them.
    pub groups: Vec<String>,
    /// Empty where the credentials carry none.
    pub uid: String,
    /// What else the credentials say.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user whose credentials were accepted: `groups`, and [`GROUP_AUTHENTICATED`].
    pub fn authenticated(name: impl Into<String>, groups: impl IntoIterator<Item = String>) -> Self {
        let mut groups: Vec<String> = groups.into_iter().collect();
        if !groups.iter().any(|group| group == GROUP_AUTHENTICATED) {
            groups.push(GROUP_AUTHENTICATED.to_owned());
        }
        Self { name: name.into(), groups, ..Self::default() }
    }

    /// The in-process user: whoever holds the server's value has no credentials to show.
    pub fn admin() -> Self {
        Self::authenticated("system:admin", [GROUP_MASTERS.to_owned()])
    }

    /// Somebody without credentials. Health probes may be; nobody else gets past the listener.
    pub fn anonymous() -> Self {
        let groups = vec![GROUP_UNAUTHENTICATED.to_owned()];
        Self { name: "system:anonymous".to_owned(), groups, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_in_process_user_is_an_authenticated_master() {
        let admin = User::admin();
        assert_eq!(admin.name, "system:admin");
        assert_eq!(admin.groups, [GROUP_MASTERS, GROUP_AUTHENTICATED]);
    }

    #[test]
    fn a_group_is_not_listed_twice() {
        let user = User::authenticated("jane", [GROUP_AUTHENTICATED.to_owned()]);
        assert_eq!(user.groups, [GROUP_AUTHENTICATED]);
    }
}
