//! Which lines a picture has, and what is on them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use windlass_api::version::KubernetesVersion;

use crate::timeline::{Event, Timeline, What};

/// Lines that belong together.
pub(super) struct Group {
    pub(super) title: String,
    pub(super) rows: Vec<Row>,
}

/// A line.
#[derive(Default)]
pub(super) struct Row {
    pub(super) label: String,
    pub(super) segments: Vec<Segment>,
    pub(super) marks: Vec<Mark>,
}

/// A bar.
pub(super) struct Segment {
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
    pub(super) state: State,
    pub(super) title: String,
}

/// What a bar stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Work is done on a stage.
    Stage,
    /// A machine is asked for, and its node is not ready yet.
    Coming,
    /// Its node is ready.
    There,
    /// The same, and there is a machine of a newer version.
    Older,
    /// Its node was ready, and is not.
    Unready,
    /// It is to go.
    Going,
}

/// A moment on a line.
pub(super) struct Mark {
    pub(super) at: Timestamp,
    pub(super) sign: Sign,
    pub(super) title: String,
}

/// What a mark stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// A member of etcd came or went.
    Member,
    /// A member of etcd leads.
    Leader,
    /// A pod was evicted.
    Eviction,
    /// A member of etcd complains.
    Alarm,
    /// An exception was made use of.
    Exempted,
    /// A rule did not hold.
    Violation,
}

impl State {
    pub(super) const LEGEND: [(Self, &'static str); 6] = [
        (Self::Stage, "stage"),
        (Self::Coming, "coming"),
        (Self::There, "ready"),
        (Self::Older, "ready, of an older version"),
        (Self::Unready, "not ready"),
        (Self::Going, "going"),
    ];

    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Stage => "stage",
            Self::Coming => "coming",
            Self::There => "there",
            Self::Older => "older",
            Self::Unready => "unready",
            Self::Going => "going",
        }
    }
}

impl Sign {
    pub(super) const LEGEND: [(Self, &'static str); 5] = [
        (Self::Member, "member of etcd"),
        (Self::Leader, "leader of etcd"),
        (Self::Eviction, "eviction"),
        (Self::Exempted, "exception"),
        (Self::Violation, "violation or alarm"),
    ];

    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Member => "member",
            Self::Leader => "leader",
            Self::Eviction => "eviction",
            Self::Alarm => "alarm",
            Self::Exempted => "exempted",
            Self::Violation => "violation",
        }
    }
}

/// The lines of a timeline, cluster by cluster: its stages, its control plane, its pools.
pub(super) fn groups(timeline: &Timeline) -> Vec<Group> {
    let mut clusters: BTreeMap<&str, Vec<&Event>> = BTreeMap::new();
    for event in &timeline.events {
        clusters.entry(&event.cluster).or_default().push(event);
    }
    let mut groups = Vec::new();
    for (cluster, events) in clusters {
        let end = timeline.events.last().map_or(timeline.from, |event| event.at);
        let lines = Lines::read(&events, timeline.from, end);
        groups.push(Group { title: cluster.to_owned(), rows: stages(timeline, cluster, &events, &lines, end) });
        groups.extend(lines.groups(cluster));
    }
    groups
}

/// The machines of a cluster, by what they are for and by name.
struct Lines {
    machines: BTreeMap<(Belongs, String), Row>,
}

/// What a machine is for; the control plane comes first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Belongs {
    ControlPlane,
    Pool(String),
    Nowhere,
}

impl Lines {
    fn read(events: &[&Event], from: Timestamp, end: Timestamp) -> Self {
        let mut machines: BTreeMap<String, (Belongs, Vec<&Event>)> = BTreeMap::new();
        for event in events {
            let Some(lane) = &event.lane else { continue };
            let (belongs, of_machine) =
                machines.entry(lane.machine.clone()).or_insert_with(|| (Belongs::Nowhere, Vec::new()));
            match &lane.pool {
                _ if lane.control_plane => *belongs = Belongs::ControlPlane,
                Some(pool) => *belongs = Belongs::Pool(pool.clone()),
                None => {}
            }
            of_machine.push(event);
        }
        let newest = machines.values().filter_map(|(_, events)| version(events)).max();
        let row = |(name, (belongs, events)): (String, (Belongs, Vec<&Event>))| {
            let row = machine(&name, &events, newest.as_ref(), from, end);
            ((belongs, name), row)
        };
        Self { machines: machines.into_iter().map(row).collect() }
    }

    fn groups(self, cluster: &str) -> Vec<Group> {
        let mut groups: Vec<(Belongs, Group)> = Vec::new();
        for ((belongs, _), row) in self.machines {
            if groups.last().is_none_or(|(last, _)| *last != belongs) {
                let name = match &belongs {
                    Belongs::ControlPlane => "control plane".to_owned(),
                    Belongs::Pool(pool) => format!("pool {pool}"),
                    Belongs::Nowhere => "machines".to_owned(),
                };
                groups.push((belongs, Group { title: format!("{cluster}: {name}"), rows: Vec::new() }));
            }
            if let Some((_, group)) = groups.last_mut() {
                group.rows.push(row);
            }
        }
        groups.into_iter().map(|(_, group)| group).collect()
    }

