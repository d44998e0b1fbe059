//! The thread that simulates a lab at the pace of the clock. It sleeps until the next look is due or
//! something is asked for, and only then lets the simulation catch up.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant as WallClock};

use dashpot_engine::Duration as VirtualTime;
use dashpot_observe::Intervals;
use dashpot_rules::Speed;
use dashpot_sim::Violation;
use tokio::sync::mpsc::UnboundedSender;

use super::Sim;
use super::pace::Pace;
use crate::commands::top::ask::{Ask, Told};
use crate::commands::top::look::Look;

/// A simulation, and who is told of it.
pub(in crate::commands::top) struct Live {
    sim: Sim,
    pace: Pace,
    speed: Speed,
    interval: Duration,
    /// On the wall's clock, from when it has begun.
    intervals: Intervals,
    begun: WallClock,
    /// Whether the last interval was too short for what is to be simulated in it.
    is_behind: bool,
    /// Whether the end has been told of.
    has_ended: bool,
    asked: Receiver<Ask>,
    told: UnboundedSender<Told>,
}

impl Live {
    /// Begins now.
    pub(in crate::commands::top) fn new(
        sim: Sim,
        speed: Speed,
        interval: Duration,
        asked: Receiver<Ask>,
        told: UnboundedSender<Told>,
    ) -> Live {
        let begun = WallClock::now();
        Live {
            pace: Pace::new(begun, sim.now(), speed),
            sim,
            speed,
            interval,
            intervals: Intervals::new(0, interval.as_nanos() as u64, None),
            begun,
            is_behind: false,
            has_ended: false,
            asked,
            told,
        }
    }

    /// Goes on until nobody asks any more. After the end of the simulation it only answers.
    pub(in crate::commands::top) fn run(mut self) {
        if let Err(violation) = self.simulate() {
            self.tell(Told::Down(format!("the simulation has failed {violation}")));
        }
    }

    fn simulate(&mut self) -> Result<(), Violation> {
        while !self.told.is_closed() {
            match self.wait() {
                Ok(Ask::Every(interval)) => {
                    self.interval = interval;
                    self.intervals.every(interval.as_nanos() as u64);
                }
                Ok(ask) => self.carry_out(ask)?,
                Err(RecvTimeoutError::Timeout) => self.look()?,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
        Ok(())
    }

    /// What is asked for, or nothing until the next look. The end is looked at when it comes.
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

    /// Tells of a look. The interval ends when it begins to catch up: if that takes up to the end of
    /// the next one, it goes on at once.
    fn look(&mut self) -> Result<(), Violation> {
        let now_ns = self.begun.elapsed().as_nanos() as u64;
        let missed = self.intervals.end(now_ns).map_or(0, |span| span.missed);
        self.catch_up()?;
        let mut look = self.sim.look();
        self.has_ended = self.sim.is_over();
        if !self.has_ended {
            let asked = self.speed.simulated(self.interval);
            look.check_length(Duration::from_nanos(asked.as_nanos()), missed);
        }
        self.tell_look(look);
        Ok(())
    }

    fn tell_look(&self, mut look: Look) {
        if self.is_behind {
            look.notes.push(BEHIND.to_owned());
        }
        self.tell(Told::Look(Box::new(look)));
    }

    fn carry_out(&mut self, ask: Ask) -> Result<(), Violation> {
        self.catch_up()?;
        let answer = self.sim.carry_out(&ask)?;
        self.tell(Told::Answer(ask, answer));
        self.tell_look(self.sim.glance());
        Ok(())
    }

    /// Simulates what is to have happened by now, piece by piece, so that it ends soon after nobody
    /// looks any more. What takes longer than the interval is not made up for.
    fn catch_up(&mut self) -> Result<(), Violation> {
        let began = WallClock::now();
        let target = self.pace.at(began).min(self.sim.ends());
        let piece = target.since(self.sim.now()).as_nanos() / PIECES;
        let piece = VirtualTime::from_nanos(piece.max(1));
        self.is_behind = false;
        while self.sim.now() < target && !self.told.is_closed() {
            self.sim.go_to((self.sim.now() + piece).min(target))?;
            if began.elapsed() >= self.interval {
                self.is_behind = true;
                self.pace = self.pace.again(began, self.sim.now());
                break;
            }
        }
        Ok(())
    }

    /// That nobody listens is seen before the next turn.
    fn tell(&self, news: Told) {
        let _ = self.told.send(news);
    }
}

/// In how many pieces an interval is simulated.
const PIECES: u64 = 128;

const BEHIND: &str = "this machine is too slow to simulate the lab at this pace: it falls behind";
