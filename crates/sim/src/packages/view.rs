//! What has to be looked at, and when. It holds nothing that could not be read from the store once more.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use futures::{FutureExt, Stream};
use jiff::Timestamp;
use windlass_api::kind::packaging::{App, Package, PackageInstall};
use windlass_apiserver::store::{Change, ChangeKind, Entry, Key, Resource, Subscription};

use super::values::Kind;
use super::{
    APPS, DEPLOYMENTS, EVERYWHERE, Error, GLOBAL_NAMESPACE, INSTALLS, Kapp, Next, PACKAGES, Place, REPOSITORIES, RETRY,
    SECRETS, app, later, read,
};

/// Something that is looked after. The order is that in which they are looked at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Subject {
    Repository(Key),
    Values(Kind, Key),
    Install(Key),
    App(Key),
}

pub(super) struct View {
    subscriptions: Vec<Subscription>,
    dirty: BTreeSet<Subject>,
    due: BTreeSet<(Timestamp, Subject)>,
    /// When each of them is.
    due_at: BTreeMap<Subject, Timestamp>,
    /// How often in a row the API did not take what was written.
    refusals: BTreeMap<Subject, u32>,
    /// Who is rendered with what is in a Secret.
    readers: BTreeMap<Key, BTreeSet<Key>>,
    /// Whether changes of Secrets are heard of: only where somebody reads one.
    hears_of_secrets: bool,
    /// Something has happened that is not known any more, or the kinds are gone.
    pub(super) missed: bool,
}

impl View {
    /// Everything that there is now; all of it is to be looked at.
    pub(super) fn read(kapp: &Kapp) -> Self {
        let mut view = Self {
            subscriptions: Vec::new(),
            dirty: BTreeSet::new(),
            due: BTreeSet::new(),
            due_at: BTreeMap::new(),
            refusals: BTreeMap::new(),
            readers: BTreeMap::new(),
            hears_of_secrets: false,
            missed: false,
        };
        for resource in [REPOSITORIES, INSTALLS, APPS, PACKAGES] {
            view.subscribe(kapp, resource);
        }
        match kapp.place {
            Place::Management(_) => Kind::ALL.iter().for_each(|kind| view.subscribe(kapp, kind.resource())),
            Place::Workload(_) => view.subscribe(kapp, DEPLOYMENTS),
        }
        let kinds = Kind::ALL.iter().map(|kind| kind.resource());
        for resource in [REPOSITORIES, INSTALLS, APPS].into_iter().chain(kinds) {
            for entry in kapp.server.store().list(resource, EVERYWHERE, |_| true).entries {
                view.put(kapp, resource, &entry);
            }
        }
        view
    }

    fn subscribe(&mut self, kapp: &Kapp, resource: &str) {
        let store = kapp.server.store();
        match store.subscribe(&Resource::from(resource), store.revision()) {
            Ok(subscription) => self.subscriptions.push(subscription),
            Err(_) => self.missed = true,
        }
    }

    /// Takes note of all changes there are already.
    pub(super) fn follow(&mut self, kapp: &Kapp) {
        self.changed(kapp).now_or_never().unwrap_or_default();
    }

    /// Waits for changes, and takes note of all there are.
    pub(super) async fn changed(&mut self, kapp: &Kapp) {
        let changes: Vec<(Resource, Arc<Change>)> = std::future::poll_fn(|context| {
            let mut changes = Vec::new();
            for subscription in &mut self.subscriptions {
                loop {
                    match Pin::new(&mut *subscription).poll_next(context) {
                        Poll::Ready(Some(Ok(change))) => changes.push(change),
                        Poll::Ready(Some(Err(_)) | None) => {
                            self.missed = true;
                            break;
                        }
                        Poll::Pending => break,
                    }
                }
            }
            if changes.is_empty() && !self.missed { Poll::Pending } else { Poll::Ready(changes) }
        })
        .await;
        for (resource, change) in changes {
            match change.kind {
                ChangeKind::Added | ChangeKind::Modified => self.put(kapp, &resource, &change.object),
                ChangeKind::Deleted => self.take(kapp, &resource, &change.object),
            }
        }
    }

