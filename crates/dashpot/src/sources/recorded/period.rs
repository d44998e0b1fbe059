//! A period of a recording, and the devices of it that a report is about.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, bail};
use dashpot_engine::Duration;
use dashpot_export::complain;
use dashpot_observe::{FinishedIo, IoWaits, Knows, Layer, Question};
use dashpot_recording::{Blocks, Event, Mark, Query, Recorded as RecordedIo, Recording};
use dashpot_rules::ParseError;

use crate::cli::reports::PeriodArgs;
use crate::cli::shown_moment;
use crate::sources::known::check_known;

/// A period of a recording.
#[derive(Clone)]
pub(crate) struct Recorded {
    recording: Recording,
    /// The devices that are asked for; without names from the user, all that were recorded.
    pub(super) names: Vec<String>,
    pub(super) layer: Layer,
    knows: Knows,
    pub(super) period: Period,
}

/// A part of a recording, in nanoseconds since 1970. Its end is excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Period {
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
}

impl Recorded {
    /// Opens a recording, of which these devices are asked for; without names, all.
    pub(crate) fn open(path: &Path, names: &[String]) -> anyhow::Result<Recorded> {
        let recording = Recording::open(path)?;
        let (first_ns, last_ns) = recording
            .period()?
            .with_context(|| format!("nothing was recorded: '{}' has no I/O", path.display()))?;
        let whole = Period {
            from_ns: first_ns,
            to_ns: last_ns.saturating_add(1),
        };
        let first = first_io(&recording)?;
        let known = devices(&recording)?;
        Ok(Recorded {
            names: named(names, &known)?,
            layer: first.layer,
            knows: match first.waits {
                IoWaits::Kernel { .. } => Knows::Kernel,
                IoWaits::Zio(_) => Knows::Zios,
            },
            period: whole,
            recording,
        })
    }

    /// The part of it that is asked for.
    pub(crate) fn part(&self, args: &PeriodArgs) -> anyhow::Result<Recorded> {
        Ok(Recorded {
            period: part(self.period, args)?,
            ..self.clone()
        })
    }

    /// What is left of it before and after a part.
    pub(crate) fn without(&self, part: &Recorded) -> Vec<Recorded> {
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

    /// Its length.
    pub(crate) fn lasted(&self) -> Duration {
        Duration::from_nanos(self.period.to_ns - self.period.from_ns)
    }

    /// Calls for each I/O that ended in it.
    pub(crate) fn each(&self, mut of: impl FnMut(&FinishedIo)) -> anyhow::Result<()> {
        self.each_recorded(|one| {
            if !one.is_in_flight {
                of(&one.io);
            }
            Ok(())
        })
    }

    /// Calls for each I/O of it, those in flight when a file was sealed included.
    pub(crate) fn each_recorded(
        &self,
        mut of: impl FnMut(RecordedIo) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        for block in self.blocks(self.period.query())? {
            let own = block?
                .ios()
                .into_iter()
                .filter(|one| self.is_named(&one.io));
            own.into_iter().try_for_each(&mut of)?;
        }
        Ok(())
    }

    /// The name of the host that made it.
    pub(crate) fn host(&self) -> anyhow::Result<Option<String>> {
        Ok(self.recording.host()?)
    }

    /// Its marks.
    pub(crate) fn marks(&self) -> anyhow::Result<Vec<Mark>> {
        let mut marks = self.recording.marks()?;
        marks.retain(|mark| self.period.has(mark.at_ns));
        Ok(marks)
    }

    /// The names of its devices.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether its I/Os are the kernel's.
    pub(crate) fn knows(&self) -> Knows {
        self.knows
    }

    /// Whether it can answer the question.
    pub(crate) fn check(&self, question: &Question) -> Result<(), ParseError> {
        let is_known = |layer: &Layer| match layer {
            Layer::Store => self.layer == Layer::Disk && self.knows == Knows::Zios,
            layer => *layer == self.layer,
        };
        if question.layers().iter().all(is_known) {
            return check_known(question, self.knows);
        }
        let recorded = self.layer.word();
        Err(ParseError::new(format!(
            "--in: the recording is one of {recorded}s: ask about --layer {recorded}, or a statistic such \
             as {recorded}.ops"
        )))
    }

    /// The I/Os of a query, in blocks.
    pub(super) fn blocks(&self, query: Query) -> anyhow::Result<Blocks> {
        Ok(self.recording.blocks(query)?)
    }

    /// How many I/Os its recorder lost in a period.
    pub(super) fn lost(&self, period: Period) -> anyhow::Result<u64> {
        let marks = self.recording.marks()?.into_iter();
        let lost = marks.filter(|mark| mark.event == Event::Lost);
        let own = lost.filter(|mark| period.has(mark.at_ns));
        Ok(own.filter_map(|mark| u64::try_from(mark.n?).ok()).sum())
    }

    pub(super) fn is_named(&self, io: &FinishedIo) -> bool {
        self.names.iter().any(|name| **name == *io.device)
    }
}

impl Period {
    fn has(self, at_ns: u64) -> bool {
        (self.from_ns..self.to_ns).contains(&at_ns)
    }

    pub(super) fn query(self) -> Query {
        Query {
            from_ns: self.from_ns,
            to_ns: self.to_ns,
            ..Query::default()
        }
    }
}

/// The part of the period of single I/Os that is asked for.
fn part(whole: Period, args: &PeriodArgs) -> anyhow::Result<Period> {
    let from_ns = args.from.map(|from| from.before(whole.to_ns)).transpose()?;
    let to_ns = match (args.to, from_ns) {
        (None, _) => whole.to_ns,
        (Some(to), None) => to.before(whole.to_ns)?,
        (Some(to), Some(from_ns)) => to.after(from_ns)?,
    };
    let from_ns = match args.last {
        Some(last) => to_ns.saturating_sub(last.as_nanos()),
        None => from_ns.unwrap_or(whole.from_ns),
    };
    if to_ns <= from_ns {
        bail!("the period ends before it begins");
    }
    if to_ns <= whole.from_ns || from_ns >= whole.to_ns {
        let [first, last] = [whole.from_ns, whole.to_ns].map(shown_moment);
        bail!("the recording has single I/Os from {first} to {last}, and none in that period");
    }
    if from_ns < whole.from_ns && (args.from.is_some() || args.last.is_some()) {
        let first = shown_moment(whole.from_ns);
        complain(format_args!(
            "The recording's single I/Os begin at {first}: the report begins there."
        ));
    }
    Ok(Period {
        from_ns: from_ns.max(whole.from_ns),
        to_ns: to_ns.min(whole.to_ns),
    })
}

fn first_io(recording: &Recording) -> anyhow::Result<FinishedIo> {
    for block in recording.blocks(Query::default())? {
        if let Some(first) = block?.ios().into_iter().next() {
            return Ok(first.io);
        }
    }
    bail!("the recording has no I/O")
}

/// The devices of a recording, by its counts of seconds.
fn devices(recording: &Recording) -> anyhow::Result<BTreeSet<String>> {
    let seconds = recording.seconds(0, u64::MAX)?.into_iter();
    Ok(seconds.map(|second| second.device).collect())
}

fn named(names: &[String], known: &BTreeSet<String>) -> anyhow::Result<Vec<String>> {
    if names.is_empty() {
        return Ok(known.iter().cloned().collect());
    }
    if let Some(name) = names.iter().find(|name| !known.contains(*name)) {
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        bail!("-d {name}: the recording has {}", known.join(", "));
    }
    Ok(names.to_vec())
}