    /// When machines come or go: of the control plane, or of others.
    fn busy(&self, control_plane: bool) -> Vec<(Timestamp, Timestamp)> {
        let of_it =
            self.machines.iter().filter(|((belongs, _), _)| (*belongs == Belongs::ControlPlane) == control_plane);
        let segments = of_it.flat_map(|(_, row)| &row.segments);
        let moving = segments.filter(|segment| matches!(segment.state, State::Coming | State::Going));
        moving.map(|segment| (segment.from, segment.to)).collect()
    }
}

/// The version that is asked of a machine, as far as its events tell.
fn version(events: &[&Event]) -> Option<KubernetesVersion> {
    events.iter().find_map(|event| event.lane.as_ref()?.version.as_ref()?.parse().ok())
}

/// The line of a machine. One of which nothing was told before it is to go, or is not ready, was there all the while.
fn machine(name: &str, events: &[&Event], newest: Option<&KubernetesVersion>, from: Timestamp, end: Timestamp) -> Row {
    let mut row = Row { label: name.to_owned(), ..Row::default() };
    let version = version(events);
    let there = if version.is_some() && version.as_ref() < newest { State::Older } else { State::There };
    let is_new = events.iter().any(|event| event.what == What::MachineCreated);
    let mut state = (!is_new).then_some((from, there));
    let name = version.map_or_else(|| name.to_owned(), |version| format!("{name} at {version}"));
    for event in events {
        let next = match event.what {
            What::MachineCreated => Some(State::Coming),
            What::NodeReady if !matches!(state, Some((_, State::Going))) => Some(there),
            What::NodeNotReady if matches!(state, Some((_, State::There | State::Older))) => Some(State::Unready),
            What::MachineDeleting => Some(State::Going),
            What::MachineDeleted => None,
            _ => {
                row.marks.extend(mark(event));
                continue;
            }
        };
        row.segments.extend(state.take().map(|(since, state)| segment(&name, since, event.at, state)));
        state = next.map(|state| (event.at, state));
    }
    row.segments.extend(state.map(|(since, state)| segment(&name, since, end, state)));
    row
}

fn segment(name: &str, from: Timestamp, to: Timestamp, state: State) -> Segment {
    let text = State::LEGEND.into_iter().find(|(known, _)| *known == state).map_or("", |(_, text)| text);
    Segment { from, to, state, title: format!("{name}: {text}") }
}

fn mark(event: &Event) -> Option<Mark> {
    let sign = match event.what {
        What::MemberAdded | What::MemberStarted | What::MemberPromoted | What::MemberRemoved => Sign::Member,
        What::LeaderMoved => Sign::Leader,
        What::PodEvicted => Sign::Eviction,
        What::MemberAlarmed => Sign::Alarm,
        _ => return None,
    };
    Some(Mark { at: event.at, sign, title: event.text.clone() })
}

/// The stages of a cluster, from what happens in it: there may be no record of an update.
fn stages(timeline: &Timeline, cluster: &str, events: &[&Event], lines: &Lines, end: Timestamp) -> Vec<Row> {
    let addons = |event: &&&Event| matches!(event.what, What::AddonApplied | What::AddonRemoved);
    let packages = events.iter().filter(addons).map(|event| (event.at, event.at)).collect();
    let busy = [("packages", packages), ("control plane", lines.busy(true)), ("workers", lines.busy(false))];
    // What is not further apart than can be seen is one.
    let gap = end.duration_since(timeline.from) / 50;
    let mut rows: Vec<Row> = Vec::new();
    rows.extend(updates(events, end));
    for (label, mut moments) in busy {
        moments.sort_unstable();
        let mut segments: Vec<Segment> = Vec::new();
        for (from, to) in moments {
            match segments.last_mut().filter(|last| from.duration_since(last.to) <= gap) {
                Some(last) => last.to = last.to.max(to),
                None => segments.push(Segment { from, to, state: State::Stage, title: label.to_owned() }),
            }
        }
        rows.push(Row { label: label.to_owned(), segments, marks: Vec::new() });
    }
    let told = |at, sign, id: &str, message: &str| Mark { at, sign, title: format!("{id}: {message}") };
    let exempted = timeline.exempted.iter().filter(|exempted| exempted.cluster == cluster);
    let violations = timeline.violations.iter().filter(|violation| violation.cluster == cluster);
    let marks: Vec<Mark> = exempted
        .map(|exempted| told(exempted.at, Sign::Exempted, &exempted.id, &exempted.message))
        .chain(violations.map(|violation| told(violation.at, Sign::Violation, &violation.id, &violation.message)))
        .collect();
    if !marks.is_empty() {
        rows.push(Row { label: "rules".to_owned(), segments: Vec::new(), marks });
    }
    rows
}

/// A line for each update on record, from its beginning to its end.
fn updates(events: &[&Event], end: Timestamp) -> Vec<Row> {
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    for event in events {
        match event.what {
            What::UpdateBegan | What::UpdateResumed => {
                let row = rows.entry(&event.object).or_insert_with(|| {
                    let label = event.object.replace('/', " ");
                    Row { label, ..Row::default() }
                });
                let title = event.text.clone();
                row.segments.push(Segment { from: event.at, to: end, state: State::Stage, title });
            }
            What::UpdateSucceeded | What::UpdateFailed | What::UpdateAborted => {
                if let Some(last) = rows.get_mut(&*event.object).and_then(|row| row.segments.last_mut()) {
                    last.to = event.at;
                    last.title.clone_from(&event.text);
                }
            }
            _ => {}
        }
    }
    rows.into_values().collect()
}
