//! Statistics from a memory of finished I/Os of the kernel's disks, of a simulation or of a recording.

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Arc;

use dashpot_api::{Clock, Column, RememberedSteps, Source, SourceDevice, SourceLayer};
use dashpot_observe::{Dimension, FinishedIo, Knows, Layer, Statistic, Tally};

use super::asked::{Answer, Ios, StatisticSource, panicked};
use super::interval::{Counted, Interval, SECOND_NS};
use super::ios::question;
use super::parts::parts;
use crate::answers::{AnswerBuilder, AnswerMemory};
use crate::http::memory::{Memory, Wanted};
use crate::{Refusal, RefusalKind};

/// A memory, as a source of statistics.
pub(crate) struct Viewed {
    memory: Arc<dyn Memory>,
    answers: AnswerMemory,
}

/// The wanted I/Os of a memory, which are read only when a caller looks at them.
struct Read {
    memory: Arc<dyn Memory>,
    wanted: Wanted,
}

impl Viewed {
    pub(crate) fn new(memory: Arc<dyn Memory>) -> Viewed {
        Viewed {
            memory,
            answers: AnswerMemory::default(),
        }
    }
}

impl StatisticSource for Viewed {
    fn answers(&self) -> &AnswerMemory {
        &self.answers
    }

    fn source(&self) -> Source {
        self.memory.source()
    }

    fn knows(&self, layer: Layer) -> Option<Knows> {
        self.memory.knows(layer)
    }

    fn clock(&self) -> Clock {
        self.memory.clock()
    }

    fn values(&self, dimension: Dimension) -> Answer<'_, Vec<String>> {
        Box::pin(async move { self.memory.values(dimension) })
    }

    fn remembered(&self) -> (Vec<RememberedSteps>, u64) {
        (Vec::new(), self.memory.since())
    }

    fn count<'a>(
        &'a self,
        statistic: &'a Statistic,
        interval: &'a Interval,
        making: &'a mut AnswerBuilder,
    ) -> Answer<'a, Result<Counted, Refusal>> {
        Box::pin(async move {
            making.charge(2 * TALLIES)?;
            let memory = Arc::clone(&self.memory);
            let (statistic, interval) = (statistic.clone(), interval.clone());
            let counted =
                tokio::task::spawn_blocking(move || columns(&*memory, &statistic, &interval));
            counted.await.map_err(panicked)?
        })
    }

    fn ios<'a>(
        &'a self,
        wanted: Wanted,
        _: &'a mut AnswerBuilder,
    ) -> Answer<'a, Result<Box<dyn Ios>, Refusal>> {
        let memory = Arc::clone(&self.memory);
        Box::pin(async move { Ok(Box::new(Read { memory, wanted }) as Box<dyn Ios>) })
    }
}

impl Ios for Read {
    fn each(&self, look: &mut dyn FnMut(&FinishedIo)) -> Result<u64, Refusal> {
        each(&*self.memory, &self.wanted, look)
    }
}

/// The columns of an interval. Each of two threads counts half of them, piece by piece, because the tallies of
/// columns are large.
fn columns(
    memory: &dyn Memory,
    statistic: &Statistic,
    interval: &Interval,
) -> Result<Counted, Refusal> {
    let pieces: Vec<Range<u64>> = interval.pieces(PIECE).collect();
    let (early, late) = pieces.split_at(pieces.len() / 2);
    let count = |own| count(memory, statistic, interval, own);
    let (early, late) = std::thread::scope(|scope| {
        let early = (!early.is_empty()).then(|| scope.spawn(|| count(early)));
        let late = count(late);
        // A thread that has panicked has printed its message. The panic continues here, and the request
        // fails.
        let early = early.map(|early| early.join().unwrap_or_else(|panic| resume_unwind(panic)));
        (early.transpose(), late)
    });
    let mut counted = late?;
    if let Some(early) = early? {
        counted.columns.extend(early.columns);
        counted.since = counted.since.max(early.since);
    }
    counted.finish(interval, &memory.lost(statistic.layer, &interval.seconds));
    counted.since = counted.since.max(memory.clock().started_ns / SECOND_NS);
    Ok(counted)
}

fn count(
    memory: &dyn Memory,
    statistic: &Statistic,
    interval: &Interval,
    pieces: &[Range<u64>],
) -> Result<Counted, Refusal> {
    let mut counted = Counted {
        columns: BTreeMap::new(),
        since: 0,
    };
    for seconds in pieces {
        count_piece(memory, statistic, interval, seconds, &mut counted)?;
    }
    Ok(counted)
}

fn count_piece(
    memory: &dyn Memory,
    statistic: &Statistic,
    interval: &Interval,
    seconds: &Range<u64>,
    counted: &mut Counted,
) -> Result<(), Refusal> {
    let question = question(statistic);
    let columns = (interval.column(seconds.start)..seconds.end).step_by(interval.step as usize);
    let mut tallies: Vec<Tally> = columns.clone().map(|_| Tally::of(&question)).collect();
    let wanted = Wanted {
        names_devices: statistic.names_devices(),
        layer: statistic.layer,
        seconds: seconds.clone(),
    };
    let first = seconds.start / interval.step;
    let mut add = |io: &FinishedIo| {
        let column = io.ended_ns / SECOND_NS / interval.step;
        let place = column.checked_sub(first);
        // A damaged recording can give I/Os of other seconds.
        if let Some(tally) = place.and_then(|place| tallies.get_mut(place as usize)) {
            tally.add(io);
        }
    };
    let since = each(memory, &wanted, &mut add)?;
    counted.since = counted.since.max(since);
    for (second, mut tally) in columns.zip(tallies) {
        let parts = parts(tally.take_groups(), statistic);
        if !parts.is_empty() {
            let column = Column {
                parts,
                ..Column::default()
            };
            counted.columns.insert(second, column);
        }
    }
    Ok(())
}

/// Calls `look` for each wanted I/O.
fn each(
    memory: &dyn Memory,
    wanted: &Wanted,
    look: &mut dyn FnMut(&FinishedIo),
) -> Result<u64, Refusal> {
    let layer = match wanted.layer {
        Layer::Kernel => SourceLayer::Kernel,
        _ => SourceLayer::Disk,
    };
    // Of calls and volumes, none is also an I/O of another device.
    let may_count_twice = matches!(wanted.layer, Layer::Kernel | Layer::Disk | Layer::Store);
    let is_left_out =
        |device: &SourceDevice| may_count_twice && device.layer == layer && !device.over.is_empty();
    let mut stacked = memory.source().devices;
    stacked.retain(|device| !wanted.names_devices && is_left_out(device));
    let mut look = |io: &FinishedIo| {
        if !stacked.iter().any(|device| *device.name == *io.device) {
            look(io);
        }
    };
    memory.each(wanted, &mut look).map_err(unreadable)
}

fn unreadable(error: anyhow::Error) -> Refusal {
    Refusal::new(RefusalKind::Failed, format!("{error:#}"))
}

/// How many columns are counted at a time.
const PIECE: u64 = 240;
/// Roughly how many bytes the tallies of [`PIECE`] columns take in each of the two threads.
const TALLIES: usize = 16 << 20;
