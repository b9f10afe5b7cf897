//! The releases that a search knows, and what their versions mean.

use std::collections::BTreeMap;

use windlass_api::annotation;
use windlass_api::kind::cluster_update::UpdateEnd;
use windlass_api::kind::virtual_machine::VirtualMachineImage;
use windlass_api::name::UpdateId;
use windlass_api::version::KubernetesVersion;
use windlass_plan::envelope::Envelope;
use windlass_plan::inventory::Template;
use windlass_plan::release::Release;
use windlass_plan::render::Scope;
use windlass_plan::render::workers::{PoolTemplates, template_specs};
use windlass_plan::target::Target;

use super::state::{Asked, VERSIONS, Version};
use crate::sample;

/// Three releases, oldest first, and everything that is made from them once.
pub struct Era {
    pub releases: [Release; VERSIONS],
    /// How many workers there are.
    pub workers: u8,
    targets: BTreeMap<Asked, Target>,
    templates: BTreeMap<(Version, bool), [Template; 2]>,
    digests: BTreeMap<(Asked, Asked), String>,
}

/// The update that made what is there when a search begins, and the one that is on record.
pub fn update_id(target: &Target, is_of_record: bool) -> UpdateId {
    UpdateId::new(&target.cluster.uid, u64::from(is_of_record))
}

impl Era {
    /// The releases with these distributions, such as `v1.16.7+vmware.1-guest.1`.
    pub fn new(distributions: [&str; VERSIONS], workers: u8) -> Self {
        let releases = distributions.map(|distribution| Release::from_image(&image(distribution)).unwrap());
        let target = |asked: &Asked| {
            let cluster = sample::cluster(asked.control_plane.into(), workers.into());
            Target::new(&cluster, releases[usize::from(asked.version)].clone()).unwrap()
        };
        let versions = || 0..u8::try_from(VERSIONS).unwrap();
        let asked = || versions().flat_map(|version| [1, 3].map(|control_plane| Asked { version, control_plane }));
        let targets: BTreeMap<Asked, Target> = asked().map(|asked| (asked, target(&asked))).collect();
        let mut templates = BTreeMap::new();
        for version in versions() {
            for is_of_record in [false, true] {
                let target = &targets[&Asked { version, control_plane: 1 }];
                templates.insert((version, is_of_record), pool_templates(target, is_of_record));
            }
        }
        let digest = |(from, to): (Asked, Asked)| {
            let digest = Envelope::of(&targets[&to], Some(&targets[&from].end())).digest();
            ((from, to), digest)
        };
        let digests = asked().flat_map(|from| asked().map(move |to| (from, to))).map(digest).collect();
        Self { releases, workers, targets, templates, digests }
    }

    pub fn target(&self, asked: Asked) -> &Target {
        &self.targets[&asked]
    }

    /// One end of an update. Which release a cluster has is on no record here, so it is never in use by a digest.
    pub fn end(&self, asked: Asked) -> UpdateEnd {
        UpdateEnd { release: None, ..self.target(asked).end() }
    }

    pub fn digest(&self, from: Asked, to: Asked) -> &str {
        &self.digests[&(from, to)]
    }

    pub fn templates(&self, version: Version, is_of_record: bool) -> &[Template; 2] {
        &self.templates[&(version, is_of_record)]
    }

    pub fn kubernetes(&self, version: Version) -> &KubernetesVersion {
        &self.releases[usize::from(version)].kubernetes
    }

    pub fn minor(&self, version: Version) -> u64 {
        self.kubernetes(version).minor().minor
    }

    pub fn minor_and_patch(&self, version: Version) -> (u64, u64) {
        (self.minor(version), self.kubernetes(version).patch())
    }

    /// Which release has this distribution.
    pub fn find(&self, distribution: &str) -> Version {
        let found = self.releases.iter().position(|release| release.distribution.as_str() == distribution);
        u8::try_from(found.unwrap()).unwrap()
    }
}

fn pool_templates(target: &Target, is_of_record: bool) -> [Template; 2] {
    let scope = Scope { target, update: update_id(target, is_of_record) };
    let pool = &target.pools[0];
    let names = PoolTemplates::of(&scope, pool);
    let [infrastructure, bootstrap] = template_specs(&scope, pool);
    [
        Template { name: names.infrastructure, spec: Some(infrastructure) },
        Template { name: names.bootstrap, spec: Some(bootstrap) },
    ]
}

/// A release with only those packages that come with every release: one that is there once, and one that is bound to it.
fn image(distribution: &str) -> VirtualMachineImage {
    let kubernetes = distribution.split("-guest").next().unwrap();
    let name = format!("photon-k8sd-{}", distribution.replace('+', "-"));
    let text = serde_json::json!({
        "distribution": {"version": distribution},
        "kubernetes": {"imageRepository": "vmware", "version": kubernetes},
        "etcd": {"imageRepository": "vmware", "version": "v3.3.15_vmware.6"},
        "coredns": {"imageRepository": "vmware", "version": format!("v1_for_{}", distribution.replace('+', "_"))},
    });
    let mut image = VirtualMachineImage::default();
    image.metadata.name = Some(name);
    image.metadata.annotations = Some([(annotation::DISTRIBUTION.name.to_owned(), text.to_string())].into());
    image
}
