//! Divides virtual time into pieces.

use std::time::{Duration, Instant as WallClock};

use dashpot_engine::Instant;

/// Chooses pieces of virtual time that take about as much real time as an eye needs to notice a change.
pub(super) struct Pieces {
    length: dashpot_engine::Duration,
    began: Option<WallClock>,
}

impl Default for Pieces {
    fn default() -> Self {
        Pieces {
            length: dashpot_engine::Duration::from_millis(1),
            began: None,
        }
    }
}

impl Pieces {
    /// The end of the next piece. The size of the next piece depends on how long the last piece took.
    pub(super) fn next(&mut self, now: Instant) -> Instant {
        let took = self.began.map(|began| began.elapsed());
        let nanos = self.length.as_nanos();
        let nanos = match took {
            Some(took) if took < SHORT => nanos.saturating_mul(2),
            Some(took) if took > LONG => (nanos / 2).max(1),
            _ => nanos,
        };
        self.length = dashpot_engine::Duration::from_nanos(nanos);
        self.began = Some(WallClock::now());
        now + self.length
    }
}

/// If a piece took less real time than this, the next piece is longer.
const SHORT: Duration = Duration::from_millis(20);
/// If a piece took more real time than this, the next piece is shorter.
const LONG: Duration = Duration::from_millis(100);
