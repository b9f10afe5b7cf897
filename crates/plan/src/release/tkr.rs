//! A release as objects: a `TanzuKubernetesRelease`, the images that it can be on, and the template and packages that clusters
//! of it get.
//!
//! Whoever makes a release writes these objects one after the other, so any of them may be missing for a while. A release
//! is not there before all of it is.

use std::collections::BTreeSet;

use windlass_api::kind::packaging::Package;
use windlass_api::kind::release::{
    BootstrapPackage, BootstrapPackages, ClusterBootstrapTemplate, ContainerImage, LocalReference, OSImage,
    TanzuKubernetesRelease, ValuesFrom,
};
use windlass_api::label;
use windlass_api::name::ObjectName;
use windlass_api::version::KubernetesVersion;

use super::error::{Subject, quoted, quoted_list};
use super::package::{PackageRelease, PackageSlot, PackageValues, PackageVersion};
use super::{ImageTag, MachineImage, Release, ReleaseError, ReleaseState, Spelling};

/// The name that all versions of a package share has at least so many parts, as Carvel has it.
const REF_NAME_PARTS_MIN: usize = 3;

impl Release {
    /// Reads the release of a `TanzuKubernetesRelease`: all of it, or nothing.
    ///
    /// Of `os_images` and `packages` those count that the release refers to; `template` is the `ClusterBootstrapTemplate` of
    /// its name. A release without `bootstrapPackages` is from a time before packages: it has none, and no template.
    pub fn from_objects(
        tkr: &TanzuKubernetesRelease,
        os_images: &[OSImage],
        template: Option<&ClusterBootstrapTemplate>,
        packages: &[Package],
    ) -> Result<Self, ReleaseError> {
        let subject = Subject::new("TanzuKubernetesRelease", None, tkr.metadata.name.as_deref());
        let distribution: KubernetesVersion = subject.read("spec.version", &tkr.spec.version)?;
        let (name, wanted) = (tkr.metadata.name.as_deref().unwrap_or_default(), distribution.label().to_string());
        if name != wanted {
            let problem = format!("is {}, and should be {}, as spec.version has it", quoted(name), quoted(&wanted));
            return Err(subject.wrong("metadata.name", problem));
        }
        let kubernetes = subject.read("spec.kubernetes.version", &tkr.spec.kubernetes.version)?;
        let mut release = Self::of(Spelling::Objects, distribution, kubernetes);
        release.read_components(&subject, tkr)?;
        release.images = images(&subject, &tkr.spec.os_images, os_images, &release.kubernetes)?;
        if tkr.metadata.labels.as_ref().is_some_and(|labels| label::DEACTIVATED.is_in(labels)) {
            release.state = ReleaseState::Deprecated;
        }
        match (&tkr.spec.bootstrap_packages, template) {
            (None, None) => {}
            (None, Some(_)) => {
                let problem = "is missing, although the release has a ClusterBootstrapTemplate; \
                               accepted are a list with its packages, or no template";
                return Err(subject.wrong("spec.bootstrapPackages", problem));
            }
            (Some(_), None) => {
                let problem = format!("needs a ClusterBootstrapTemplate {name}, and there is none");
                return Err(subject.wrong("spec.bootstrapPackages", problem));
            }
            (Some(listed), Some(template)) => {
                release.choices = choices(&subject, listed, packages)?;
                release.packages = Template::new(name, template, &release.choices)?.packages()?;
            }
        }
        Ok(release.sealed())
    }

    fn read_components(&mut self, subject: &Subject, tkr: &TanzuKubernetesRelease) -> Result<(), ReleaseError> {
        let spec = &tkr.spec.kubernetes;
        let repository = spec.image_repository.as_deref().filter(|repository| !repository.is_empty());
        let component = |field: &str, image: Option<&ContainerImage>| component(subject, field, image, repository);
        self.etcd = component("etcd", spec.etcd.as_ref())?;
        self.coredns = component("coredns", spec.coredns.as_ref())?;
        self.pause = component("pause", spec.pause.as_ref())?;
        self.kube_vip = component("kube-vip", spec.kube_vip.as_ref())?;
        self.image_repository = repository.map(str::to_owned);
        Ok(())
    }
}

