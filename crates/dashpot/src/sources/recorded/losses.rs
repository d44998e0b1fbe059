//! The I/Os that a recorder lost.

use std::ops::Range;

use dashpot_observe::Layer;
use dashpot_recording::{Count, Event, Mark};

use super::period::Recorded;
use super::spans::{Period, SECOND_NS};
use crate::sources::owner::Owner;

impl Recorded {
    /// For each of these seconds, how many I/Os of a layer have no record of their own, because the recorder lost
    /// them or the recording has only the counts of the second.
    pub(crate) fn losses(
        &self,
        layer: Layer,
        seconds: &Range<u64>,
    ) -> anyhow::Result<Vec<(u64, u64)>> {
        let lost = self.marks.iter().filter(|mark| mark.event == Event::Lost);
        let lost = lost.filter(|mark| {
            let owner = mark.text.as_deref().and_then(Owner::of_word);
            owner.is_none_or(|owner| owner == Owner::of(layer))
        });
        let lost = lost.filter_map(|mark| {
            let second = mark.at_ns / SECOND_NS;
            Some((second, u64::try_from(mark.n?).ok()?))
        });
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
        lost_of(&self.marks, period, |owner| {
            self.owner().is_none_or(|own| own == owner)
        })
    }

    /// How many I/Os the recorder lost in a period on all these layers.
    pub(super) fn lost_on(&self, layers: &[Layer], period: Period) -> u64 {
        let is_asked = |owner| layers.iter().any(|layer| Owner::of(*layer) == owner);
        let has_both = self.has_both();
        lost_of(&self.marks, period, |owner| !has_both || is_asked(owner))
    }
}

/// How many I/Os of some owners' disks were lost in a period. A recorder that is too slow loses I/Os of all.
fn lost_of(marks: &[Mark], period: Period, is_own: impl Fn(Owner) -> bool) -> u64 {
    let lost = marks
        .iter()
        .filter(|mark| mark.event == Event::Lost && period.has(mark.at_ns));
    let own = lost.filter(|mark| {
        let owner = mark.text.as_deref().and_then(Owner::of_word);
        owner.is_none_or(&is_own)
    });
    own.filter_map(|mark| u64::try_from(mark.n?).ok()).sum()
}
