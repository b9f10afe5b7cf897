//! A report as people read it: one word first, then how far it is and what waits for what.

use jiff::SignedDuration;
use windlass_api::kind::cluster_update::{UpdateState, WaitingFor};

use super::{MachineReport, Report, StageReport, StageWord, UpdateReport};
use crate::output;

/// How wide a bar is in a report.
const BAR_WIDTH: usize = 12;

impl Report {
    /// The whole of it.
    pub fn text(&self) -> String {
        let mut sections = vec![self.head()];
        if let Some(update) = &self.update {
            sections.push(update.text());
        }
        if !self.machines.is_empty() {
            let rows = self.machines.iter().map(MachineReport::row);
            sections.push(output::table(&MachineReport::HEAD, rows));
        }
        if !self.addons.is_empty() {
            let rows = self.addons.iter().map(|addon| {
                let status = format!("{:?}", addon.status).to_lowercase();
                let error = addon.last_error_message.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
                vec![addon.name.clone(), output::cell(addon.version.as_ref()), format!("{status}{error}")]
            });
            sections.push(output::table(&["ADD-ON", "VERSION", "STATUS"], rows));
        }
        sections.join("\n\n")
    }

    /// The word, the release, and what is waited for.
    fn head(&self) -> String {
        let mut text = format!("{}  {}  {}", self.cluster, self.assessment.to_uppercase(), self.releases());
        if let Some(seconds) = self.running_update().and_then(|update| update.seconds) {
            text.push_str("  elapsed ");
            text.push_str(&took(seconds));
        }
        if let Some(waiting_for) = &self.waiting_for {
            text.push_str("\n  waiting for: ");
            text.push_str(waiting_for);
        }
        if let Some(pending) = &self.pending {
            text.push_str("\n  pending: ");
            text.push_str(pending);
        }
        text
    }

    /// The head of a board: the word, the release, and how long it has taken so far.
    pub fn title(&self) -> String {
        let elapsed = self.running_update().and_then(|update| update.seconds).map(took);
        let elapsed = elapsed.map(|elapsed| format!("  {elapsed} of its time")).unwrap_or_default();
        format!("{}  {}  {}{elapsed}", self.cluster, self.assessment.to_uppercase(), self.releases())
    }

    /// What a board shows below its head: the stages of an update with what they wait for, and the machines that are on
    /// their way; no more than so many lines.
    pub fn board(&self, lines_max: usize) -> Vec<String> {
        let is_over = |state| matches!(state, Some(UpdateState::Succeeded | UpdateState::Aborted));
        let update = self.update.as_ref().filter(|update| !is_over(update.state));
        let mut lines: Vec<String> = update.iter().flat_map(|update| &update.stages).map(StageReport::line).collect();
        if update.is_none() {
            lines.extend(self.waiting_for.iter().map(|waiting_for| format!("  … waiting for: {waiting_for}")));
        }
        let room = lines_max.saturating_sub(lines.len());
        let moving =
            self.machines.iter().filter(|machine| !machine.ready || machine.phase.as_deref() == Some("Deleting"));
        lines.extend(moving.take(room).map(|machine| {
            let message = machine.message.as_ref().and_then(|message| message.lines().next()).unwrap_or_default();
            let phase = machine.phase.as_deref().unwrap_or("Pending");
            format!("    {}  {phase}  {message}", machine.name)
        }));
        lines
    }

    /// The one line of a log that says most.
    pub fn line(&self) -> String {
        let stages = self.running_update().map(|update| update.stages.as_slice()).unwrap_or_default();
        let current = stages.iter().find(|stage| !matches!(stage.state, StageWord::Done | StageWord::Untouched));
        let counted = current.and_then(|stage| Some((stage.stage, stage.progress?)));
        let counted = counted.map(|(stage, count)| format!(", {stage} {}/{}", count.done, count.of));
        let why = self.waiting_for.as_ref().map(|text| format!(", waiting for: {text}"));
        format!("{}{}{}", self.assessment, counted.unwrap_or_default(), why.unwrap_or_default())
    }

    /// What it is, and what it is asked to be if that is something else.
    pub fn releases(&self) -> String {
        let release = output::cell(self.release.as_ref());
        match self.running.as_ref().filter(|running| Some(*running) != self.release.as_ref()) {
            Some(running) => format!("{running} -> {release}"),
            None => release,
        }
    }
}

impl UpdateReport {
    fn text(&self) -> String {
        // What holds one stage holds those after it, and is told once.
        let mut told: Vec<&WaitingFor> = Vec::new();
        let rows = self.stages.iter().flat_map(|stage| {
            let is_new = |waiting: &&WaitingFor| {
                let known = |told: &&WaitingFor| told.object == waiting.object && told.message == waiting.message;
                !told.iter().any(known)
            };
            let news: Vec<&WaitingFor> = stage.waiting_for.iter().filter(is_new).collect();
            told.extend(&news);
            let lines = news.into_iter().flat_map(|waiting| {
                let since = waiting.since.as_ref().map(|since| format!(" (since {since})")).unwrap_or_default();
                let why = format!("{}: {}{since}", waiting.object, waiting.message);
                [Some(why), waiting.way_out.as_ref().map(|way_out| format!("  way out: {way_out}"))]
            });
            let mut waiting = lines.flatten();
            let first = vec![
                stage.stage.to_string(),
                format!("{} {}", stage.state.sign(), stage.state.as_str()),
                stage.amount(),
                output::cell(stage.seconds.map(took)),
                waiting.next().unwrap_or_default(),
            ];
            let more = waiting.map(|waiting| {
                let mut row = vec![String::new(); 4];
                row.push(waiting);
                row
            });
            [first].into_iter().chain(more.collect::<Vec<_>>()).collect::<Vec<_>>()
        });
        let table = output::table(&["STAGE", "STATE", "DONE", "TOOK", "WAITING FOR"], rows);
        let failure = match (&self.failure, self.state) {
            (Some(why), _) => format!("\nfailed: {why}"),
            (None, Some(UpdateState::Aborted)) => format!("\ngiven up: the cluster keeps {}", self.from),
            (None, _) => String::new(),
        };
        format!("update {}: {} -> {}\n{table}{failure}", self.name, self.from, self.to)
    }
}

impl StageReport {
    /// The line of a board.
    fn line(&self) -> String {
        let count = self.progress.map(|count| format!("{} {}/{}", count.bar(BAR_WIDTH), count.done, count.of));
        let took = self.seconds.map(took).unwrap_or_default();
        let head =
            format!("  {} {:12} {:18} {took:>6}", self.state.sign(), self.stage.to_string(), count.unwrap_or_default());
        match self.waiting_for.first().filter(|_| self.state != StageWord::Done) {
            Some(waiting) => format!("{head}  {}", waiting.message),
            None => head.trim_end().to_owned(),
        }
    }

    /// How far it is; with a bar while that is worth a look.
    fn amount(&self) -> String {
        let Some(count) = self.progress else { return "-".to_owned() };
        let amount = format!("{}/{}", count.done, count.of);
        if count.done == count.of { amount } else { format!("{amount} {}", count.bar(BAR_WIDTH)) }
    }
}

/// A time in whole seconds, as people write it.
pub(crate) fn took(seconds: i64) -> String {
    output::took(SignedDuration::from_secs(seconds))
}