/// A component that is named has an image that is fully known: otherwise it would depend on kubeadm which one it is.
fn component(
    subject: &Subject,
    field: &str,
    image: Option<&ContainerImage>,
    repository: Option<&str>,
) -> Result<Option<ImageTag>, ReleaseError> {
    let Some(image) = image else { return Ok(None) };
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let Some(tag) = given(&image.image_tag) else {
        return Err(subject.wrong(format!("spec.kubernetes.{field}.imageTag"), "is missing"));
    };
    let Some(repository) = given(&image.image_repository).or(repository.map(str::to_owned)) else {
        let problem = "is missing, and so is spec.kubernetes.imageRepository, which would count for all";
        return Err(subject.wrong(format!("spec.kubernetes.{field}.imageRepository"), problem));
    };
    Ok(Some(ImageTag { repository, tag }))
}

/// The images that a release refers to.
fn images(
    tkr: &Subject,
    listed: &[LocalReference],
    os_images: &[OSImage],
    kubernetes: &KubernetesVersion,
) -> Result<Vec<MachineImage>, ReleaseError> {
    let mut seen = BTreeSet::new();
    let mut images = Vec::new();
    for (position, reference) in listed.iter().enumerate() {
        let key = format!("spec.osImages[{position}].name");
        let name = tkr.read(key.as_str(), &reference.name)?;
        if !seen.insert(reference.name.as_str()) {
            return Err(tkr.wrong(key, format!("is {} once more", quoted(&reference.name))));
        }
        let found = os_images.iter().find(|image| image.metadata.name.as_deref() == Some(&reference.name));
        let Some(found) = found else {
            return Err(tkr.wrong(key, format!("is {}, and there is no such OSImage", quoted(&reference.name))));
        };
        let subject = Subject::new("OSImage", None, Some(&reference.name));
        let version: KubernetesVersion = subject.read("spec.kubernetesVersion", &found.spec.kubernetes_version)?;
        if version != *kubernetes {
            let problem = format!("is {version}, and should be {kubernetes}, as {tkr} has it");
            return Err(subject.wrong("spec.kubernetesVersion", problem));
        }
        if found.spec.image.type_.is_empty() {
            return Err(
                subject.wrong("spec.image.type", r#"is missing; accepted are "ova", "vmop", "ami" and the like"#)
            );
        }
        let (os, reference) = (Some(found.spec.os.clone()), Some(found.spec.image.clone()));
        images.push(MachineImage { name, os, reference });
    }
    Ok(images)
}

/// The packages that a release lists, each of which has to be there.
fn choices(
    tkr: &Subject,
    listed: &[LocalReference],
    packages: &[Package],
) -> Result<Vec<PackageVersion>, ReleaseError> {
    let mut seen = BTreeSet::new();
    let mut choices = Vec::new();
    for (position, reference) in listed.iter().enumerate() {
        let key = format!("spec.bootstrapPackages[{position}].name");
        if !seen.insert(reference.name.as_str()) {
            return Err(tkr.wrong(key, format!("is {} once more", quoted(&reference.name))));
        }
        let mut found = packages.iter().filter(|package| package.metadata.name.as_deref() == Some(&reference.name));
        let Some(package) = found.next() else {
            return Err(tkr.wrong(key, format!("is {}, and there is no such Package", quoted(&reference.name))));
        };
        if found.next().is_some() {
            return Err(tkr.wrong(key, format!("is {}, and there are several such Packages", quoted(&reference.name))));
        }
        choices.push(package_version(package)?);
    }
    Ok(choices)
}

/// What a `Package` is, if its name says the same as its fields.
fn package_version(package: &Package) -> Result<PackageVersion, ReleaseError> {
    let name = package.metadata.name.as_deref().unwrap_or_default();
    let subject = Subject::new("Package", package.metadata.namespace.as_deref(), Some(name));
    let spec = &package.spec;
    let _: ObjectName = subject.read("spec.refName", &spec.ref_name)?;
    if spec.ref_name.split('.').count() < REF_NAME_PARTS_MIN {
        let problem = format!("is {}; accepted are names with at least two dots", quoted(&spec.ref_name));
        return Err(subject.wrong("spec.refName", problem));
    }
    let version: KubernetesVersion = subject.read("spec.version", &spec.version)?;
    let read = PackageVersion { ref_name: spec.ref_name.clone(), version };
    if spec.version != read.version.bare().to_string() {
        let problem =
            format!("is {}, and should be {}", quoted(&spec.version), quoted(&read.version.bare().to_string()));
        return Err(subject.wrong("spec.version", problem));
    }
    if name != read.full_name() {
        let problem = format!(
            "is {}, and should be {}, as spec.refName and spec.version have it",
            quoted(name),
            quoted(&read.full_name())
        );
        return Err(subject.wrong("metadata.name", problem));
    }
    Ok(read)
}

/// The template of a release, while it is read.
struct Template<'a> {
    subject: Subject,
    /// The release that it is of.
    tkr: &'a str,
    listed: &'a BootstrapPackages,
    choices: &'a [PackageVersion],
}

