//! How a cluster is whose machines Cluster API rolls, in one word: the same words, whatever asks for its release.

/// How a cluster is, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// It is to go.
    Deleting,
    /// Its owner has paused it.
    Paused,
    /// Its API has not answered yet.
    Creating,
    /// Its update has given up.
    UpdateFailed,
    /// Nothing goes on before a person acts, or what is waited for has been so long that waiting will not help.
    Stalled,
    /// It is not what it was asked to be yet.
    Updating,
    /// Somebody has changed what its release owns, and that is being undone.
    Drifted,
    /// It is as it was asked to be, and something in it does not work.
    Unhealthy,
    /// It is what it was asked to be.
    Running,
}

impl Word {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deleting => "deleting",
            Self::Paused => "paused",
            Self::Creating => "creating",
            Self::UpdateFailed => "updateFailed",
            Self::Stalled => "stalled",
            Self::Updating => "updating",
            Self::Drifted => "drifted",
            Self::Unhealthy => "unhealthy",
            Self::Running => "running",
        }
    }
}
