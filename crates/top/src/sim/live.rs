//! The thread that simulates a lab at the pace of the clock. The thread sleeps until the next frame
//! is due or a request comes. Then the simulation catches up.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant as WallClock};

use dashpot_engine::Duration as VirtualTime;
use dashpot_observe::Intervals;
use dashpot_rules::{Speed, short_time};
use dashpot_sim::Violation;
use tokio::sync::mpsc::UnboundedSender;

use super::Sim;
use super::pace::Pace;
use crate::ask::{Ask, News};
use crate::frame::Frame;

/// A simulation, and the channel to the screen.
pub(crate) struct Live {
    sim: Sim,
    pace: Pace,
    speed: Speed,
    interval: Duration,
    /// The intervals, on the wall clock.
    intervals: Intervals,
    begun: WallClock,
    /// How far the simulation fell behind, if it could not keep up in the last interval.
    behind: Option<Behind>,
    /// How much the simulation advances between two readings of the clock.
    piece: VirtualTime,
    /// Whether the screen has received the last frame of the simulation.
    has_ended: bool,
    asked: Receiver<Ask>,
    news: UnboundedSender<News>,
}

impl Live {
    /// Prepares the thread. The pace and the first interval begin now.
    pub(crate) fn new(
        sim: Sim,
        speed: Speed,
        interval: Duration,
        asked: Receiver<Ask>,
        news: UnboundedSender<News>,
    ) -> Live {
        let begun = WallClock::now();
        Live {
            pace: Pace::new(begun, sim.now(), speed),
            sim,
            speed,
            interval,
            intervals: Intervals::new(0, interval.as_nanos() as u64, None),
            begun,
            behind: None,
            piece: PIECE_FIRST,
            has_ended: false,
            asked,
            news,
        }
    }

    /// Runs until the screen is gone. After the end of the simulation, the thread only answers
    /// requests.
    pub(crate) fn run(mut self) {
        if let Err(violation) = self.simulate() {
            self.tell(News::Down(format!("the simulation has failed {violation}")));
        }
    }

