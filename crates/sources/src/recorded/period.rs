//! A period of a recording, and the recorded devices that a report is about.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use dashpot_cli::When;
use dashpot_cli::reports::PeriodArgs;
use dashpot_engine::Duration;
use dashpot_export::complain;
use dashpot_observe::{FinishedIo, IoWaits, Knows, Layer, Question, Stacked};
use dashpot_recording::{
    Blocks, Event, Mark, Query, Recorded as RecordedIo, Recording, Second, column,
};
use dashpot_rules::ParseError;

use super::history::{History, layer_of, sessions_of};
use super::spans::{Counted, Period, SECOND_NS};
use super::stacked::LeftOut;
use crate::known::check_known;
use crate::owner::Owner;

/// A period of a recording.
#[derive(Clone)]
pub struct Recorded {
    recording: Recording,
    /// The devices that were recorded, by layer.
    pub(super) known: BTreeSet<(Layer, String)>,
    /// The layer that the user asks about; `None` for all.
    pub(super) layer: Option<Layer>,
    /// The devices that the user has named, or all recorded devices if the user has named none.
    pub(super) names: Vec<String>,
    /// The disks that are over other disks, if the user has named none.
    stacked: LeftOut,
    /// The facts that are known about the I/Os of disks, which are the kernel's or a daemon's.
    pub(super) disks: Knows,
    pub(super) period: Period,
    /// The seconds for which the recording has only counts.
    pub(super) counted: Counted,
    /// The times in which the recording was made.
    pub(super) sessions: Vec<Period>,
    /// The owners whose disks the recorder stopped watching while it went on with the others, and when it
    /// stopped.
    pub(super) ends: Vec<(Owner, u64)>,
    /// The conditions on the I/Os, if the recording is a part of another recording.
    pub(super) cut: Option<String>,
    pub(super) marks: Vec<Mark>,
}

impl Recorded {
    /// Opens a recording. `names` selects devices; if it is empty, the report covers all devices.
    pub fn open(path: &Path, names: &[String]) -> anyhow::Result<Recorded> {
        let recording = Recording::open(path)?;
        let mut damaged = Vec::new();
        let marks = recording.marks(&mut damaged)?;
        let history = History::of(&marks);
        let gaps = recording.gaps(&marks);
        let counted = Counted::of_gaps(&gaps);
        let (devices, seconds) = recording.counted(&mut damaged)?;
        for error in damaged {
            complain(format_args!(
                "{error}. The report goes on without it: counts of seconds, or marks, are missing."
            ));
        }
        let by_layer =
            |(layer, device): &(Arc<str>, Arc<str>)| (Layer::of_word(layer), device.to_string());
        let mut known: BTreeSet<_> = devices.iter().map(by_layer).collect();
        known.extend(history.devices.iter().cloned());
        let singles = recording.period().map(|(first_ns, last_ns)| Period {
            from_ns: first_ns,
            to_ns: last_ns.saturating_add(1),
        });
        let sessions = history.sessions(singles);
        let ends = sessions.first().zip(sessions.last());
        let whole = ends.map(|(first, last)| Period {
            from_ns: first.from_ns,
            to_ns: singles.map_or(last.to_ns, |singles| singles.to_ns.max(last.to_ns)),
        });
        let whole = whole
            .filter(|whole| whole.from_ns < whole.to_ns)
            .with_context(|| nothing(path))?;
        let has_disks = known.iter().any(|(layer, _)| *layer == Layer::Disk);
        let disks = match history.disks {
            Some(knows) => knows,
            None if has_disks => first_knows(&recording)?,
            None => Knows::Zios,
        };
        Ok(Recorded {
            names: named(names, &known)?,
            stacked: LeftOut::of(&history.stacked, &sessions, names, &known)?,
            known,
            layer: None,
            disks,
            period: with_gaps(whole, &counted, &gaps, seconds),
            counted,
            sessions,
            ends: history.ends,
            cut: history.cut,
            marks,
            recording,
        })
    }

    /// The part of this period that the user asks for.
    pub fn part(&self, args: &PeriodArgs) -> anyhow::Result<Recorded> {
        Ok(Recorded {
            period: part(self.period, args)?,
            ..self.clone()
        })
    }

