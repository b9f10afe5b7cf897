//! A reader of the change log that waits for more.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::Stream;

use super::{Change, Expired, Resource, State, Store};

/// The changes after a revision, in order, until the resource's kind goes. Subscribers hold a position in the shared log, not
/// a queue: a slow one costs nothing, until a change is thrown away that it has not seen; then it gets [`Expired`] and must
/// list again.
pub struct Subscription {
    store: Store,
    /// `None`: all of them.
    resource: Option<Resource>,
    revision: u64,
    /// How often the resource's subscriptions had been ended when this one began.
    closings: u64,
    id: u64,
}

impl Subscription {
    pub(super) fn new(store: Store, resource: Option<Resource>, revision: u64, closings: u64, id: u64) -> Self {
        Self { store, resource, revision, closings, id }
    }

    /// Everything up to this revision was delivered (or was not ours).
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The next change if there is one already.
    pub fn try_next(&mut self) -> Result<Option<(Resource, Arc<Change>)>, Expired> {
        let found = {
            let state = self.store.state();
            next_after(&state, self.resource.as_ref(), self.revision)?
        };
        if let Some((_, change)) = &found {
            self.revision = change.revision;
        }
        Ok(found)
    }

    /// The store's revision at a moment when nothing was left to deliver; then the position moves there, so that a quiet
    /// resource does not expire while others are busy.
    pub fn caught_up(&mut self) -> Result<Option<u64>, Expired> {
        let state = self.store.state();
        let now = state.revision;
        if next_after(&state, self.resource.as_ref(), self.revision)?.is_some() {
            return Ok(None);
        }
        drop(state);
        self.revision = now;
        Ok(Some(now))
    }
}

fn next_after(
    state: &State,
    resource: Option<&Resource>,
    revision: u64,
) -> Result<Option<(Resource, Arc<Change>)>, Expired> {
    if let Some(resource) = resource {
        let Some(table) = state.tables.get(resource) else { return Ok(None) };
        return Ok(table.log.following(revision)?.next().map(|change| (resource.clone(), change.clone())));
    }
    let mut first: Option<(&Resource, &Arc<Change>)> = None;
    for (resource, table) in state.tables.iter().filter(|(_, table)| table.log.latest() > revision) {
        if let Some(change) = table.log.following(revision)?.next()
            && first.is_none_or(|(_, best)| change.revision < best.revision)
        {
            first = Some((resource, change));
        }
    }
    Ok(first.map(|(resource, change)| (resource.clone(), change.clone())))
}

impl Stream for Subscription {
    type Item = Result<(Resource, Arc<Change>), Expired>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let mut state = this.store.state();
        match next_after(&state, this.resource.as_ref(), this.revision) {
            Ok(Some((resource, change))) => {
                drop(state);
                this.revision = change.revision;
                Poll::Ready(Some(Ok((resource, change))))
            }
            Ok(None) => {
                let wakers = match &this.resource {
                    Some(resource) => {
                        let table = state.table(resource);
                        if table.closings > this.closings {
                            return Poll::Ready(None);
                        }
                        &mut table.wakers
                    }
                    None => &mut state.wakers_of_all,
                };
                wakers.insert(this.id, context.waker().clone());
                Poll::Pending
            }
            Err(expired) => Poll::Ready(Some(Err(expired))),
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut state = self.store.state();
        match &self.resource {
            Some(resource) => {
                if let Some(table) = state.tables.get_mut(resource) {
                    table.wakers.remove(&self.id);
                }
            }
            None => {
                state.wakers_of_all.remove(&self.id);
            }
        }
    }
}
