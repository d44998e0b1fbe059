//! The I/Os in flight that began before the recorder's watch.
//!
//! The recorder marks their number when it seals a file. Their number only falls, so those of a mark were in
//! flight since the session began.

use dashpot_recording::{Event, Mark};

use super::period::Recorded;
use super::spans::Period;
use crate::earlier::Earlier;

impl Recorded {
    /// The earlier I/Os of a device that were in flight at the end of a period: those that the next mark counts
    /// or, at the end of a session, the last one. Also returns the last moment of the period at which they were seen
    /// in flight. Recordings of older versions have no such marks.
    pub(super) fn earlier(&self, device: &str, period: Period) -> Option<(Earlier, u64)> {
        let last_ns = period.to_ns.saturating_sub(1);
        // The recorder looks for the I/Os in flight a moment after its mark for the end.
        let mut begun = self.sessions.iter().rev();
        let session = begun.find(|one| one.from_ns <= last_ns && period.from_ns < one.to_ns)?;
        let layer = self.layer().word();
        let mut own = self.marks.iter().filter(|mark| {
            let is_own = mark.event == Event::Earlier && mark.device.as_deref() == Some(device);
            is_own && session.has(mark.at_ns) && age_of(mark, layer).is_some()
        });
        let mut later = own.clone().filter(|mark| mark.at_ns >= last_ns);
        let mark = later.next().or_else(|| own.next_back())?;
        let since_ns = mark.at_ns.saturating_sub(age_of(mark, layer)?);
        let earlier = Earlier {
            device: device.into(),
            number: mark.n.map(i64::unsigned_abs),
            since_ns,
        };
        Some((earlier, period.to_ns.min(session.to_ns)))
    }
}

/// The age of a mark's I/Os, if they are of a device of this layer.
fn age_of(mark: &Mark, layer: &str) -> Option<u64> {
    let (own, age_ns) = mark.text.as_deref()?.split_once(": ")?;
    (own == layer).then(|| age_ns.parse().ok())?
}