    /// The I/Os of the period on one layer. Fails if none of the named devices is on this layer, and tells
    /// which layer the recording has. A daemon's records have the time at the store as a part of the disk's
    /// I/O, so `store` means the disks.
    pub fn on(&self, layer: Layer) -> Result<Recorded, ParseError> {
        let recorded = match layer {
            Layer::Store if self.disks == Knows::Zios => Layer::Disk,
            layer => layer,
        };
        let is_there = |name: &&String| self.known.contains(&(recorded, (*name).clone()));
        let names: Vec<String> = self.names.iter().filter(is_there).cloned().collect();
        let own = self
            .known
            .iter()
            .filter(|(_, name)| self.names.contains(name));
        let mut own = own.filter(|(other, _)| *other != recorded);
        let others = own.next();
        match (names.is_empty(), others) {
            (true, Some(_)) if layer == Layer::Kernel && self.disks == Knows::Kernel => {
                Err(ParseError::new(
                    "--layer kernel: the recording has the kernel's disks only, which are its layer disk: ask about \
                     --layer disk, or a statistic such as disk.ops",
                ))
            }
            (true, Some((other, device))) => {
                let (asked, others, other) = (plural(layer), plural(*other), other.word());
                Err(ParseError::new(format!(
                    "--in: the recording has no such {asked}, but {others} such as '{device}': ask \
                     about --layer {other}, or a statistic such as {other}.ops"
                )))
            }
            _ => Ok(Recorded {
                names,
                layer: Some(recorded),
                sessions: sessions_of(Owner::of(recorded), &self.sessions, &self.ends),
                ..self.clone()
            }),
        }
    }

    /// The I/Os of disks; of volumes, if the recording has no disks.
    pub fn on_disks_or_volumes(&self) -> Result<Recorded, ParseError> {
        let has_disks = self.known.iter().any(|(layer, _)| *layer == Layer::Disk);
        self.on(if has_disks {
            Layer::Disk
        } else {
            Layer::Volume
        })
    }

    /// The rest of the period, before and after a part.
    pub fn without(&self, part: &Recorded) -> Vec<Recorded> {
        let before = Period {
            to_ns: part.period.from_ns,
            ..self.period
        };
        let after = Period {
            from_ns: part.period.to_ns,
            ..self.period
        };
        let left = [before, after].into_iter();
        left.filter(|period| period.from_ns < period.to_ns)
            .map(|period| Recorded {
                period,
                ..self.clone()
            })
            .collect()
    }

    /// The part of the period between two moments, in nanoseconds since 1970.
    pub fn within(&self, ns: Range<u64>) -> Recorded {
        let period = Period {
            from_ns: ns.start.max(self.period.from_ns),
            to_ns: ns.end.min(self.period.to_ns),
        };
        Recorded {
            period,
            ..self.clone()
        }
    }

    /// Whether the recording has ended. It has not ended while a recorder runs, or if the last recorder was
    /// killed before it could mark the end.
    pub fn has_ended(&self) -> bool {
        let own = self.marks.iter().rev();
        let mut own = own.filter(|mark| {
            matches!(
                mark.event,
                Event::Began | Event::Ended | Event::Stopped | Event::Cut
            )
        });
        own.next().is_none_or(|last| last.event != Event::Began)
    }

    /// The first and the last nanosecond of the period, since 1970.
    pub fn moments(&self) -> (u64, u64) {
        (self.period.from_ns, self.period.to_ns.saturating_sub(1))
    }

    /// For how many seconds of the period the recording has only counts.
    pub fn counted_seconds(&self) -> u64 {
        self.counted.seconds(self.period)
    }

    pub fn devices(&self, layer: Layer) -> Vec<String> {
        let own = self.known.iter().filter(|(known, _)| *known == layer);
        own.map(|(_, name)| name.clone()).collect()
    }

    /// How long the recorder watched in this period.
    pub fn lasted(&self) -> Duration {
        Duration::from_nanos(self.watched_ns(self.period))
    }

    /// How long the recorder watched in a period, in nanoseconds.
    pub(super) fn watched_ns(&self, period: Period) -> u64 {
        let each = self.sessions.iter();
        each.map(|session| session.shared_ns(period)).sum()
    }

    /// Calls `of` for each I/O that ended in the period.
    pub fn each(&self, mut of: impl FnMut(&FinishedIo)) -> anyhow::Result<()> {
        self.each_recorded(|one| {
            if !one.is_in_flight {
                of(&one.io);
            }
            Ok(())
        })
    }

