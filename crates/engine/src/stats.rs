//! The counters of the data path, and the views from which reports are made.

use alloc::boxed::Box;

use crate::client::ClientId;
use crate::depths::DepthTimes;
use crate::histogram::Histogram;
use crate::holds::Holds;
use crate::inject::id::{GroupId, RuleId};
use crate::inject::spec::RuleSpec;
use crate::time::{Duration, Instant};
use crate::zio::{CallNumber, Op, ZioId};

/// The latency that a histogram counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatencyKind {
    /// From the arrival of a zio's header until the transport accepted the reply.
    Total,
    /// From the issue of a zio until its reply was offered to the transport: the store's work, the wait for a
    /// lane, the hold, and dashpot's own lateness. Reports show this latency unless they say otherwise.
    Disk,
    /// For a zio that a rule held, from its target until its reply was offered to the transport.
    Lateness,
}

/// Counters and histograms of one operation on one disk or volume.
#[derive(Clone, Debug, Default)]
pub struct OpStats {
    /// The number of zios that were replied to, including failed ones.
    pub completed: u64,
    /// The number of completed zios that failed.
    pub failed: u64,
    /// The total size in bytes of the completed zios that did not fail.
    pub bytes: u64,
    latencies: [Option<Box<Histogram>>; 3],
    /// The latencies of zios whose total and disk latencies are equal, which is usual. The latency of such a
    /// zio is recorded only here, not in the histograms of these two latencies.
    alike: Option<Box<Histogram>>,
}

impl OpStats {
    /// The histogram of one kind of latency, or `None` if no latency has been recorded yet.
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

/// Records a latency, in a histogram that is allocated when it is first needed.
fn record(histogram: &mut Option<Box<Histogram>>, latency: Duration) {
    histogram.get_or_insert_default().record(latency.as_nanos());
}

/// The counters of a disk since it was made.
#[derive(Clone, Debug, Default)]
pub struct DiskStats {
    ops: [OpStats; Op::ALL.len()],
    /// The number of zios whose connection was gone before their reply had left. No histogram counts these
    /// zios.
    pub aborted: u64,
    /// How long, in total, the completed zios had waited for the disk to resume.
    pub suspended: Duration,
    /// For how long each number of zios was in flight. The [summary](DepthTimes::summary) of these times says
    /// how long the disk was busy, and gives the integral of the number of zios over time.
    pub depths: DepthTimes,
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

/// The counters of a rule since it was armed.
#[derive(Clone, Debug, Default)]
pub struct RuleStats {
    /// Zios that matched the rule's operations, range and client while the rule was active.
    pub matched: u64,
    /// The matched zios that the rule took, which means that it gave them a lane or an error (zinject:
    /// INJECT).
    pub chosen: u64,
    /// Zios to which the rule added a hold.
    pub held: u64,
    /// Zios for which the store finished after the target, so that nothing was added (zinject: a
    /// miss).
    pub overrun: u64,
    /// Zios to which the rule gave an error.
    pub failed: u64,
    /// Zios whose data the rule damaged.
    pub damaged: u64,
    /// Zios that the rule was to damage, and that had nothing to damage, or that the driver could not damage.
    pub spared: u64,
    /// Held zios that were late by more than 1 ms, or by more than 5 % of the delay.
    pub late: u64,
    /// Matching zios that the rule skipped because of its probability.
    pub not_drawn: u64,
    /// Matching zios that the rule skipped because its count (`--skip`, `--every`, `--first`) did not
    /// select them.
    pub not_counted: u64,
    /// Matching zios that got another rule's lane or target instead of this rule's.
    pub beaten: u64,
    /// The rule that was chosen instead for the last of these zios.
    pub beaten_by: Option<RuleId>,
    /// Zios that the rule would have matched if another rule's error or hang had not decided them first. They
    /// do not count as `matched`.
    pub preempted: u64,
    /// The rule whose error or hang decided the last of these zios.
    pub preempted_by: Option<RuleId>,
    /// Zios that the rule decided, but whose connection was gone before they ended.
    pub aborted: u64,
    /// The requested and the achieved service times of held zios, and their lateness.
    pub holds: Holds,
}

impl RuleStats {
    /// Counts a hold that had the service time `service` and ended late by `late`. `stopped` says whether a
    /// stop by the host explains the lateness.
    pub(crate) fn count_hold(&mut self, service: Duration, late: Duration, stopped: bool) {
        let tolerance = LATE.as_nanos().min(service.as_nanos() / LATE_SHARE);
        self.late += u64::from(late.as_nanos() > tolerance);
        self.holds.record(service, late);
        if stopped {
            self.holds.record_stopped(late);
        }
    }

    /// Counts a zio that another rule decides.
    pub(crate) fn count_beaten(&mut self, winner: Option<RuleId>) {
        self.beaten += 1;
        self.beaten_by = winner;
    }