impl<'a> Template<'a> {
    fn new(
        tkr: &'a str,
        template: &'a ClusterBootstrapTemplate,
        choices: &'a [PackageVersion],
    ) -> Result<Self, ReleaseError> {
        let metadata = &template.metadata;
        let subject = Subject::new("ClusterBootstrapTemplate", metadata.namespace.as_deref(), metadata.name.as_deref());
        let name = metadata.name.as_deref().unwrap_or_default();
        if name != tkr {
            let problem = format!("is {}, and should be {}, as its release is named", quoted(name), quoted(tkr));
            return Err(subject.wrong("metadata.name", problem));
        }
        Ok(Self { subject, tkr, listed: &template.spec.packages, choices })
    }

    /// The packages, in the order in which they are brought in.
    fn packages(&self) -> Result<Vec<PackageRelease>, ReleaseError> {
        let BootstrapPackages { paused: _, cni, csi, cpi, kapp, additional_packages } = self.listed;
        for (slot, package) in [(PackageSlot::Kapp, kapp), (PackageSlot::Cni, cni)] {
            if package.is_none() {
                return Err(self.subject.wrong(slot.field(), "is missing; no cluster can do without it"));
            }
        }
        let core =
            [(PackageSlot::Kapp, kapp), (PackageSlot::Cni, cni), (PackageSlot::Cpi, cpi), (PackageSlot::Csi, csi)];
        let core = core.into_iter().filter_map(|(slot, package)| Some((slot, package.as_ref()?)));
        let additional = additional_packages.iter().enumerate();
        let additional = additional.map(|(position, package)| (PackageSlot::Additional { position }, package));
        let mut seen = BTreeSet::new();
        let mut packages = Vec::new();
        for (slot, listed) in core.chain(additional) {
            let package = self.package(slot, listed)?;
            if !seen.insert(package.package.ref_name.clone()) {
                let problem = format!("is {} once more", quoted(&package.package.ref_name));
                return Err(self.subject.wrong(format!("{}.refName", slot.field()), problem));
            }
            packages.push(package);
        }
        Ok(packages)
    }

    fn package(&self, slot: PackageSlot, listed: &BootstrapPackage) -> Result<PackageRelease, ReleaseError> {
        let key = format!("{}.refName", slot.field());
        let found = self.choices.iter().find(|choice| choice.full_name() == listed.ref_name);
        let Some(package) = found else {
            let short = listed.ref_name.split('.').next().unwrap_or_default();
            let alike: Vec<String> = self
                .choices
                .iter()
                .filter(|choice| choice.short_name() == short)
                .map(PackageVersion::full_name)
                .collect();
            let accepted = if alike.is_empty() {
                String::new()
            } else {
                format!("; there is {}", quoted_list(alike.iter().map(String::as_str)))
            };
            let problem = format!(
                "is {}, which is not among spec.bootstrapPackages of TanzuKubernetesRelease {}{accepted}",
                quoted(&listed.ref_name),
                self.tkr
            );
            return Err(self.subject.wrong(key, problem));
        };
        let values = match &listed.values_from {
            None => PackageValues::None,
            Some(from) => self.values(slot, from)?,
        };
        Ok(PackageRelease { slot, package: package.clone(), values })
    }

    fn values(&self, slot: PackageSlot, from: &ValuesFrom) -> Result<PackageValues, ReleaseError> {
        let key = format!("{}.valuesFrom", slot.field());
        match (&from.inline, &from.secret_ref, &from.provider_ref) {
            (Some(inline), None, None) => Ok(PackageValues::Inline(inline.clone())),
            (None, Some(secret), None) => {
                Ok(PackageValues::Secret(self.subject.read(format!("{key}.secretRef"), secret)?))
            }
            (None, None, Some(provider)) => {
                for (field, text) in [("apiGroup", &provider.api_group), ("kind", &provider.kind)] {
                    if text.is_empty() {
                        return Err(self.subject.wrong(format!("{key}.providerRef.{field}"), "is missing"));
                    }
                }
                let name = self.subject.read(format!("{key}.providerRef.name"), &provider.name)?;
                let (api_group, kind) = (provider.api_group.clone(), provider.kind.clone());
                Ok(PackageValues::Provider { api_group, kind, name })
            }
            (None, None, None) => {
                let problem = "names nothing; accepted is one of inline, secretRef and providerRef, or no valuesFrom";
                Err(self.subject.wrong(key, problem))
            }
            _ => Err(self.subject.wrong(key, "names several; accepted is one of inline, secretRef and providerRef")),
        }
    }
}
