//! A cluster of a class: what is asked for is found out and verified, and only then anything is written.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::SignedDuration;
use kube::api::{Api, ListParams};
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::release::{OSImage, TanzuKubernetesRelease};
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::kind::topology::ClusterClass;
use windlass_api::label;
use windlass_api::name::{ClusterName, ReleaseName};
use windlass_api::version::VersionPrefix;
use windlass_plan::bootstrap::SYSTEM_NAMESPACE;
use windlass_plan::creation::{Given, Manifest, Outcome, Proxy, Wanted, checks, misfit, operation};
use windlass_plan::legacy::{self, Configuration};
use windlass_plan::resolve::admit::{Request, admit, class_of};
use windlass_plan::resolve::hold::HoldBy;
use windlass_plan::roster::findings;

use super::DryRun;
use super::error::Error;
use super::file::{Beside, File};
use super::follow::Follow;
use super::write;
use crate::changed::Changed;
use crate::client::{self, Management};
use crate::error::{Exit, Failure};
use crate::facts;
use crate::output;
use crate::roster;

/// What was asked for on the command line.
pub struct Order<'a> {
    pub management: &'a Management,
    pub file: &'a File,
    pub name: Option<&'a ClusterName>,
    pub release: Option<&'a VersionPrefix>,
    pub dry_run: Option<DryRun>,
    pub wait: bool,
    pub patience: Duration,
    pub output: Option<Changed>,
}

/// A flat configuration that was converted.
struct Conversion {
    objects: Vec<Value>,
    left_out: BTreeMap<String, String>,
}

/// What a cluster is resolved to.
struct Resolved {
    release: Option<ReleaseName>,
    has_packages: bool,
}

