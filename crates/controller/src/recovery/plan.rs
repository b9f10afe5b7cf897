//! What is to be done about the certificates of a cluster: a function of what was found. No client, no clock.

use std::collections::{BTreeMap, BTreeSet};

use windlass_api::name::{ClusterSecret, MachineName};

use super::bootstrap::{CertificateFile, Half, Pem};
use super::pair::{Identity, PairError, PublicDigest};

/// Who keeps a Secret alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Custody {
    /// The Cluster that lives now.
    Cluster,
    /// Nobody: a person brought it, and it stays.
    Nobody,
    /// Others only: it goes when they do, or as soon as somebody finds out that they are gone.
    Others,
}

/// A Secret as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Live {
    /// It is not there.
    Absent,
    /// It is about to be gone.
    Leaving,
    /// It is there.
    There {
        /// Which pair it is, or why it is none.
        pair: Result<Identity, PairError>,
        /// Who keeps it.
        custody: Custody,
    },
}

/// What a machine was given in the place of a Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Which pair it is, or why it is none.
    pub pair: Result<Identity, PairError>,
    /// The public half.
    pub public: Pem,
    /// The private half.
    pub private: Pem,
}

/// A machine of the control plane, as a place to take Secrets from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The machine.
    pub machine: MachineName,
    /// What it was given, or why that cannot be read.
    pub offers: Result<BTreeMap<ClusterSecret, Offer>, String>,
}

/// All that was found.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// The Secrets.
    pub secrets: BTreeMap<ClusterSecret, Live>,
    /// The machines, newest first.
    pub sources: Vec<Source>,
    /// The authorities that the kubeconfig of the cluster trusts; none where there is no kubeconfig.
    pub trusted: BTreeSet<PublicDigest>,
}

/// What is to be done about a Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing.
    Intact,
    /// The Cluster is made its owner.
    Own,
    /// It is made anew from what a machine was given.
    Restore {
        /// Which machine.
        from: MachineName,
    },
    /// Nothing can be done for now.
    Refused {
        /// Why, and what would help.
        why: String,
    },
}

/// The verdict on one Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Which.
    pub secret: ClusterSecret,
    /// What is to be done.
    pub verdict: Verdict,
    /// Which pair it is, or is to be.
    pub identity: Option<Identity>,
}

/// The pairs in the files of a machine. What has only one half is no pair, and what has none is left out.
pub fn offers(mut files: BTreeMap<CertificateFile, Pem>) -> BTreeMap<ClusterSecret, Offer> {
    let mut half = |secret, half| files.remove(&CertificateFile { secret, half });
    let pairs = ClusterSecret::CERTIFICATES.into_iter().filter_map(|secret| {
        let (public, private) = match (half(secret, Half::Public), half(secret, Half::Private)) {
            (None, None) => return None,
            (public, private) => (public.unwrap_or(Pem::new("")), private.unwrap_or(Pem::new(""))),
        };
        let pair = super::pair::verify(secret, &public, &private);
        Some((secret, Offer { pair, public, private }))
    });
    pairs.collect()
}

/// Decides about all four, with one machine only as the source where a person has chosen one.
pub fn decide(found: &Found, from: Option<&MachineName>) -> Vec<Decision> {
    let chosen: Vec<&Source> =
        found.sources.iter().filter(|source| from.is_none_or(|name| source.machine == *name)).collect();
    let distrust = distrust(found, &chosen);
    let decide = |secret| {
        let live = found.secrets.get(&secret).unwrap_or(&Live::Absent);
        let (verdict, identity) = match live {
            Live::Absent => match (restore(secret, &chosen), &distrust) {
                (Ok((_, identity)), Some(why)) => (Verdict::Refused { why: why.clone() }, Some(identity)),
                (Ok((from, identity)), None) => (Verdict::Restore { from }, Some(identity)),
                (Err(why), _) => (Verdict::Refused { why }, None),
            },
            Live::Leaving => {
                let why = "it is being deleted; when it is gone, it can be restored".to_owned();
                (Verdict::Refused { why }, None)
            }
            Live::There { pair: Err(error), .. } => {
                let why =
                    format!("{error}; what is there is never overwritten: once it is deleted, it can be restored");
                (Verdict::Refused { why }, None)
            }
            Live::There { pair: Ok(identity), custody } => {
                (kept(found, secret, identity, *custody), Some(identity.clone()))
            }
        };
        Decision { secret, verdict, identity }
    };
    ClusterSecret::CERTIFICATES.into_iter().map(decide).collect()
}

