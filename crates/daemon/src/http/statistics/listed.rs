//! The individual I/Os that a part of a statistic counts: the longest first, a page at a time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use dashpot_api::{StatisticIo, StatisticIos};
use dashpot_observe::{FinishedIo, Predicates, Statistic};

use super::asked::{Ios, StatisticSource, panicked};
use super::{Interval, SECOND_NS};
use crate::Refusal;
use crate::answers::AnswerBuilder;
use crate::http::memory::Wanted;

/// The I/Os that a caller wants.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) statistic: Statistic,
    /// The bounds of the statistic's number, as conditions.
    pub(crate) bounds: Predicates,
    /// The time in which the I/Os ended, in whole seconds.
    pub(crate) ended_ns: Range<u64>,
    /// How many of the longest I/Os are left out.
    pub(crate) skip: usize,
    /// How many I/Os are listed after those that are left out.
    pub(crate) limit: usize,
}

/// Lists I/Os.
pub(crate) async fn list(
    asked: &dyn StatisticSource,
    listed: Listed,
    making: &mut AnswerBuilder,
) -> Result<StatisticIos, Refusal> {
    let now_ns = asked.clock().now_ns;
    let interval = Interval::whole(&listed.ended_ns, now_ns)?;
    let wanted = Wanted {
        names_devices: listed.statistic.names_devices(),
        layer: listed.statistic.layer,
        seconds: interval.seconds,
    };
    making.charge((listed.skip + listed.limit) * IO)?;
    let ios = asked.ios(wanted, making).await?;
    let found = tokio::task::spawn_blocking(move || listed.longest(&*ios));
    found.await.map_err(panicked)?
}

impl Listed {
    fn longest(&self, ios: &dyn Ios) -> Result<StatisticIos, Refusal> {
        let most = self.skip + self.limit;
        let mut count = 0;
        let mut longest: BinaryHeap<Reverse<ByTime>> = BinaryHeap::new();
        let since = ios.each(&mut |io| {
            if !self.statistic.predicates.select(io) || !self.bounds.select(io) {
                return;
            }
            count += 1;
            let key = key_of(io);
            let is_full = longest.len() == most;
            if is_full && longest.peek().is_none_or(|Reverse(least)| key <= least.key) {
                return;
            }
            let io = Box::new(StatisticIo::of(io));
            longest.push(Reverse(ByTime { key, io }));
            if is_full {
                longest.pop();
            }
        })?;
        let sorted = longest.into_sorted_vec();
        let page = sorted.into_iter().skip(self.skip);
        Ok(StatisticIos {
            ios: page.map(|Reverse(one)| *one.io).collect(),
            count,
            since_ns: since * SECOND_NS,
        })
    }
}

/// An I/O, ordered by its time.
struct ByTime {
    key: Key,
    io: Box<StatisticIo>,
}

/// The key by which a list is sorted: the time, and facts that distinguish I/Os with the same time.
type Key = (u64, u64, u64, u64);

fn key_of(io: &FinishedIo) -> Key {
    (io.total_ns(), io.ended_ns, io.offset_bytes, io.length_bytes)
}

impl Ord for ByTime {
    fn cmp(&self, other: &ByTime) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

impl PartialOrd for ByTime {
    fn partial_cmp(&self, other: &ByTime) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ByTime {
    fn eq(&self, other: &ByTime) -> bool {
        self.key == other.key
    }
}

impl Eq for ByTime {}

/// Roughly how many bytes an I/O takes in an answer.
const IO: usize = size_of::<StatisticIo>() + 256;
