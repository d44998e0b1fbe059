//! Several layers of a recording at once.

use dashpot_observe::{Layer, Seen};
use dashpot_rules::ParseError;

use super::period::Recorded;
use crate::sources::source::Source;

/// Layers of one recording, with the same intervals.
pub(super) struct RecordedLayers<'a>(Vec<Box<dyn Source + 'a>>);

impl<'a> RecordedLayers<'a> {
    pub(super) fn of(layers: impl Iterator<Item = Box<dyn Source + 'a>>) -> RecordedLayers<'a> {
        RecordedLayers(layers.collect())
    }
}

impl Source for RecordedLayers<'_> {
    fn next(&mut self) -> anyhow::Result<Option<Seen>> {
        let mut all: Option<Seen> = None;
        for layer in &mut self.0 {
            let Some(seen) = layer.next()? else {
                return Ok(None);
            };
            match &mut all {
                // Take the losses only once, because they are the losses of the whole recording.
                Some(all) => {
                    all.disks.extend(seen.disks);
                    all.volumes.extend(seen.volumes);
                    all.calls.extend(seen.calls);
                }
                None => all = Some(seen),
            }
        }
        Ok(all)
    }
}

impl Recorded {
    /// The I/Os of the period on each of these layers.
    pub(crate) fn on_each(&self, layers: &[Layer]) -> Result<Vec<Recorded>, ParseError> {
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