    fn put(&mut self, kapp: &Kapp, resource: &str, entry: &Entry) {
        let key = &entry.key;
        match resource {
            INSTALLS => self.dirty.extend([Subject::Install(key.clone())]),
            REPOSITORIES => self.dirty.extend([Subject::Repository(key.clone())]),
            APPS => {
                self.dirty.insert(Subject::App(key.clone()));
                self.dirty.insert(Subject::Install(key.clone()));
                self.index(kapp, entry);
            }
            PACKAGES => self.offered(kapp, entry),
            SECRETS => self.dirty.extend(self.readers.get(key).into_iter().flatten().cloned().map(Subject::App)),
            // Whether anything is looked at depends on it, and nothing else.
            DEPLOYMENTS => {}
            other => {
                let kind = Kind::ALL.into_iter().find(|kind| kind.resource() == other);
                self.dirty.extend(kind.map(|kind| Subject::Values(kind, key.clone())));
            }
        }
    }

    fn take(&mut self, kapp: &Kapp, resource: &str, last: &Entry) {
        match resource {
            // The PackageInstall waits for it.
            APPS => {
                self.readers.retain(|_, readers| {
                    readers.remove(&last.key);
                    !readers.is_empty()
                });
                self.dirty.insert(Subject::App(last.key.clone()));
                self.dirty.insert(Subject::Install(last.key.clone()));
            }
            PACKAGES => self.offered(kapp, last),
            SECRETS => self.put(kapp, resource, last),
            _ => {}
        }
    }

    /// Takes note of whose values an App is rendered with.
    fn index(&mut self, kapp: &Kapp, entry: &Entry) {
        let Some(app) = read::<App>(entry) else { return };
        for secret in app::secrets(&app) {
            self.readers.entry(Key::new(&entry.key.namespace, &secret)).or_default().insert(entry.key.clone());
        }
        if !self.hears_of_secrets && !self.readers.is_empty() {
            self.hears_of_secrets = true;
            self.subscribe(kapp, SECRETS);
        }
    }

    /// A version of a package has come or gone: it may be the one that somebody wants.
    fn offered(&mut self, kapp: &Kapp, entry: &Entry) {
        let Some(package) = read::<Package>(entry) else { return };
        let namespace = &*entry.key.namespace;
        let namespace = Some(namespace).filter(|namespace| *namespace != GLOBAL_NAMESPACE);
        let installs = kapp.list::<PackageInstall>(INSTALLS, namespace).into_iter();
        let concerned = installs.filter(|install| install.spec.package_ref.ref_name == package.spec.ref_name);
        self.dirty.extend(concerned.map(|install| {
            let meta = install.metadata;
            Subject::Install(Key::new(&meta.namespace.unwrap_or_default(), &meta.name.unwrap_or_default()))
        }));
    }

    /// What is to be looked at now.
    pub(super) fn next_subject(&mut self, now: Timestamp) -> Option<Subject> {
        while self.due.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, subject)) = self.due.pop_first() else { break };
            self.due_at.remove(&subject);
            self.dirty.insert(subject);
        }
        self.dirty.first().cloned()
    }

    /// When something is due.
    pub(super) fn next_at(&self) -> Option<Timestamp> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Something has been looked at.
    pub(super) fn looked(&mut self, subject: &Subject, next: Result<Next, Error>, now: Timestamp) {
        self.dirty.remove(subject);
        let next = match next {
            Ok(next) => {
                self.refusals.remove(subject);
                next
            }
            Err(error) => {
                tracing::debug!(?subject, error = %chain(&error), "kapp-controller tries again");
                let refusals = self.refusals.entry(subject.clone()).or_default();
                *refusals = refusals.saturating_add(1);
                let [first, last] = RETRY;
                Some(later(now, first.saturating_mul(1 << (*refusals - 1).min(16)).min(last)))
            }
        };
        if let Some(at) = self.due_at.remove(subject) {
            self.due.remove(&(at, subject.clone()));
        }
        if let Some(at) = next {
            self.due_at.insert(subject.clone(), at);
            self.due.insert((at, subject.clone()));
        }
    }
}

/// An error with all its causes, in one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
