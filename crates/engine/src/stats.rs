//! What is always counted, on the data path, and the views that reports are made from.

use alloc::boxed::Box;

use crate::client::ClientId;
use crate::histogram::Histogram;
use crate::holds::Holds;
use crate::inject::spec::{GroupId, RuleId, RuleSpec};
use crate::time::{Duration, Instant};
use crate::zio::{Op, ZioId};

/// Which latency a histogram is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatencyKind {
    /// From the arrival of the request's header until the transport accepted the reply.
    Total,
    /// From issue until the transport was offered the reply: store, lane wait and hold, and
    /// dashpot's own lateness. Reports are of this one unless they say otherwise.
    Disk,
    /// From the target of an injected zio until the transport was offered its reply.
    Lateness,
}

/// Counters and histograms of one operation on one disk.
#[derive(Clone, Debug, Default)]
pub struct OpStats {
    /// Zios replied to, failed ones included.
    pub completed: u64,
    /// Of these, the ones that failed.
    pub failed: u64,
    /// Bytes of those that did not fail.
    pub bytes: u64,
    latencies: [Option<Box<Histogram>>; 3],
    /// Of zios whose total and disk latencies are equal, as most are: recorded here once, and in
    /// neither of the two.
    alike: Option<Box<Histogram>>,
}

impl OpStats {
    /// The histogram of one latency, or `None` if nothing was recorded yet.
    pub fn latency(&self, kind: LatencyKind) -> Option<Box<Histogram>> {
        let mut latency = self.latencies[kind as usize].clone();
        if kind != LatencyKind::Lateness
            && let Some(alike) = &self.alike
        {
            latency.get_or_insert_default().merge(alike);
        }
        latency
    }

    /// Records the latencies of a zio that was replied to.
    pub(crate) fn record_reply(&mut self, total: Duration, disk: Duration) {
        if total == disk {
            record(&mut self.alike, total);
        } else {
            self.record(LatencyKind::Total, total);
            self.record(LatencyKind::Disk, disk);
        }
    }

    pub(crate) fn record_lateness(&mut self, late: Duration) {
        self.record(LatencyKind::Lateness, late);
    }

    fn record(&mut self, kind: LatencyKind, latency: Duration) {
        record(&mut self.latencies[kind as usize], latency);
    }
}

/// Histograms are allocated when they are first needed.
fn record(histogram: &mut Option<Box<Histogram>>, latency: Duration) {
    histogram.get_or_insert_default().record(latency.as_nanos());
}

/// What a disk has counted since it was made.
#[derive(Clone, Debug, Default)]
pub struct DiskStats {
    ops: [OpStats; Op::ALL.len()],
    /// Zios whose connection was gone before their reply had left. They are in no histogram.
    pub aborted: u64,
    /// How long those that were replied to had waited for the disk to resume, added up.
    pub suspended: Duration,
    /// Nanoseconds during which at least one zio was in flight.
    pub busy: Duration,
    /// The integral of the number of zios in flight, in zio-nanoseconds.
    pub depth_time: u128,
}

impl DiskStats {
    /// The counters of one operation.
    pub fn op(&self, op: Op) -> &OpStats {
        &self.ops[op as usize]
    }

    pub(crate) fn op_mut(&mut self, op: Op) -> &mut OpStats {
        &mut self.ops[op as usize]
    }
}

/// What a rule has counted since it was armed.
#[derive(Clone, Debug, Default)]
pub struct RuleStats {
    /// Zios that met the rule's operations, range and client while it was active.
    pub matched: u64,
    /// Of these, zios that it took: a lane was given or an error decided (zinject: INJECT).
    pub chosen: u64,
    /// A hold was added.
    pub held: u64,
    /// The store finished after the target, and nothing was added (zinject: a miss).
    pub overrun: u64,
    /// An error was given.
    pub failed: u64,
    /// Held, and more than 1 ms or 5 % of the delay late.
    pub late: u64,
    /// Not drawn by the rule's probability.
    pub not_drawn: u64,
    /// Outside of first-N or every-N.
    pub not_counted: u64,
    /// Another rule's lane or target was chosen.
    pub beaten: u64,
    /// The rule that beat it last.
    pub beaten_by: Option<RuleId>,
    /// Zios that the rule would have matched, had the error or hang of another rule not decided
    /// before it was asked. They are not in `matched`.
    pub preempted: u64,
    /// The rule that did so last.
    pub preempted_by: Option<RuleId>,
    /// Decided by the rule, but its connection was gone before it ended.
    pub aborted: u64,
    /// The service times of the held zios, requested and achieved, and their lateness.
    pub holds: Holds,
}

