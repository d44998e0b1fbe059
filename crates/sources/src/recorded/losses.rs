//! The I/Os that a recorder lost.

use std::ops::Range;

use dashpot_observe::Layer;
use dashpot_recording::{Count, Event, Mark};

use super::period::Recorded;
use super::spans::{Period, SECOND_NS};
use crate::owner::Owner;

impl Recorded {
    /// For each of these seconds, how many I/Os of a layer have no record of their own, because the recorder lost
    /// them or the recording has only the counts of the second.
    pub fn losses(&self, layer: Layer, seconds: &Range<u64>) -> anyhow::Result<Vec<(u64, u64)>> {
        let lost = counts(&self.marks, Event::Lost, |owner| owner == Owner::of(layer));
        let lost = lost.map(|(at_ns, n)| (at_ns / SECOND_NS, n));
        let mut losses: Vec<(u64, u64)> = lost
            .filter(|(second, _)| seconds.contains(second))
            .collect();
        if !self.counted.is_empty() {
            self.each_second(seconds.start, seconds.end, |row| {
                let is_counted = self.counted.has(row.second.saturating_mul(SECOND_NS))
                    && *row.layer == *layer.word();
                if let (true, Count::Bucket { n, .. }) = (is_counted, row.count) {
                    losses.push((row.second, n));
                }
            })?;
        }
        Ok(losses)
    }

    /// How many I/Os the recorder lost in a period.
    pub(super) fn lost(&self, period: Period) -> u64 {
        let is_own = |owner| self.owner().is_none_or(|own| own == owner);
        sum_in(period, counts(&self.marks, Event::Lost, is_own))
    }

    /// How many sync calls of a period were on unknown devices; `None` on layers without sync calls.
    pub(super) fn unplaced(&self, period: Period) -> Option<u64> {
        let unplaced = || counts(&self.marks, Event::Unplaced, |_| true);
        (self.layer() == Layer::Fs).then(|| sum_in(period, unplaced()))
    }

    /// How many I/Os the recorder lost in a period on all these layers.
    pub(super) fn lost_on(&self, layers: &[Layer], period: Period) -> u64 {
        let is_asked = |owner| layers.iter().any(|layer| Owner::of(*layer) == owner);
        let has_both = self.has_both();
        let is_asked = |owner| !has_both || is_asked(owner);
        sum_in(period, counts(&self.marks, Event::Lost, is_asked))
    }
}

/// The time and the number of each mark that counts these events. Leaves out marks of owners for which `is_own`
/// is false. A mark without an owner concerns all owners: a recorder that is too slow loses I/Os of all.
fn counts(
    marks: &[Mark],
    event: Event,
    is_own: impl Fn(Owner) -> bool,
) -> impl Iterator<Item = (u64, u64)> {
    let counted = marks.iter().filter(move |mark| mark.event == event);
    let own = counted.filter(move |mark| {
        let owner = mark.text.as_deref().and_then(Owner::of_word);
        owner.is_none_or(&is_own)
    });
    own.filter_map(|mark| Some((mark.at_ns, u64::try_from(mark.n?).ok()?)))
}

fn sum_in(period: Period, counts: impl Iterator<Item = (u64, u64)>) -> u64 {
    let own = counts.filter(|(at_ns, _)| period.has(*at_ns));
    // A stranger may have written the marks.
    own.map(|(_, n)| n).fold(0, u64::saturating_add)
}