    /// Calls `of` for each I/O of the period, including I/Os that were in flight when a file was sealed.
    pub fn each_recorded(
        &self,
        mut of: impl FnMut(RecordedIo) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut blocks = self.blocks(self.period.query());
        while let Some(block) = blocks.next_block()? {
            let mut own = block.ios().filter(|one| self.is_named(&one.io));
            own.try_for_each(&mut of)?;
        }
        Ok(())
    }

    /// The name of the host that made the recording.
    pub fn host(&self) -> anyhow::Result<Option<String>> {
        Ok(self.recording.host()?)
    }

    /// The marks of the period, and the marks that describe the watched devices, whatever their time.
    pub fn marks(&self) -> Vec<Mark> {
        let is_device = |mark: &Mark| matches!(mark.event, Event::Watched | Event::Stacked);
        let is_own = |mark: &&Mark| is_device(mark) || self.period.has(mark.at_ns);
        self.marks.iter().filter(is_own).cloned().collect()
    }

    /// Whether a mark tells that a device of the report was watched at one of these layers.
    pub fn is_about(&self, mark: &Mark, layers: &[Layer]) -> bool {
        let is_named = |device: &String| self.names.contains(device);
        let layer = mark.text.as_deref().map(layer_of);
        mark.device.as_ref().is_some_and(is_named)
            && layer.is_some_and(|layer| layers.contains(&layer))
    }

    /// The conditions of the I/Os, if the recording is a part of another one that only some of its I/Os met.
    pub(super) fn conditions(&self) -> Option<&str> {
        self.cut.as_deref().filter(|cut| !cut.is_empty())
    }

    /// The layer that the user asks about.
    pub fn layer(&self) -> Layer {
        self.layer.unwrap_or(Layer::Disk)
    }

    /// The names of the devices that the report is about.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The kinds of facts that the recording has about the I/Os of the layer that the user asks about.
    pub fn knows(&self) -> Knows {
        self.knows_on(self.layer())
    }

    /// The kinds of facts that the recording has about the I/Os of a layer.
    pub fn knows_on(&self, layer: Layer) -> Knows {
        match layer {
            Layer::Fs | Layer::Kernel => Knows::Kernel,
            Layer::Volume => Knows::Zios,
            Layer::Disk | Layer::Store => self.disks,
        }
    }

    /// The layers of the devices that the report is about.
    pub fn layers(&self) -> BTreeSet<Layer> {
        let own = self
            .known
            .iter()
            .filter(|(_, name)| self.names.contains(name));
        own.map(|(layer, _)| *layer).collect()
    }

    /// Refuses a question that the recording cannot answer.
    pub fn check(&self, question: &Question) -> Result<(), ParseError> {
        check_known(question, self.knows())
    }

    /// Calls `of` for each row that the table of seconds has for these seconds since 1970.
    pub(super) fn each_second(
        &self,
        from_s: u64,
        to_s: u64,
        of: impl FnMut(Second),
    ) -> anyhow::Result<()> {
        // `open` has already named the damaged files.
        Ok(self
            .recording
            .each_second(from_s, to_s, &mut Vec::new(), of)?)
    }

    /// The I/Os of a query, in blocks.
    pub(super) fn blocks(&self, query: Query) -> Blocks {
        self.recording.blocks(query)
    }

    /// Begins another query, and reuses what `blocks` still has from an earlier query.
    pub(super) fn ask(&self, query: Query, blocks: &mut Blocks) {
        self.recording.ask(query, blocks);
    }

    /// The disks of the report that its sums leave out.
    pub fn stacked(&self) -> Vec<Stacked> {
        self.stacked_in(self.period)
    }

    /// The disks that the sums of a period leave out.
    pub(super) fn stacked_in(&self, period: Period) -> Vec<Stacked> {
        let mut all = self.stacked.within(period);
        all.retain(|one| self.layer.is_none_or(|layer| layer == one.layer));
        all
    }

    /// The disks beneath a disk that sums leave out.
    pub fn over(&self, layer: Layer, device: &str) -> Vec<String> {
        let stacked = self.stacked.within(self.period).into_iter();
        let mut own = stacked.filter(|one| one.is_of(layer, device));
        own.next().map_or_else(Vec::new, |own| own.over)
    }

    /// Whether a sum of all devices of the report counts an I/O.
    pub fn sums(&self, io: &FinishedIo) -> bool {
        !self.stacked.has(io)
    }

