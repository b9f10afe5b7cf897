//! A cluster whose machines Cluster API replaces: one write of its Cluster asks for another release, and what follows from that is
//! waited for.

use kube::api::{Patch, PatchParams};
use serde::Serialize;
use serde_json::Value;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::name::ClusterName;

use super::{Outcome, Upgrade, tell_warnings};
use crate::client::{self, FIELD_MANAGER, Management};
use crate::doing::Sort;
use crate::error::{Exit, Failure};
use crate::output;

/// What `upgrade -o` writes of it.
#[derive(Serialize, schemars::JsonSchema)]
pub struct RolledReport<'a> {
    cluster: &'a ClusterName,
    from: &'a str,
    to: &'a str,
    outcome: Outcome,
}

/// What is asked of a Cluster.
pub(super) struct Asked {
    /// Which sort it is of.
    pub sort: Sort,
    /// The release that it is asked to have so far.
    pub from: String,
    /// What asks for another.
    pub patch: Value,
    /// Where in it a release is named.
    pub release: fn(&Cluster) -> String,
}

impl Upgrade {
    /// Begins it. Which release that comes to, and whether it may be, is for the server to say.
    pub(super) async fn roll(&self, management: &Management, asked: &Asked) -> Result<Exit, Failure> {
        let tried = self.write(management, &asked.patch, true).await?;
        let (sort, from, to) = (asked.sort, asked.from.as_str(), (asked.release)(&tried));
        let to = to.as_str();
        let follow = || self.patience.wait_for_release(management, sort, &self.cluster, to);
        let tell = |outcome| self.tell_rolled(sort, &RolledReport { cluster: &self.cluster, from, to, outcome });
        tell_warnings(management);
        if from == to {
            return tell(if follow().await? { Outcome::Reached } else { Outcome::NothingToDo });
        }
        if self.dry_run {
            return tell(Outcome::DryRun);
        }
        if !self.yes {
            self.ask(from, to, "")?;
        }
        self.write(management, &asked.patch, false).await?;
        tell_warnings(management);
        if follow().await? {
            return tell(Outcome::Succeeded);
        }
        output::note(&format!("Next: windlass status {} --watch", self.cluster));
        tell(Outcome::Begun)
    }

    async fn write(&self, management: &Management, patch: &Value, dry_run: bool) -> Result<Cluster, client::Error> {
        let field_manager = Some(FIELD_MANAGER.to_owned());
        let parameters = PatchParams { dry_run, field_manager, ..PatchParams::default() };
        let patched = management.api::<Cluster>().patch(self.cluster.as_str(), &parameters, &Patch::Merge(patch)).await;
        patched.map_err(client::Error::while_trying(&format!("upgrade {} to {}", self.cluster, self.to)))
    }

    fn tell_rolled(&self, sort: Sort, report: &RolledReport<'_>) -> Result<Exit, Failure> {
        let RolledReport { from, to, outcome, .. } = *report;
        let name = sort.written(&self.cluster);
        match (self.output, sort) {
            (None, _) => output::data(&outcome.said(&self.cluster, from, to, to))?,
            (Some(_), Sort::ByLabel) if self.patience.is_in_lines() => {
                output::data(&output::line("LabelUpgradeReport", report)?)?;
            }
            (Some(_), _) if self.patience.is_in_lines() => {
                output::data(&output::line("ClassUpgradeReport", report)?)?;
            }
            (Some(format), Sort::ByLabel) => format.tell(&name, "LabelUpgradeReport", report)?,
            (Some(format), _) => format.tell(&name, "ClassUpgradeReport", report)?,
        }
        Ok(Exit::Done)
    }
}
