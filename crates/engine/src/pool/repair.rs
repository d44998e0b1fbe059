//! The repair of mirrors: after a power cut, or after a write that failed, the pool makes the sides hold the
//! same bytes again.
//!
//! Modelled on Linux's dm-raid1. Until a region is in sync, its reads go to the first side that can be
//! read, so that no client sees a block change although no client has written it. The repair copies from the
//! first readable side to the other sides, one piece at a time. A piece waits until no write to its region is
//! in flight, and writes to the region wait until the piece is copied. Unlike in dm-raid1, writes go to all
//! sides of a region that is out of sync, and such a write waits for a piece, not for a region.

use super::jobs::Job;
use super::mirrors::{Phase, Recovery};
use super::pool::Pool;
use super::queue::Queued;
use super::stats::Class;
use super::step::{Step, SyncFor};
use super::tag::Tag;
use crate::bytes::Buf;
use crate::zio::{Errno, Op, Outcome};

/// Lets writes go on that have waited for the repair.
impl Pool {
    /// Queues the writes that have waited for a piece or for the record of their regions.
    pub(super) fn release_held(&mut self, step: &mut Step<'_>) {
        let Some(mirrors) = &mut self.mirrors else {
            return;
        };
        let is_new = mirrors.released.is_empty() && !mirrors.held.is_empty();
        mirrors.released.extend(mirrors.held.drain(..));
        if is_new {
            self.begin_job(Job::Released, step);
        }
    }
}

/// Copies regions piece by piece.
impl Pool {
    /// Starts the repair, when the daemon starts or the power is on again. All dirty regions then count as
    /// out of sync, because the disks may have lost their caches even if the pool kept its memory.
    pub(crate) fn repair(&mut self) {
        let ends = self.closing.is_some() || self.drains;
        if let Some(mirrors) = &mut self.mirrors {
            mirrors.stopped = ends;
            mirrors.lose_caches();
            mirrors.open();
        }
    }

    /// Ends the repair, because the pool ends.
    pub(super) fn stop_repairing(&mut self, step: &mut Step<'_>) {
        if let Some(mirrors) = &mut self.mirrors {
            mirrors.stop();
            self.release_held(step);
        }
    }

    /// Cleans some regions, and begins the next piece if it is due.
    #[inline(never)]
    pub(super) fn go_on_repairing(&mut self, step: &mut Step<'_>) {
        let Some(mirrors) = &mut self.mirrors else {
            return;
        };
        if mirrors.cleans {
            mirrors.clean();
        }
        if let Some(recovery) = mirrors.next_piece(step.now) {
            let length = mirrors.piece_length(&recovery);
            let buf = step.buffers.allocate(length);
            let stale = mirrors.stale(recovery.member);
            self.read_piece(recovery, (buf, length), stale, step);
        }
    }

    /// Reads a piece from the first side that was not yet tried.
    fn read_piece(
        &mut self,
        recovery: Recovery,
        (buf, length): (Buf, u32),
        tried: u64,
        step: &mut Step<'_>,
    ) {
        let sides = self.map.sides(recovery.member);
        let Some(side) = (0..sides.len()).find(|side| tried >> side & 1 == 0) else {
            step.free(buf);
            self.end_piece(recovery, Err(Errno::Io), length, step);
            return;
        };
        let disk = sides[side];
        let tried = tried | 1 << side;
        self.enter(recovery, Phase::Reads { buf, length, tried });
        self.queue_piece(disk, Op::Read, recovery.at, length, step);
    }

    fn enter(&mut self, recovery: Recovery, phase: Phase) {
        if let Some(mirrors) = &mut self.mirrors {
            mirrors.recovery = Some(Recovery { phase, ..recovery });
        }
    }

    fn queue_piece(&mut self, disk: usize, op: Op, offset: u64, length: u32, step: &mut Step<'_>) {
        let class = match op {
            Op::Read => Class::AsyncRead,
            _ => Class::AsyncWrite,
        };
        let queued = Queued {
            class,
            op,
            offset,
            length,
            tag: Tag::Repair.pack(),
            alone: true,
            beside: false,
        };
        self.disks[disk].queue.push(step.now, queued);
        self.pump(disk, step);
    }

    /// Notes that a disk has read or written a piece, or failed to.
    pub(super) fn piece_done(&mut self, disk: usize, outcome: Outcome, step: &mut Step<'_>) {
        let Some(recovery) = self.mirrors.as_ref().and_then(|mirrors| mirrors.recovery) else {
            return;
        };
        match recovery.phase {
            Phase::Waits => {}
            Phase::Reads { buf, length, tried } if outcome.is_err() => {
                self.read_piece(recovery, (buf, length), tried, step);
            }
            Phase::Reads { buf, length, .. } => {
                self.write_piece(recovery, (buf, length), disk, step);
            }
            Phase::Writes {
                buf,
                length,
                left,
                failed,
            } => {
                let (left, failed) = (left - 1, failed || outcome.is_err());
                if left == 0 {
                    step.free(buf);
                    let outcome = if failed { Err(Errno::Io) } else { Ok(()) };
                    self.end_piece(recovery, outcome, length, step);
                } else {
                    let phase = Phase::Writes {
                        buf,
                        length,
                        left,
                        failed,
                    };
                    self.enter(recovery, phase);
                }
            }
        }
    }

    /// Writes a piece to all sides except the one that has read it.
    fn write_piece(
        &mut self,
        recovery: Recovery,
        (buf, length): (Buf, u32),
        source: usize,
        step: &mut Step<'_>,
    ) {
        let sides = self.map.sides(recovery.member).len();
        let phase = Phase::Writes {
            buf,
            length,
            left: sides as u32 - 1,
            failed: false,
        };
        self.enter(recovery, phase);
        for side in 0..sides {
            let disk = self.map.sides(recovery.member)[side];
            if disk != source {
                self.queue_piece(disk, Op::Write, recovery.at, length, step);
            }
        }
    }

    fn end_piece(
        &mut self,
        recovery: Recovery,
        outcome: Outcome,
        length: u32,
        step: &mut Step<'_>,
    ) {
        let mut is_last = false;
        if let Some(mirrors) = &mut self.mirrors {
            match outcome {
                Ok(()) => mirrors.piece_copied(recovery, length, step.now),
                Err(_) => mirrors.piece_failed(recovery, step.now),
            }
            is_last = mirrors.recording.is_some() && !mirrors.differ();
        }
        if is_last {
            self.sync_mirrors(step);
        }
        self.release_held(step);
    }

    /// Makes the disks sync, so that the copies are durable and the record no longer needs their regions.
    fn sync_mirrors(&mut self, step: &mut Step<'_>) {
        for disk in 0..self.disks.len() {
            self.sync_disk(disk, SyncFor::Repair, step);
        }
    }
}