    fn simulate(&mut self) -> Result<(), Violation> {
        while !self.news.is_closed() {
            match self.wait() {
                Ok(Ask::Every(interval)) => {
                    self.interval = interval;
                    self.intervals.every(interval.as_nanos() as u64);
                }
                Ok(ask) => self.carry_out(ask)?,
                Err(RecvTimeoutError::Timeout) => self.frame()?,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
        Ok(())
    }

    /// Waits for a request, or until the next frame. Also wakes at the simulation's end.
    fn wait(&self) -> Result<Ask, RecvTimeoutError> {
        if self.has_ended {
            let asked = self.asked.recv();
            return asked.map_err(|_| RecvTimeoutError::Disconnected);
        }
        let due_ns = self.intervals.due_ns().unwrap_or(u64::MAX);
        let due = self.begun + Duration::from_nanos(due_ns);
        let until = due.min(self.pace.reaches(self.sim.ends()));
        let left = until.saturating_duration_since(WallClock::now());
        self.asked.recv_timeout(left)
    }

    /// Sends a frame. The interval ends when the simulation begins to catch up with the clock. If it has not
    /// caught up by the end of the next interval, the next frame follows at once.
    fn frame(&mut self) -> Result<(), Violation> {
        let now_ns = self.begun.elapsed().as_nanos() as u64;
        let missed = self.intervals.end(now_ns).map_or(0, |span| span.missed);
        self.catch_up()?;
        let mut frame = self.sim.frame();
        self.has_ended = self.sim.is_over();
        if !self.has_ended {
            let asked = self.speed.simulated(self.interval);
            frame.check_length(Duration::from_nanos(asked.as_nanos()), missed);
        }
        self.tell_look(frame);
        Ok(())
    }

    fn tell_look(&self, mut frame: Frame) {
        frame.notes.extend(self.behind.as_ref().map(Behind::note));
        self.tell(News::Frame(Box::new(frame)));
    }

    fn carry_out(&mut self, ask: Ask) -> Result<(), Violation> {
        self.catch_up()?;
        let answer = self.sim.carry_out(&ask)?;
        self.tell(News::Answer(ask, answer));
        self.tell_look(self.sim.glance());
        Ok(())
    }

    /// Simulates up to the present in pieces, so that the thread stops soon after the screen is gone. If
    /// catching up takes longer than an interval, the simulation gives up the virtual time that is still
    /// missing.
    fn catch_up(&mut self) -> Result<(), Violation> {
        let (began, from) = (WallClock::now(), self.sim.now());
        let target = self.pace.at(began).min(self.sim.ends());
        self.behind = None;
        while self.sim.now() < target && !self.news.is_closed() {
            let piece_began = WallClock::now();
            self.sim.go_to((self.sim.now() + self.piece).min(target))?;
            self.piece = next_piece(self.piece, piece_began.elapsed(), self.interval);
            if began.elapsed() >= self.interval && self.sim.now() < target {
                self.behind = Some(Behind {
                    simulated: self.sim.now().since(from),
                    due: target.since(from),
                });
                self.pace = self.pace.again(began, self.sim.now());
                break;
            }
        }
        Ok(())
    }

    /// Sends news. If the screen is gone, the thread notices before its next frame.
    fn tell(&self, news: News) {
        let _ = self.news.send(news);
    }
}

/// The virtual time that a simulation went through in an interval, and the virtual time that was due.
struct Behind {
    simulated: VirtualTime,
    due: VirtualTime,
}

impl Behind {
    fn note(&self) -> String {
        format!(
            "it falls behind: this machine simulated {} of the {} that were due",
            short_time(self.simulated.as_nanos()),
            short_time(self.due.as_nanos())
        )
    }
}

/// How much to simulate before the next reading of the clock. The work that a piece takes is not known in
/// advance, so the size of a piece depends on how long the last piece took.
fn next_piece(last: VirtualTime, took: Duration, interval: Duration) -> VirtualTime {
    let is_long = took > interval / PIECES;
    let nanos = if is_long {
        last.as_nanos() / 4
    } else {
        last.as_nanos().saturating_mul(2)
    };
    VirtualTime::from_nanos(nanos.clamp(1, PIECE_MOST.as_nanos()))
}

/// Pieces get shorter until an interval has at least this many.
const PIECES: u32 = 64;
const PIECE_FIRST: VirtualTime = VirtualTime::from_nanos(100_000);
const PIECE_MOST: VirtualTime = VirtualTime::from_nanos(1_000_000_000_000);

#[cfg(test)]
mod tests {
    use super::{Behind, Duration, PIECE_FIRST, PIECE_MOST, VirtualTime, next_piece};

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn pieces_take_a_small_share_of_an_interval_whatever_happens_in_them() {
        // The test assumes a machine that simulates `speed` virtual nanoseconds in a nanosecond.
        for speed in [0.001, 1.0, 1_000.0, 1e9] {
            let took =
                |piece: VirtualTime| Duration::from_nanos((piece.as_nanos() as f64 / speed) as u64);
            let mut piece = PIECE_FIRST;
            let mut longest = Duration::ZERO;
            for _ in 0..1_000 {
                longest = longest.max(took(piece));
                piece = next_piece(piece, took(piece), SECOND);
            }
            assert!(longest < SECOND / 8, "{speed}: {longest:?}");
            let is_useful = took(piece) > SECOND / 2_000 || piece == PIECE_MOST;
            assert!(is_useful, "{speed}: {piece}");
        }
    }

    #[test]
    fn what_was_not_simulated_is_said() {
        let behind = Behind {
            simulated: VirtualTime::from_nanos(310_123_456_789),
            due: VirtualTime::from_nanos(1_000_000_000_000),
        };
        let said = "it falls behind: this machine simulated 310s of the 1000s that were due";
        assert_eq!(behind.note(), said);
    }
}
