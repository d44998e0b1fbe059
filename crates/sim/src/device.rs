//! A model of how long a disk takes for an I/O. An I/O passes the bus, waits for a lane, and is served in it.
//!
//! I/Os pass the bus in the order in which they are issued. Because the bus comes first, they also book their
//! lanes in this order. So the model knows the end of an I/O as soon as the I/O is issued, and needs only one
//! event for it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use dashpot_engine::inject::Service;
use dashpot_engine::{Duration, Instant, Op, Random};

use crate::pipe::Pipe;
use crate::scenario::DiskModel;

/// A disk at work.
#[derive(Debug)]
pub(crate) struct Device {
    bus: Option<Pipe>,
    /// The time at which each lane is free; `None` if there is always a free lane.
    lanes: Option<BinaryHeap<Reverse<Instant>>>,
    service: Option<Service>,
    rate: Option<u64>,
    flush: Option<Service>,
    random: Random,
    /// How many I/Os are in progress.
    pub(crate) active: u32,
}

impl Device {
    pub(crate) fn new(model: &DiskModel, seed: u64) -> Device {
        let free = |lanes: u32| (0..lanes.max(1)).map(|_| Reverse(Instant::ZERO)).collect();
        Device {
            bus: model.bandwidth.map(Pipe::new),
            lanes: model.lanes.map(free),
            service: model.service.clone(),
            rate: model.rate,
            flush: model.flush.clone(),
            random: Random::new(seed),
            active: 0,
        }
    }

    /// Takes an I/O. Returns when the I/O will be done.
    pub(crate) fn start(&mut self, now: Instant, op: Op, length: u32) -> Instant {
        self.active += 1;
        if op == Op::Flush {
            return now + sample(self.flush.as_ref(), &mut self.random);
        }
        let bytes = if matches!(op, Op::Read | Op::Write) {
            length
        } else {
            0
        };
        let passed = self.bus.as_mut().map_or(now, |bus| bus.pass(now, bytes));
        let service = sample(self.service.as_ref(), &mut self.random) + self.transfer(bytes);
        let Some(lanes) = &mut self.lanes else {
            return passed + service;
        };
        let Some(mut soonest) = lanes.peek_mut() else {
            return passed + service;
        };
        let done = soonest.0.max(passed) + service;
        *soonest = Reverse(done);
        done
    }

    fn transfer(&self, bytes: u32) -> Duration {
        let nanos = |rate: u64| u64::from(bytes) * 1_000_000_000 / rate.max(1);
        Duration::from_nanos(self.rate.map_or(0, nanos))
    }
}

fn sample(service: Option<&Service>, random: &mut Random) -> Duration {
    service.map_or(Duration::ZERO, |service| service.sample(random))
}

#[cfg(test)]
mod tests {
    use super::Device;
    use crate::scenario::DiskModel;
    use dashpot_engine::inject::Service;
    use dashpot_engine::{Duration, Instant, Op};

    fn ends(model: &DiskModel, ops: &[(u64, Op, u32)]) -> Vec<u64> {
        let mut device = Device::new(model, 1);
        let end = |(at, op, length): &(u64, Op, u32)| {
            let end = device.start(Instant::from_nanos(*at), *op, *length);
            end.as_nanos()
        };
        ops.iter().map(end).collect()
    }

    #[test]
    fn lanes_serve_the_first_that_came() {
        let model = DiskModel {
            lanes: Some(2),
            service: Some(Service::Constant(Duration::from_nanos(10))),
            ..DiskModel::default()
        };
        let ops = [0, 0, 0, 3, 50].map(|at| (at, Op::Read, 512));
        assert_eq!(ends(&model, &ops), [10, 10, 20, 20, 60]);
    }

    #[test]
    fn size_counts_on_the_bus_and_in_the_lane() {
        let model = DiskModel {
            bandwidth: Some(1_000_000_000),
            service: Some(Service::Constant(Duration::from_nanos(100))),
            rate: Some(500_000_000),
            ..DiskModel::default()
        };
        let ops = [
            (0, Op::Write, 10),
            (0, Op::Write, 10),
            (0, Op::Zero, 10),
            (0, Op::Flush, 0),
        ];
        assert_eq!(ends(&model, &ops), [130, 140, 120, 0]);
    }
}
