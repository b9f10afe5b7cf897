//! What others are told of when something is written in a workload cluster.

use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt;
use futures::channel::mpsc;
use futures::stream::BoxStream;
use windlass_api::name::{NamespacedName, NodeName};
use windlass_apiserver::store::{Change, Observer, Resource};

use super::{kubeadm, record, trouble, write};

/// Who wants to know of what.
#[derive(Default)]
pub(super) struct Listeners {
    pub(super) nodes: Audience<(NamespacedName, NodeName)>,
    pub(super) components: Audience<NamespacedName>,
}

/// Those who are told of something.
pub(super) struct Audience<T>(Mutex<Vec<mpsc::UnboundedSender<T>>>);

impl<T> Default for Audience<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone + Send + 'static> Audience<T> {
    fn tell(&self, news: &T) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|listener| listener.unbounded_send(news.clone()).is_ok());
    }

    pub(super) fn join(&self) -> BoxStream<'static, T> {
        let (sender, receiver) = mpsc::unbounded();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
        receiver.boxed()
    }
}

/// Sees what is written in a workload cluster: tells the World's recorder, and whoever waits for nodes or components.
pub(super) struct Witness {
    pub(super) cluster: NamespacedName,
    pub(super) recorder: Arc<dyn Observer>,
    pub(super) listeners: Arc<Listeners>,
}

impl Observer for Witness {
    fn committed(&self, resource: &Resource, change: &Arc<Change>) {
        self.recorder.committed(resource, change);
        let key = &change.object.key;
        match &**resource {
            write::NODES => {
                if let Ok(node) = NodeName::new(&key.name) {
                    self.listeners.nodes.tell(&(self.cluster.clone(), node));
                }
            }
            write::PODS if kubeadm::is_static_pod(key) => self.listeners.components.tell(&self.cluster),
            record::MEMBERS | trouble::TROUBLES => self.listeners.components.tell(&self.cluster),
            _ => {}
        }
    }
}