/// A Secret that is there and is a pair.
fn kept(found: &Found, secret: ClusterSecret, identity: &Identity, custody: Custody) -> Verdict {
    let differs =
        found.sources.iter().find(|source| pair_of(source, secret).is_some_and(|offered| offered != identity));
    match (differs, custody) {
        (Some(Source { machine, .. }), _) => {
            let why = format!("it is not what Machine/{machine} was given: a machine that joins with it is not let in");
            Verdict::Refused { why }
        }
        (None, Custody::Others) => Verdict::Own,
        (None, Custody::Cluster | Custody::Nobody) => Verdict::Intact,
    }
}

/// The machine to take a Secret from, if all that were given one were given the same.
fn restore(secret: ClusterSecret, sources: &[&Source]) -> Result<(MachineName, Identity), String> {
    let mut first: Option<(&MachineName, &Identity)> = None;
    let mut why = Vec::new();
    for source in sources {
        let machine = &source.machine;
        let offer = match &source.offers {
            Ok(offers) => offers.get(&secret),
            Err(unreadable) => {
                why.push(format!("Machine/{machine}: {unreadable}"));
                continue;
            }
        };
        match (offer.map(|offer| &offer.pair), first) {
            (None, _) => why.push(format!("Machine/{machine} was not given it")),
            (Some(Err(error)), _) => {
                return Err(format!(
                    "of what Machine/{machine} was given, {error}; --from MACHINE takes it from another"
                ));
            }
            (Some(Ok(identity)), None) => first = Some((machine, identity)),
            (Some(Ok(identity)), Some((other, known))) if identity != known => {
                return Err(format!(
                    "Machine/{other} and Machine/{machine} were given different ones; --from MACHINE takes it from one"
                ));
            }
            (Some(Ok(_)), Some(_)) => {}
        }
    }
    let lost = || match why.as_slice() {
        [] => "there is no machine of the control plane to take it from".to_owned(),
        why => why.join(", "),
    };
    first.map(|(machine, identity)| (machine.clone(), identity.clone())).ok_or_else(lost)
}

/// Why nothing is taken from these machines: one of them is of another cluster than the kubeconfig or the other Secrets.
fn distrust(found: &Found, sources: &[&Source]) -> Option<String> {
    sources.iter().find_map(|source| {
        let machine = &source.machine;
        let other = |secret: &ClusterSecret| match (found.secrets.get(secret), pair_of(source, *secret)) {
            (Some(Live::There { pair: Ok(identity), .. }), Some(offered)) => identity != offered,
            _ => false,
        };
        if let Some(secret) = ClusterSecret::CERTIFICATES.iter().find(|secret| other(secret)) {
            return Some(format!("nothing is taken from Machine/{machine}: it was given another {secret} than the one that is there"));
        }
        let authority = pair_of(source, ClusterSecret::CertificateAuthority)?.certificate.as_ref()?.sha256;
        let foreign = !found.trusted.is_empty() && !found.trusted.contains(&authority);
        foreign.then(|| {
            format!("nothing is taken from Machine/{machine}: it was given the authority {authority}, which the kubeconfig of the cluster does not trust")
        })
    })
}

fn pair_of(source: &Source, secret: ClusterSecret) -> Option<&Identity> {
    source.offers.as_ref().ok()?.get(&secret)?.pair.as_ref().ok()
}