impl Order<'_> {
    /// Creates what a flat configuration asks for.
    pub async fn convert(&self, configuration: &Configuration) -> Result<Exit, Failure> {
        let flat = |source| Error::Flat { file: self.file.shown(), source };
        let class = configuration.class().map_err(flat)?;
        let found = self.find_class(&class).await?;
        let known: Option<BTreeSet<String>> =
            found.as_ref().map(|class| class.spec.variables.iter().map(|variable| variable.name.clone()).collect());
        let namespace = found.as_ref().and_then(ResourceExt::namespace);
        let namespace = namespace.as_deref().filter(|namespace| *namespace != self.management.namespace.as_str());
        let beside = legacy::Beside {
            name: self.name,
            namespace: &self.management.namespace,
            release: self.release,
            class_namespace: namespace,
            variables: known.as_ref(),
        };
        let converted = legacy::convert(configuration, &beside).map_err(flat)?;
        let conversion = Conversion { objects: converted.objects.clone(), left_out: converted.left_out };
        self.carry_out(converted.objects, Some(conversion)).await
    }

    /// Creates what the documents ask for.
    pub async fn create(&self, documents: Vec<Value>) -> Result<Exit, Failure> {
        self.carry_out(documents, None).await
    }

    async fn carry_out(&self, documents: Vec<Value>, conversion: Option<Conversion>) -> Result<Exit, Failure> {
        let wrong = |source| Error::Manifest { file: self.file.shown(), source };
        let given = Given { name: self.name, namespace: &self.management.namespace, release: self.release };
        let mut manifest = Manifest::of(documents, &given).map_err(wrong)?;
        let cluster = manifest.cluster().map_err(wrong)?;
        for field in manifest.strangers().map_err(wrong)? {
            output::warning(&format!(
                "{field}: Windlass does not know this field of a Cluster; it is left to the server"
            ));
        }
        self.refuse_existing(&manifest.name).await?;
        let own_class = own_class(&manifest, &cluster);
        let resolved = self.resolve(&manifest.name, &cluster, own_class.clone()).await?;
        let beside = conversion.map(|conversion| {
            let beside = self.file.beside(&manifest.name, &conversion.objects, &conversion.left_out)?;
            beside.is_there().map(|is_there| (beside, is_there, conversion))
        });
        let beside = beside.transpose()?;
        self.verify(&cluster, resolved.release.clone()).await?;
        self.stamp(&mut manifest);
        if self.dry_run == Some(DryRun::Client) {
            self.tell_conversion(beside.as_ref(), false);
            return self.tell(&manifest.cluster().map_err(wrong)?, "created (dry run)");
        }
        let before = write::place(self.management, &manifest.before).await?;
        // Without its class a server cannot judge it.
        let tried = match own_class {
            Some(_) => manifest.cluster().map_err(wrong)?,
            None => write::try_out(self.management, &manifest).await?,
        };
        self.management.warnings().iter().for_each(|warning| output::warning(warning));
        if self.dry_run == Some(DryRun::Server) {
            self.tell_conversion(beside.as_ref(), false);
            write::tell(&before);
            return self.tell(&tried, "created (server dry run)");
        }
        if let Some((beside, _, _)) = &beside {
            beside.keep()?;
        }
        self.tell_conversion(beside.as_ref(), true);
        let created = write::write(self.management, &manifest, before).await?;
        self.management.warnings().iter().for_each(|warning| output::warning(warning));
        if !self.wait {
            output::note(&format!("Next: kubectl get cluster,machines -n {}", self.management.namespace));
            return self.tell(&created, "created");
        }
        output::say(&format!("cluster {} created: waiting until it runs", manifest.name));
        let follow = Follow {
            management: self.management,
            name: &manifest.name,
            has_packages: resolved.has_packages,
            patience: self.patience,
        };
        let running = follow.run().await?;
        self.tell(&running, "created, and running")
    }

    /// What is in the place of the cluster is not touched.
    async fn refuse_existing(&self, name: &ClusterName) -> Result<(), Failure> {
        let namespace = self.management.namespace.clone();
        let trying = |error| client::Error::while_trying(&format!("read the cluster {name}"))(error);
        let cluster = self.management.api::<Cluster>().get_opt(name.as_str()).await.map_err(trying)?;
        if cluster.is_some() {
            return Err(Error::Exists { kind: "Cluster", name: name.clone(), namespace }.into());
        }
        let tanzu = self.management.api::<TanzuKubernetesCluster>().get_opt(name.as_str()).await.map_err(trying)?;
        match tanzu {
            Some(_) => Err(Error::Exists { kind: "TanzuKubernetesCluster", name: name.clone(), namespace }.into()),
            None => Ok(()),
        }
    }

    /// The class of that name: beside the cluster, or where the releases are.
    async fn find_class(&self, name: &str) -> Result<Option<ClusterClass>, client::Error> {
        for namespace in [self.management.namespace.as_str(), SYSTEM_NAMESPACE] {
            let found = self.class(namespace, name).await?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    async fn class(&self, namespace: &str, name: &str) -> Result<Option<ClusterClass>, client::Error> {
        let api: Api<ClusterClass> = Api::namespaced(self.management.client.clone(), namespace);
        api.get_opt(name).await.map_err(client::Error::while_trying(&format!("read the ClusterClass {name}")))
    }

    /// Which release it gets: what admission will say, said before anything is written.
    async fn resolve(
        &self,
        name: &ClusterName,
        cluster: &Cluster,
        own_class: Option<ClusterClass>,
    ) -> Result<Resolved, Failure> {
        let (namespace, class) = class_of(cluster).unwrap_or_default();
        let found = match own_class {
            Some(found) => Some(found),
            None => self.class(&namespace, &class).await?,
        };
        let Some(found) = found else { return Err(self.no_class(namespace, class).await?.into()) };
        if let Some(misfit) = misfit(cluster, &found) {
            let misfit = Box::new(misfit);
            return Err(Error::Misfit { name: name.clone(), class, namespace, misfit }.into());
        }
        let releases: Vec<TanzuKubernetesRelease> = self.all("releases").await?;
        let os_images: Vec<OSImage> = self.all("OS images").await?;
        let admitted = admit(&Request {
            cluster,
            before: None,
            class: Some(&found),
            releases: &releases,
            os_images: &os_images,
            control_plane: None,
            hold_by: HoldBy::default(),
            unasked: None,
        });
        let admitted = admitted.map_err(|refused| Error::Release { name: name.clone(), why: refused.to_string() })?;
        let release = admitted.resolved.map(|resolved| resolved.release);
        if let (None, Some(asked)) = (&release, self.release) {
            return Err(Error::NotResolved { release: asked.clone(), class }.into());
        }
        let is_it =
            |tkr: &&TanzuKubernetesRelease| Some(tkr.name_any().as_str()) == release.as_ref().map(ReleaseName::as_str);
        let has_packages = releases.iter().find(is_it).is_some_and(|tkr| tkr.spec.bootstrap_packages.is_some());
        Ok(Resolved { release, has_packages })
    }

    async fn no_class(&self, namespace: String, class: String) -> Result<Error, client::Error> {
        let all: Vec<ClusterClass> = self.all("classes").await?;
        let shown = |class: &ClusterClass| format!("{}/{}", class.namespace().unwrap_or_default(), class.name_any());
        let known: Vec<String> = all.iter().map(shown).collect();
        let known = if known.is_empty() { String::new() } else { format!("; there are {}", known.join(", ")) };
        Ok(Error::NoClass { class, namespace, known })
    }

    async fn all<K>(&self, what: &str) -> Result<Vec<K>, client::Error>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
    {
        let listed = Api::<K>::all(self.management.client.clone()).list(&ListParams::default()).await;
        match listed.map_err(client::Error::while_trying(&format!("list the {what}"))) {
            Ok(listed) => Ok(listed.items),
            // Where nobody has installed the kind there are none.
            Err(client::Error::UnknownKind { .. }) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Verifies what can be, and says what was found. What has failed ends it.
    async fn verify(&self, cluster: &Cluster, release: Option<ReleaseName>) -> Result<(), Error> {
        let wanted = Wanted { release, proxy: Proxy::of_cluster(cluster) };
        let found = checks(&facts::read(self.management, Some(wanted)).await);
        if let Some(failed) = found.iter().find(|check| check.outcome == Outcome::Failed) {
            return Err(Error::Check { check: failed.clone() });
        }
        output::say("Verified before anything is written:");
        for check in &found {
            let sign = match check.outcome {
                Outcome::Well => "✔",
                Outcome::Unknown => "-",
                Outcome::Warning | Outcome::Failed => continue,
            };
            output::say(&format!("  {sign} {}: {}", check.subject, check.said));
        }
        self.verify_pods().await;
        for check in found.iter().filter(|check| check.outcome == Outcome::Warning) {
            output::warning(&format!("{}: {}", check.subject, check.said));
        }
        Ok(())
    }

    /// What should run in the management cluster and does not: whoever creates a cluster needs most of it.
    async fn verify_pods(&self) {
        let wrong = match roster::of_management(self.management).await {
            Ok(facts) => findings(&facts),
            Err(gap) => return output::say(&format!("  - pods of the management cluster: {}", gap.brief())),
        };
        let Some(first) = wrong.first() else {
            return output::say("  ✔ pods of the management cluster: all that should be there are");
        };
        let more = if wrong.len() > 1 { format!(", and {} more", wrong.len() - 1) } else { String::new() };
        output::warning(&format!("management cluster: {first}{more}: see windlass verify --management"));
    }

    /// Says on the cluster that it is being created, by somebody who has that much patience.
    fn stamp(&self, manifest: &mut Manifest) {
        let patience = SignedDuration::try_from(self.patience).unwrap_or(SignedDuration::MAX);
        for (key, value) in operation(self.management.now(), patience) {
            manifest.object["metadata"]["annotations"][key] = json!(value);
        }
    }

    fn tell_conversion(&self, beside: Option<&(Beside, bool, Conversion)>, kept: bool) {
        let Some((beside, was_there, conversion)) = beside else { return };
        let what = match (kept, was_there) {
            (false, _) => "would be converted to",
            (true, true) => "was converted before, to",
            (true, false) => "is converted to",
        };
        let shown = self.file.shown();
        output::say(&format!("{shown} is a flat configuration: it {what} {}, and that is created", beside.shown()));
        for (key, why) in &conversion.left_out {
            output::say(&format!("  not carried over: {key}: {why}"));
        }
    }

    fn tell(&self, cluster: &Cluster, what: &str) -> Result<Exit, Failure> {
        let name = cluster.name_any();
        if let Some(format) = self.output {
            let mut cluster = cluster.clone();
            cluster.metadata.managed_fields = None;
            format.object(&format!("cluster.cluster.x-k8s.io/{name}"), &cluster)?;
            return Ok(Exit::Done);
        }
        let release = cluster.labels().get(label::RELEASE.name).and_then(|name| name.parse::<ReleaseName>().ok());
        let release = release.and_then(|name| name.version().ok()).map(|version| version.to_string());
        let version = cluster.spec.topology.as_ref().map(|topology| topology.version.clone());
        let at = release.map(|release| format!("release {release}"));
        let at = at.or_else(|| version.map(|version| format!("Kubernetes {version}"))).unwrap_or_default();
        output::data(&format!("cluster {name} {what}: {at}"))?;
        Ok(Exit::Done)
    }
}

/// The class of a cluster, where it comes with it.
fn own_class(manifest: &Manifest, cluster: &Cluster) -> Option<ClusterClass> {
    let (_, name) = class_of(cluster)?;
    let is_it = |object: &&Value| object["kind"] == "ClusterClass" && object["metadata"]["name"] == name.as_str();
    manifest.before.iter().find(is_it).and_then(|class| serde_json::from_value(class.clone()).ok())
}
