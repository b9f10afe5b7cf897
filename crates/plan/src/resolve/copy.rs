//! A release as it is kept with the cluster that has it: in an annotation, because the label and the copy are then one write.
//!
//! Others write it as base64 of gzip of YAML, and so it is read. Ours is JSON, which is YAML too, and the same for the same
//! release: admission that is asked twice changes nothing the second time.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use windlass_api::kind::release::{GROUP, TanzuKubernetesRelease};
use windlass_api::name::ReleaseName;

use crate::gzip;

/// A copy of a release that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it is not base64 of gzip of a TanzuKubernetesRelease: {0}")]
pub struct CopyError(String);

/// The copy of a release. What people and we have put on it since is no part of it.
pub fn write(release: &TanzuKubernetesRelease) -> String {
    let object = json!({
        "apiVersion": format!("{GROUP}/v1alpha3"),
        "kind": "TanzuKubernetesRelease",
        "metadata": {"name": release.metadata.name},
        "spec": release.spec,
    });
    // Nothing can fail that writes into memory.
    STANDARD.encode(gzip::pack(object.to_string().as_bytes()).unwrap_or_default())
}

/// The release that was copied.
pub fn read(text: &str) -> Result<TanzuKubernetesRelease, CopyError> {
    let packed = STANDARD.decode(text.trim()).map_err(|error| CopyError(error.to_string()))?;
    let bytes = gzip::unpack(&packed).map_err(|error| CopyError(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|error| CopyError(error.to_string()))?;
    serde_saphyr::from_str(&text).map_err(|error| CopyError(error.to_string()))
}

/// Whether a copy is one of this release. One that is stays, whatever becomes of the release: a cluster has what it was given.
pub fn is_of(text: Option<&String>, release: &ReleaseName) -> bool {
    let copied = text.and_then(|text| read(text).ok());
    copied.is_some_and(|copied| copied.metadata.name.as_deref() == Some(release.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::query::tests::release;

    /// As `gzip -9` packs it.
    const OF_OTHERS: &str = "H4sIAAAAAAACA42SwW6DMAyG7zxF7lMyAnS0vMG0y1RNu5tg2hRIojhl6p5+YWLd1NJq1zjfb/v/DU6/oydtTcX80\
        YgA5vMoxuEDPAplh8dRQu/2kCedNk3F3qb6y7FGbzAgbbFHIEwGDNBAgCphzMCAFRulyAqx4ZzPYpKHbidkQg7V9K22NlDw4F5BdbBDmh75THfgHFfWB\
        G/7Hv3VWCIVhRSrhwvtXwGIKMI1J0UpstuYgl4re43l0zLyNjeS26NHrpxe6hnh/B8wLcCZeLo3cDTea0Wc0I/LPi3i3TnByXXG9BAT2KKzpIP1p4o5b\
        w+oAgmPOx1jOv29iajyTY0/lzOHfe4Tq5aeh8tUb90Er9M8TdfrFkvZIpRtK1HV6xKKpshWapMnd3rNO30B12NMLckCAAA=";

    #[test]
    fn a_copy_is_read_as_the_release_that_it_was_made_of() {
        let (release, _) = release("v1.24.9+vmware.1-tkg.1", &["deactivated"], &["ubuntu", "photon"]);
        let copy = write(&release);
        let found = read(&copy).unwrap();
        assert_eq!((&found.spec, &found.metadata.name), (&release.spec, &release.metadata.name));
        assert_eq!(found.metadata.labels, None, "what was put on it is no part of it");
        assert_eq!(write(&found), copy);
        let is_of = |name: &str| is_of(Some(&copy), &name.parse().unwrap());
        assert!(is_of("v1.24.9---vmware.1-tkg.1") && !is_of("v1.24.9---vmware.1-tkg.2"));
    }

    #[test]
    fn a_copy_that_others_have_made_is_read_too() {
        let found = read(OF_OTHERS).unwrap();
        assert_eq!(found.spec.version, "v1.24.9+vmware.1-tkg.1");
        let packages = found.spec.bootstrap_packages.unwrap();
        assert_eq!(packages.last().unwrap().name, "metrics-server.tanzu.vmware.com.0.6.2+vmware.1-tkg.1");
    }

    #[test]
    fn a_copy_that_is_none_is_refused_and_is_a_copy_of_nothing() {
        for text in ["", "no base64!", "aGVsbG8=", &OF_OTHERS[..200]] {
            assert!(read(text).is_err(), "{text}");
            assert!(!is_of(Some(&text.to_owned()), &"v1.24.9---vmware.1-tkg.1".parse().unwrap()));
        }
    }
}
