//! Several layers of a recording at once.

use dashpot_observe::{Layer, Seen, Span};
use dashpot_rules::ParseError;

use super::period::Recorded;
use super::spans::Period;
use crate::source::Source;

/// Layers of one recording, with the same intervals.
pub(super) struct RecordedLayers<'a> {
    parts: &'a [Recorded],
    layers: Vec<Box<dyn Source + 'a>>,
}

impl<'a> RecordedLayers<'a> {
    pub(super) fn of(
        parts: &'a [Recorded],
        layers: impl Iterator<Item = Box<dyn Source + 'a>>,
    ) -> RecordedLayers<'a> {
        RecordedLayers {
            parts,
            layers: layers.collect(),
        }
    }

    /// How many I/Os were lost in an interval. A loss that concerns several layers counts once.
    fn lost(&self, span: &Span) -> u64 {
        let layers: Vec<Layer> = self.parts.iter().map(Recorded::layer).collect();
        let period = Period {
            from_ns: span.start_ns,
            to_ns: span.end_ns,
        };
        let first = self.parts.first();
        first.map_or(0, |first| first.lost_on(&layers, period))
    }
}

impl Source for RecordedLayers<'_> {
    fn next(&mut self) -> anyhow::Result<Option<Seen>> {
        let mut all: Option<Seen> = None;
        for layer in &mut self.layers {
            let Some(seen) = layer.next()? else {
                return Ok(None);
            };
            match &mut all {
                Some(all) => {
                    all.disks.extend(seen.disks);
                    all.volumes.extend(seen.volumes);
                    all.calls.extend(seen.calls);
                    all.kernels.extend(seen.kernels);
                    all.unplaced = all.unplaced.or(seen.unplaced);
                    all.stacked.extend(seen.stacked);
                }
                None => all = Some(seen),
            }
        }
        if let Some(all) = &mut all {
            all.lost = self.lost(&all.span);
        }
        Ok(all)
    }
}

impl Recorded {
    /// The I/Os of the period on each of these layers.
    pub fn on_each(&self, layers: &[Layer]) -> Result<Vec<Recorded>, ParseError> {
        let mut parts: Vec<Recorded> = Vec::new();
        for layer in layers {
            let part = self.on(*layer)?;
            if parts.iter().all(|known| known.layer() != part.layer()) {
                parts.push(part);
            }
        }
        Ok(parts)
    }
}