    /// Adds the counters for zios that were checked against the rule later. The function names all fields, so
    /// that none is forgotten.
    fn merge(&mut self, later: &RuleStats) {
        let RuleStats {
            matched,
            chosen,
            held,
            overrun,
            failed,
            damaged,
            spared,
            late,
            not_drawn,
            not_counted,
            beaten,
            beaten_by,
            preempted,
            preempted_by,
            aborted,
            holds,
        } = later;
        self.matched += matched;
        self.chosen += chosen;
        self.held += held;
        self.overrun += overrun;
        self.failed += failed;
        self.damaged += damaged;
        self.spared += spared;
        self.late += late;
        self.not_drawn += not_drawn;
        self.not_counted += not_counted;
        self.beaten += beaten;
        self.beaten_by = beaten_by.or(self.beaten_by);
        self.preempted += preempted;
        self.preempted_by = preempted_by.or(self.preempted_by);
        self.aborted += aborted;
        self.holds.merge(holds);
    }

    /// The number of zios that the rule has decided and that have ended. Zios that the rule holds now are not
    /// counted, and spared ones neither.
    pub fn ended(&self) -> u64 {
        self.held + self.overrun + self.failed + self.damaged + self.aborted
    }
}

/// A held zio counts as late if its lateness exceeds this time.
const LATE: Duration = Duration::from_millis(1);
/// A held zio also counts as late if its lateness exceeds the delay divided by this number.
const LATE_SHARE: u64 = 20;

/// The counters of a rule for some of the zios that were checked against it.
#[derive(Clone, Debug, Default)]
pub struct RuleCounts {
    /// How many of these zios matched, were held, failed, and so on.
    pub stats: RuleStats,
    /// How many of these zios are in flight now, and have a target or error that this rule decides.
    pub now: u64,
}

impl RuleCounts {
    /// Adds the counters for zios that were checked against the rule later.
    pub(crate) fn merge(&mut self, later: &RuleCounts) {
        self.stats.merge(&later.stats);
        self.now += later.now;
    }
}

#[derive(Clone, Debug)]
pub struct RuleView<'a> {
    pub id: RuleId,
    pub group: GroupId,
    /// The rule's specification.
    pub spec: &'a RuleSpec,
    /// When the rule was armed or last updated.
    pub armed: Instant,
    /// How many zios have matched since `counted_from`, for [`Count`](crate::inject::Count).
    pub counted: u64,
    /// When the count began: when the rule was armed, or when an update last changed the count.
    pub counted_from: Instant,
    /// Whether the rule rests now, because of its cycle.
    pub rests: bool,
    /// The counters for the zios that were checked against the rule since it was armed or last updated.
    pub present: &'a RuleCounts,
    /// The counters for the zios that were checked against the rule before its last update. A former version
    /// of the rule may still hold some of these zios. `None` if the rule was never updated.
    pub past: Option<&'a RuleCounts>,
    /// How long until a lane of the rule is free. If the rule limits the bandwidth and the booked transfers
    /// end later than that, how long until all these transfers are done.
    pub backlog: Duration,
}

impl RuleView<'_> {
    /// The rule's counters for all zios that were checked against it.
    pub fn all(&self) -> RuleCounts {
        let Some(past) = self.past else {
            return self.present.clone();
        };
        let mut all = past.clone();
        all.merge(self.present);
        all
    }

    /// The rule's counters for the zios that were checked against it since its last update. `None` if the
    /// rule was never updated.
    pub fn since_update(&self) -> Option<&RuleCounts> {
        self.past.map(|_| self.present)
    }
}

/// The reason that a zio waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Another zio has the lock of a block that this zio needs.
    Lock,
    /// The disks of the pool read the bytes that the zio asked for, or those bytes of a block that the zio
    /// does not replace.
    Read,
    /// The zio's pool admits no writes until a disk works again.
    Stalled,
    /// The throttle of the pool has not admitted the zio.
    Throttle,
    /// The power of the zio's pool was cut, and the pool has not finished the work of the cut.
    PowerCut,
    /// The disks of the pool write the zio's blocks.
    Write,
    /// The disks of the pool make the zio durable.
    Sync,
    /// The zio's disk is suspended.
    Suspended,
    /// A rule holds the zio before the driver asks the store (`add`).
    HeldBefore,
    /// The store is at work.
    Store,
    /// A rule holds the zio after the store has worked (`floor`).
    Held,
    /// A rule holds the zio for ever (`--hang`).
    Hung,
    /// The transport sends the zio's reply to the client.
    Reply,
}

/// A zio that has not been replied to.
#[derive(Clone, Copy, Debug)]
pub struct InFlight {
    /// The caller's id of the zio.
    pub zio: ZioId,
    /// The zio's operation.
    pub op: Op,
    /// The system call that the zio is, if a program made it.
    pub call: Option<CallNumber>,
    /// The client that sent the zio.
    pub client: ClientId,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: u32,
    /// When the zio arrived.
    pub arrived: Instant,
    /// The reason that the zio waits now.
    pub wait: Wait,
    /// When this wait began.
    pub since: Instant,
    /// The rule that holds the zio.
    pub rule: Option<RuleId>,
    /// The earliest moment at which the zio may complete.
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