    pub(super) fn is_named(&self, io: &FinishedIo) -> bool {
        let is_asked = self.layer.is_none_or(|layer| layer == io.layer);
        is_asked && self.names.iter().any(|name| **name == *io.device)
    }
}

/// The part of a period that the user asks for.
fn part(whole: Period, args: &PeriodArgs) -> anyhow::Result<Period> {
    let near = |when: When| when.near(whole.from_ns..whole.to_ns);
    let to_ns = args.to.map(near).transpose()?.unwrap_or(whole.to_ns);
    let from_ns = match (args.last, args.from) {
        (Some(last), _) => to_ns.saturating_sub(last.as_nanos()),
        (None, Some(from)) => near(from)?,
        (None, None) => whole.from_ns,
    };
    let asked = Period { from_ns, to_ns };
    let (first, last) = whole.shown();
    if to_ns <= from_ns && args.from.is_some() && args.to.is_some() {
        let (from, to) = asked.shown();
        bail!(
            "the period ends before it begins: it is from {from} to {to}, and the recording from {first} to {last}"
        );
    }
    if to_ns <= whole.from_ns || from_ns >= whole.to_ns {
        bail!("the recording is from {first} to {last}, and has nothing of that period");
    }
    if from_ns < whole.from_ns && (args.from.is_some() || args.last.is_some()) {
        complain(format_args!(
            "The recording begins at {first}: the report begins there."
        ));
    }
    if to_ns > whole.to_ns {
        complain(format_args!(
            "The recording ends at {last}: the report ends there."
        ));
    }
    Ok(Period {
        from_ns: from_ns.max(whole.from_ns),
        to_ns: to_ns.min(whole.to_ns),
    })
}

/// Why a recording has nothing to report.
fn nothing(path: &Path) -> String {
    let path = path.display();
    format!("nothing was recorded: '{path}' has no I/O; the first file appears within 10 s")
}

/// The kinds of facts about disks in a recording without marks, as the first I/O that has ended shows them.
fn first_knows(recording: &Recording) -> anyhow::Result<Knows> {
    let query = Query {
        columns: vec![column::LAYER, column::OUTCOME, column::THROTTLE],
        ..Query::default()
    };
    let mut blocks = recording.blocks(query);
    while let Some(block) = blocks.next_block()? {
        let mut ios = block.ios();
        if let Some(first) = ios.find(|one| !one.is_in_flight && one.io.layer == Layer::Disk) {
            return Ok(match first.io.waits {
                IoWaits::Kernel { .. } => Knows::Kernel,
                IoWaits::Zio(_) | IoWaits::Call(_) => Knows::Zios,
            });
        }
    }
    Ok(Knows::Zios)
}

/// The period of single I/Os, extended by the seconds before and after it for which the recording has only
/// counts.
fn with_gaps(
    singles: Period,
    counted: &Counted,
    gaps: &[Range<u64>],
    seconds: Range<u64>,
) -> Period {
    let [first_ns, end_ns] =
        [seconds.start, seconds.end].map(|second| second.saturating_mul(SECOND_NS));
    let is_before = gaps.first().is_some_and(|gap| gap.start == 0);
    let is_after = gaps.last().is_some_and(|gap| gap.end == u64::MAX);
    let mut whole = singles;
    if is_before || counted.has(singles.from_ns) {
        whole.from_ns = whole.from_ns.min(first_ns);
    }
    if is_after {
        whole.to_ns = whole.to_ns.max(end_ns);
    }
    whole
}

fn plural(layer: Layer) -> String {
    match layer {
        Layer::Fs => "sync calls on disks".to_owned(),
        Layer::Kernel => "kernel disks".to_owned(),
        layer => format!("{}s", layer.word()),
    }
}

fn named(names: &[String], known: &BTreeSet<(Layer, String)>) -> anyhow::Result<Vec<String>> {
    let known: BTreeSet<&String> = known.iter().map(|(_, name)| name).collect();
    if names.is_empty() {
        return Ok(known.into_iter().cloned().collect());
    }
    if let Some(name) = names.iter().find(|name| !known.contains(name)) {
        let known: Vec<&str> = known.into_iter().map(String::as_str).collect();
        let known = match &known[..] {
            [] => "no devices yet".to_owned(),
            known => known.join(", "),
        };
        bail!("-d {name}: the recording has {known}");
    }
    Ok(names.to_vec())
}
