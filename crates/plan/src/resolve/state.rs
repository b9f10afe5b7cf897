//! Whether clusters may still be led to a release. Whatever its state, a cluster that has the release keeps it.

use crate::release::ReleaseState;

impl ReleaseState {
    /// Whether a hint may be resolved to such a release.
    pub fn is_for_hints(self) -> bool {
        match self {
            Self::Active => true,
            Self::Preview | Self::Wip | Self::Deprecated => false,
        }
    }

    /// Whether a cluster may be led to such a release by its full version. What can be tried is for those who name it.
    pub fn is_for_the_asking(self) -> bool {
        match self {
            Self::Active | Self::Preview => true,
            Self::Wip | Self::Deprecated => false,
        }
    }
}