impl RuleStats {
    /// Counts the end of a hold of `service` that was `late` by so much, and whether the host's
    /// stopping explains that.
    pub(crate) fn count_hold(&mut self, service: Duration, late: Duration, stopped: bool) {
        let tolerance = LATE.as_nanos().min(service.as_nanos() / LATE_SHARE);
        self.late += u64::from(late.as_nanos() > tolerance);
        self.holds.record(service, late);
        if stopped {
            self.holds.record_stopped(late);
        }
    }

    /// Counts a zio about which another rule decides.
    pub(crate) fn count_beaten(&mut self, winner: Option<RuleId>) {
        self.beaten += 1;
        self.beaten_by = winner;
    }

    /// Zios that the rule has decided about and that have ended; those that it holds now come on
    /// top of that.
    pub fn ended(&self) -> u64 {
        self.held + self.overrun + self.failed + self.aborted
    }
}

/// Held zios are counted as late beyond this, or beyond one part in [`LATE_SHARE`] of the delay.
const LATE: Duration = Duration::from_millis(1);
const LATE_SHARE: u64 = 20;

/// What a rule has counted since its last update, of the zios that it met since. What it had taken
/// before is held as it said then, and is in [`RuleStats`] of the whole rule alone.
#[derive(Clone, Debug, Default)]
pub struct SinceUpdate {
    /// What it has counted.
    pub stats: RuleStats,
    /// Number of zios in flight whose latency or error it decides at present.
    pub now: u64,
}

/// A rule as it stands.
#[derive(Clone, Debug)]
pub struct RuleView<'a> {
    /// Its id.
    pub id: RuleId,
    /// Its group.
    pub group: GroupId,
    /// What it says.
    pub spec: &'a RuleSpec,
    /// When it was armed or last updated.
    pub armed: Instant,
    /// What it has counted.
    pub stats: &'a RuleStats,
    /// Number of zios in flight whose latency or error it decides at present.
    pub now: u64,
    /// What it has counted since its last update; `None` if it was never updated.
    pub since_update: Option<&'a SinceUpdate>,
    /// Time until its first lane is free, or until the disk's bandwidth is, if that is later.
    pub backlog: Duration,
}

/// Where a zio waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Its disk is suspended.
    Suspended,
    /// Held by a rule before the store is asked (`add`).
    HeldBefore,
    /// The store is at work.
    Store,
    /// Held by a rule after the store has worked (`floor`).
    Held,
    /// Held for ever by a rule (`--hang`).
    Hung,
    /// Its reply is on the way to the client.
    Reply,
}

/// A zio that has not been replied to.
#[derive(Clone, Copy, Debug)]
pub struct InFlight {
    /// The caller's name for it.
    pub zio: ZioId,
    /// What it does.
    pub op: Op,
    /// Who sent it.
    pub client: ClientId,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: u32,
    /// When it arrived.
    pub arrived: Instant,
    /// Where it waits.
    pub wait: Wait,
    /// Since when it waits there.
    pub since: Instant,
    /// The rule that holds it.
    pub rule: Option<RuleId>,
    /// The earliest moment at which it may complete.
    pub target: Option<Instant>,
}

#[cfg(test)]
mod tests {
    use super::{LatencyKind, OpStats};
    use crate::histogram::Histogram;
    use crate::time::Duration;

    #[test]
    fn equal_latencies_are_in_both_histograms() {
        let mut stats = OpStats::default();
        let (mut total, mut disk) = (Histogram::default(), Histogram::default());
        for n in 0..100 {
            let span = Duration::from_micros(n * n);
            let wait = Duration::from_micros(n % 3);
            stats.record_reply(span + wait, span);
            total.record((span + wait).as_nanos());
            disk.record(span.as_nanos());
        }
        assert_eq!(stats.latency(LatencyKind::Total).as_deref(), Some(&total));
        assert_eq!(stats.latency(LatencyKind::Disk).as_deref(), Some(&disk));
        assert_eq!(stats.latency(LatencyKind::Lateness), None);
    }
}
