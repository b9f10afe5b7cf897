//! `windlass release verify`: whether all parts of a release are there, can be read, and fit together.

use std::collections::BTreeSet;

use kube::ResourceExt as _;
use kube::api::{Api, ListParams};
use serde::Serialize;
use serde_json::Value;
use windlass_api::annotation;
use windlass_api::condition::ConditionType;
use windlass_api::kind::packaging::Package;
use windlass_api::kind::release::{ClusterBootstrapTemplate, OSImage, TanzuKubernetesRelease};
use windlass_api::kind::virtual_machine::VirtualMachineImage;
use windlass_api::version::{KubernetesVersion, VersionPrefix};
use windlass_plan::bootstrap::SYSTEM_NAMESPACE;
use windlass_plan::release::{Release, container_images};

use super::summaries;
use crate::changed::Changed;
use crate::client::{self, Connection, Management};
use crate::error::{Exit, Failure};
use crate::output;
use crate::release;

/// Check that all parts of a release are there, well-formed, and fit together
///
/// Of a machine image: what its annotations say, and that the images which its add-ons run are on its disk. Of a release that is an
/// object: its OS images, its packages, its template, and what the controllers found out. Ends with code 5 if something is wrong.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  windlass release verify v1.17.4")]
pub struct Verify {
    /// The release, or the beginning of its version: then all that begin so
    release: VersionPrefix,
    /// Write it as a document instead, for scripts, or the names of the objects
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Changed>,
    #[command(flatten)]
    connection: Connection,
}

/// What `release verify -o` writes.
#[derive(Serialize, schemars::JsonSchema)]
pub struct ReleaseVerification {
    release: String,
    /// Whether nothing is wrong. What is unknown is not wrong.
    well: bool,
    parts: Vec<Part>,
}

/// What was looked at.
#[derive(Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
struct Part {
    /// The object, as `Kind/name`.
    object: String,
    /// What about it.
    what: &'static str,
    state: State,
    /// What is wrong, or why it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
enum State {
    Well,
    Wrong,
    Unknown,
}

impl Verify {
    pub async fn run(self) -> Result<Exit, Failure> {
        let management = self.connection.open().await?;
        let images: Vec<VirtualMachineImage> = management.all("machine images").await?;
        let mut parts = of_images(&self.release, &images);
        let releases: Vec<TanzuKubernetesRelease> = management.all("releases").await?;
        let meant = |release: &&TanzuKubernetesRelease| says(&release.spec.version, &self.release);
        let objects: Vec<&TanzuKubernetesRelease> = releases.iter().filter(meant).collect();
        if !objects.is_empty() {
            let facts = Facts::read(&management).await?;
            parts.extend(objects.into_iter().flat_map(|release| facts.parts(release)));
        }
        if parts.is_empty() {
            let known = summaries(&management).await?.into_iter().map(|release| release.version).collect();
            return Err(release::Error::NotOne { asked: self.release, found: Vec::new(), known }.into());
        }
        let well = parts.iter().all(|part| part.state != State::Wrong);
        let report = ReleaseVerification { release: self.release.to_string(), well, parts };
        match self.output {
            Some(format) => format.tell(&report.names(), "ReleaseVerification", report)?,
            None => report.print()?,
        }
        Ok(if well { Exit::Done } else { Exit::OperationFailed })
    }
}

/// Whether a text says a version that begins so, also where it is none.
fn says(text: &str, asked: &VersionPrefix) -> bool {
    match text.parse::<KubernetesVersion>() {
        Ok(version) => asked.matches(&version),
        Err(_) => text.starts_with(asked.as_str()),
    }
}

impl Part {
    fn of(object: &str, what: &'static str, wrong: Option<String>) -> Self {
        let state = if wrong.is_some() { State::Wrong } else { State::Well };
        Self { object: object.to_owned(), what, state, why: wrong }
    }

