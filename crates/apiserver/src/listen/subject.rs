//! The subject of a certificate: just enough DER for the two attributes that name a user and its groups.
//!
//! By the time that this runs, the certificate was verified to be signed by our own authority. Anything unexpected still
//! yields `None`, which is nobody.

/// The attributes of a subject that mean something to Kubernetes.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Subject {
    /// The user's name.
    pub(super) common_name: Option<String>,
    /// The user's groups.
    pub(super) organizations: Vec<String>,
}

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_IDENTIFIER: u8 = 0x06;
/// `[0] EXPLICIT`, which holds the version where it is not 1.
const VERSION: u8 = 0xa0;
/// `UTF8String`, `PrintableString`, `IA5String`: all of them UTF-8.
const STRINGS: [u8; 3] = [0x0c, 0x13, 0x16];
/// 2.5.4.3
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
/// 2.5.4.10
const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];

/// Reads the subject of a certificate in DER.
pub(super) fn parse(certificate: &[u8]) -> Option<Subject> {
    let mut outer = certificate;
    let mut outer = tagged(&mut outer, SEQUENCE)?;
    let mut tbs = tagged(&mut outer, SEQUENCE)?;
    if tbs.first() == Some(&VERSION) {
        element(&mut tbs)?;
    }
    // Serial number, signature algorithm, issuer, validity.
    for _ in 0..4 {
        element(&mut tbs)?;
    }
    let mut names = tagged(&mut tbs, SEQUENCE)?;
    let mut subject = Subject::default();
    while !names.is_empty() {
        let mut set = tagged(&mut names, SET)?;
        while !set.is_empty() {
            let mut attribute = tagged(&mut set, SEQUENCE)?;
            let kind = tagged(&mut attribute, OBJECT_IDENTIFIER)?;
            let (tag, value) = element(&mut attribute)?;
            if kind != COMMON_NAME && kind != ORGANIZATION {
                continue;
            }
            if !STRINGS.contains(&tag) || value.is_empty() {
                return None;
            }
            let value = std::str::from_utf8(value).ok()?.to_owned();
            if kind == COMMON_NAME {
                subject.common_name = Some(value);
            } else {
                subject.organizations.push(value);
            }
        }
    }
    Some(subject)
}

/// The content of the next element, which must have this tag.
fn tagged<'a>(input: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
    let (found, content) = element(input)?;
    (found == tag).then_some(content)
}

/// Takes the next element off the input: its tag and its content.
fn element<'a>(input: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let (&tag, rest) = input.split_first()?;
    let (&first, mut rest) = rest.split_first()?;
    let length = match first {
        0..=0x7f => usize::from(first),
        // The long form: the number of length bytes. No certificate of ours needs more than two.
        0x81..=0x84 => {
            let (bytes, after) = rest.split_at_checked(usize::from(first & 0x7f))?;
            rest = after;
            bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte))
        }
        _ => return None,
    };
    let (content, after) = rest.split_at_checked(length)?;
    *input = after;
    Some((tag, content))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

    use super::*;

    fn certificate(entries: &[(DnType, &str)]) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        for (kind, value) in entries {
            params.distinguished_name.push(kind.clone(), *value);
        }
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    #[test]
    fn name_and_group_are_found_among_other_attributes() {
        let der = certificate(&[
            (DnType::CountryName, "DE"),
            (DnType::OrganizationName, "system:masters"),
            (DnType::CommonName, "Zoë"),
        ]);
        let expected = Subject { common_name: Some("Zoë".into()), organizations: vec!["system:masters".into()] };
        assert_eq!(parse(&der), Some(expected));
    }

    #[test]
    fn a_subject_may_be_empty() {
        assert_eq!(parse(&certificate(&[])), Some(Subject::default()));
    }

    proptest! {
        #[test]
        fn damage_never_panics(position in 0_usize..400, byte: u8, cut in 0_usize..400) {
            let mut der = certificate(&[(DnType::CommonName, "someone"), (DnType::OrganizationName, "group")]);
            let position = position % der.len();
            der[position] = byte;
            parse(&der);
            parse(&der[..cut.min(der.len())]);
        }
    }
}
