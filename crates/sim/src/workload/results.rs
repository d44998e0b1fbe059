//! The results of a workload: latencies at the client and at the lab, and the slowest calls.

use dashpot_engine::histogram::Histogram;
use dashpot_engine::{Duration, Instant, Op};

use crate::calls::Call;
use crate::scenario::Target;

/// The results of the calls that began after the warm-up.
#[derive(Clone, Debug, Default)]
pub struct WorkloadResults {
    ops: [OpResults; Op::ALL.len()],
    /// The workload's slowest calls, the slowest first.
    pub slowest: Vec<SlowCall>,
    /// How many calls were lost with their connection, including those that began in the warm-up.
    pub aborted: u64,
    keep_slowest: usize,
}

/// The results of one operation.
#[derive(Clone, Debug, Default)]
pub struct OpResults {
    /// How many calls have ended, including failed calls.
    pub calls: u64,
    /// How many of the ended calls failed.
    pub failed: u64,
    /// The total size of the calls that did not fail, in bytes.
    pub bytes: u64,
    /// The latencies of calls that did not fail, from the beginning of a call to its end, in nanoseconds.
    pub at_client: Option<Box<Histogram>>,
    /// The latencies of calls that failed, from the beginning of a call to its end, in nanoseconds.
    pub failed_at_client: Option<Box<Histogram>>,
    /// The latencies of calls that did not fail, from the moment at which a call reached the disk or volume
    /// until the reply, in nanoseconds.
    pub at_lab: Option<Box<Histogram>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowCall {
    /// The time from the beginning of the call to its end.
    pub latency: Duration,
    /// When the call began.
    pub began: Instant,
    /// The operation of the call.
    pub op: Op,
    pub target: Target,
    /// The first byte.
    pub offset: u64,
    /// The number of bytes.
    pub length: u32,
}

impl WorkloadResults {
    pub(crate) fn new(keep_slowest: usize) -> WorkloadResults {
        WorkloadResults {
            keep_slowest,
            ..WorkloadResults::default()
        }
    }

    /// The results of one operation.
    pub fn op(&self, op: Op) -> &OpResults {
        &self.ops[op as usize]
    }

    /// Notes that the lab has replied to a call.
    pub(crate) fn replied(&mut self, call: &Call, now: Instant) {
        if call.failed {
            return;
        }
        let at_lab = now.since(call.submitted.unwrap_or(call.began));
        let op = &mut self.ops[call.request.op as usize];
        op.at_lab.get_or_insert_default().record(at_lab.as_nanos());
    }

    /// Notes that the client has its reply.
    pub(crate) fn ended(&mut self, call: &Call, now: Instant) {
        let latency = now.since(call.began);
        let op = &mut self.ops[call.request.op as usize];
        op.calls += 1;
        let latencies = if call.failed {
            op.failed += 1;
            &mut op.failed_at_client
        } else {
            op.bytes += u64::from(call.request.length);
            &mut op.at_client
        };
        latencies.get_or_insert_default().record(latency.as_nanos());
        let slow_enough = |slowest: &SlowCall| latency > slowest.latency;
        if self.slowest.len() < self.keep_slowest || self.slowest.last().is_some_and(slow_enough) {
            self.keep(call, latency);
        }
    }

    fn keep(&mut self, call: &Call, latency: Duration) {
        let at = self.slowest.partition_point(|slow| slow.latency >= latency);
        let slow = SlowCall {
            latency,
            began: call.began,
            op: call.request.op,
            target: call.request.target,
            offset: call.request.offset,
            length: call.request.length,
        };
        self.slowest.insert(at, slow);
        self.slowest.truncate(self.keep_slowest);
    }
}