    fn unknown(object: &str, what: &'static str, why: &str) -> Self {
        Self { object: object.to_owned(), what, state: State::Unknown, why: Some(why.to_owned()) }
    }
}

/// An error with its causes.
fn told(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(because) = cause {
        text = format!("{text}: {because}");
        cause = because.source();
    }
    text
}

/// The machine images that say a release which begins so.
fn of_images(asked: &VersionPrefix, images: &[VirtualMachineImage]) -> Vec<Part> {
    let said = |image: &VirtualMachineImage| -> Option<String> {
        let text = image.annotations().get(annotation::DISTRIBUTION.name)?;
        let read: Value = serde_json::from_str(text).ok()?;
        read["distribution"]["version"].as_str().map(str::to_owned)
    };
    let meant: Vec<(&VirtualMachineImage, String)> =
        images.iter().filter_map(|image| Some((image, said(image)?))).filter(|(_, it)| says(it, asked)).collect();
    let mut parts = Vec::new();
    for (image, version) in &meant {
        let object = format!("VirtualMachineImage/{}", image.name_any());
        let twin = meant.iter().find(|(other, said)| said == version && other.name_any() != image.name_any());
        let same = twin.map(|(other, _)| format!("VirtualMachineImage/{} says {version}, too", other.name_any()));
        parts.push(Part::of(&object, "is the only one", same));
        match Release::from_image(image) {
            Ok(release) => {
                parts.push(Part::of(&object, "can be read", None));
                parts.push(on_disk(&object, image, &release));
            }
            Err(error) => parts.push(Part::of(&object, "can be read", Some(told(&error)))),
        }
    }
    parts
}

/// Whether what add-ons run is on the disk: nodes that are not connected get it from nowhere else.
fn on_disk(object: &str, image: &VirtualMachineImage, release: &Release) -> Part {
    const WHAT: &str = "has the images of its add-ons";
    let Some(listed) = image.annotations().get(annotation::CONTAINER_IMAGES.name) else {
        return Part::unknown(object, WHAT, &format!("no annotation {} says so", annotation::CONTAINER_IMAGES));
    };
    let on_disk: BTreeSet<String> = match serde_json::from_str(listed) {
        Ok(listed) => listed,
        Err(error) => return Part::of(object, WHAT, Some(format!("{}: {error}", annotation::CONTAINER_IMAGES))),
    };
    let run = container_images(release.addons.values().flat_map(|addon| &addon.objects));
    let missing: Vec<&str> = run.difference(&on_disk).map(String::as_str).collect();
    let wrong = (!missing.is_empty()).then(|| format!("not on the disk: {}", missing.join(", ")));
    Part::of(object, WHAT, wrong)
}

/// What releases that are objects refer to.
struct Facts {
    images: Vec<OSImage>,
    templates: Vec<ClusterBootstrapTemplate>,
    packages: Vec<Package>,
}

impl Facts {
    async fn read(management: &Management) -> Result<Self, client::Error> {
        let all = ListParams::default();
        let templates: Api<ClusterBootstrapTemplate> = Api::namespaced(management.client.clone(), SYSTEM_NAMESPACE);
        let packages: Api<Package> = Api::namespaced(management.client.clone(), SYSTEM_NAMESPACE);
        let trying = client::Error::while_trying;
        Ok(Self {
            images: management.all("OS images").await?,
            templates: templates.list(&all).await.map_err(trying("list the templates of releases"))?.items,
            packages: packages.list(&all).await.map_err(trying("list the packages of releases"))?.items,
        })
    }

    fn parts(&self, release: &TanzuKubernetesRelease) -> Vec<Part> {
        let name = release.name_any();
        let object = format!("TanzuKubernetesRelease/{name}");
        let template = self.templates.iter().find(|template| template.name_any() == name);
        let read = Release::from_objects(release, &self.images, template, &self.packages);
        let mut parts =
            vec![Part::of(&object, "can be read, with all that it refers to", read.err().map(|e| told(&e)))];
        let conditions = release.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        for (type_, what) in [(ConditionType::Ready, "is ready"), (ConditionType::Compatible, "is compatible")] {
            parts.push(match type_.among(conditions) {
                Some(condition) if condition.status == "True" => Part::of(&object, what, None),
                Some(condition) if condition.status == "False" => {
                    Part::of(&object, what, Some(format!("{}: {}", condition.reason, condition.message)))
                }
                Some(condition) => Part::unknown(&object, what, &condition.message),
                None => Part::unknown(&object, what, "nobody has looked at it yet"),
            });
        }
        parts
    }
}

impl ReleaseVerification {
    fn names(&self) -> String {
        let objects: BTreeSet<&str> = self.parts.iter().map(|part| part.object.as_str()).collect();
        objects.into_iter().collect::<Vec<_>>().join("\n")
    }

    fn print(&self) -> Result<(), output::Error> {
        let sign = |state: State| match state {
            State::Well => "✔ well",
            State::Wrong => "✖ wrong",
            State::Unknown => "… unknown",
        };
        let rows = self.parts.iter().map(|part| {
            let why = part.why.clone().unwrap_or_default();
            vec![sign(part.state).to_owned(), part.object.clone(), part.what.to_owned(), why]
        });
        output::data(&output::table(&["", "OBJECT", "WHAT", "WHY"], rows))
    }
}
