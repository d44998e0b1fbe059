//! The expected effect of a rule. The engine runs a disk's recent I/Os again, on a virtual clock, with the
//! rule armed in addition to the rules that are armed already.
//!
//! Each I/O arrives at its original time, even if the rule delays the I/Os ahead of it. (A real client that
//! waits for replies would send fewer I/Os.) For each I/O, the store takes as long as it took before.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use dashpot_engine::histogram::Histogram;
use dashpot_engine::inject::{GroupId, RuleId, RuleSpec};
use dashpot_engine::{
    Action, ClientId, Command, CommandId, Device, DiskConfig, DiskId, Duration, Engine, Input,
    Instant, Op, Zio, ZioId,
};
use dashpot_observe::{FinishedIo, Kind};

/// The result of the engine's run.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    /// The latencies at the disk, as measured.
    pub(crate) measured: Histogram,
    /// The latencies at the disk with the rule.
    pub(crate) latencies: Histogram,
    /// How many I/Os would still wait when the last I/O arrives.
    pub(crate) waiting: u64,
    /// The time between the first and the last arrival, in whole seconds; at least one.
    pub(crate) seconds: u64,
}

/// Runs I/Os under groups of rules. `each` calls its function for each I/O, in order of arrival.
pub(crate) fn expect(
    each: impl FnOnce(&mut dyn FnMut(&FinishedIo)),
    groups: Vec<Vec<RuleSpec>>,
) -> Expected {
    // The rules are armed when the first I/O arrives, which matters for rules that last for a limited time.
    let (mut groups, mut begun, mut id) = (Some(groups), None, 0);
    each(&mut |io| {
        let at = Instant::from_nanos(io.begun_ns);
        let run = begun.get_or_insert_with(|| Run::new(at, groups.take().unwrap_or_default()));
        if let Kind::Op(op) = io.kind {
            run.advance(at);
            run.submit(ZioId(id), io, op);
        }
        id += 1;
    });
    let Some(mut run) = begun else {
        return Expected {
            seconds: 1,
            ..Expected::default()
        };
    };
    let begun_ns = run.begun.as_nanos();
    run.expected.waiting = run.waiting();
    let lasted_ns = run.now.as_nanos() - begun_ns;
    run.expected.seconds = lasted_ns.div_ceil(1_000_000_000).max(1);
    run.finish();
    run.expected
}

struct Run {
    engine: Engine,
    begun: Instant,
    now: Instant,
    actions: Vec<Action>,
    /// The I/Os that the store works on: when the store will finish each of them, and the I/O's id.
    works: BinaryHeap<Reverse<(Instant, u32)>>,
    stores: Vec<Duration>,
    clients: Vec<Arc<str>>,
    expected: Expected,
}

impl Run {
    fn new(now: Instant, groups: Vec<Vec<RuleSpec>>) -> Run {
        let mut run = Run {
            engine: Engine::new(),
            begun: now,
            now,
            actions: Vec::new(),
            works: BinaryHeap::new(),
            stores: Vec::new(),
            clients: Vec::new(),
            expected: Expected::default(),
        };
        run.engine.add_disk(DiskConfig { seed: 1 });
        run.engine.record_events(true);
        let mut ids = (1..).map(RuleId);
        for (group, specs) in (1..).map(GroupId).zip(groups) {
            let rules = ids.by_ref().zip(specs).collect();
            let inject = Command::Inject {
                disk: DISK,
                group,
                rules,
            };
            run.step(Input::Command(CommandId(0), inject));
        }
        run
    }

    /// Does everything that is due up to a moment.
    fn advance(&mut self, until: Instant) {
        while let Some(next) = self.next().filter(|next| *next <= until) {
            self.now = next.max(self.now);
            match self.works.peek() {
                Some(Reverse((at, _))) if *at <= self.now => self.finish_work(),
                _ => self.step(Input::Tick),
            }
        }
        self.now = until.max(self.now);
    }

    /// The next moment at which something is due.
    fn next(&self) -> Option<Instant> {
        let work = self.works.peek().map(|Reverse((at, _))| *at);
        work.into_iter().chain(self.engine.next_deadline()).min()
    }

    fn finish_work(&mut self) {
        if let Some(Reverse((_, id))) = self.works.pop() {
            self.step(Input::Done(ZioId(id), Ok(())));
        }
    }

    fn submit(&mut self, id: ZioId, io: &FinishedIo, op: Op) {
        let client = self.client(io);
        self.stores.resize(id.0 as usize, Duration::ZERO);
        self.stores
            .push(Duration::from_nanos(io.waits.in_store_ns().unwrap_or(0)));
        if let Some(waits) = io.waits.zio() {
            self.expected.measured.record(waits.disk().as_nanos());
        }
        self.step(Input::Submit(Zio {
            id,
            device: DISK,
            client,
            op,
            fua: io.fua,
            call: None,
            offset: io.offset_bytes,
            length: io.length_bytes as u32,
            arrived: self.now,
        }));
    }

    /// The id of a client. At most 64 clients are distinguished, as on a disk.
    fn client(&mut self, io: &FinishedIo) -> ClientId {
        let name = io
            .who
            .as_ref()
            .and_then(|who| who.client())
            .unwrap_or("other");
        if let Some(at) = self.clients.iter().position(|known| &**known == name) {
            return ClientId(at as u8);
        }
        if self.clients.len() >= usize::from(dashpot_engine::CLIENTS_TOLD_APART) {
            return ClientId(dashpot_engine::CLIENTS_TOLD_APART);
        }
        let client = ClientId(self.clients.len() as u8);
        self.clients.push(name.into());
        let device = Device::Disk(DISK);
        self.step(Input::Join {
            device,
            client,
            name,
        });
        client
    }

    /// Gives the engine an input, and carries out the starts and replies that follow. Records the latencies
    /// of the zios that have ended.
    fn step(&mut self, input: Input<'_>) {
        self.engine.step(self.now, input, &mut self.actions);
        while let Some(action) = self.actions.pop() {
            match action {
                Action::Start(zio) | Action::StartDamaged(zio, _) => {
                    let store = self.stores.get(zio.0 as usize).copied();
                    let ends = self.now + store.unwrap_or(Duration::ZERO);
                    self.works.push(Reverse((ends, zio.0)));
                }
                Action::Complete(zio, _) => {
                    let replied = Input::Replied {
                        zio,
                        offered: self.now,
                    };
                    self.engine.step(self.now, replied, &mut self.actions);
                }
                _ => {}
            }
        }
        for event in self.engine.events() {
            self.expected
                .latencies
                .record(event.waits().disk().as_nanos());
        }
    }

    fn waiting(&self) -> u64 {
        self.engine.in_flight_total(DISK).into()
    }

    /// Lets the waiting I/Os end, unless they would need more than an hour.
    fn finish(&mut self) {
        self.advance(self.now + Duration::from_secs(3_600));
    }
}

const DISK: DiskId = DiskId(0);

#[cfg(test)]
mod tests {
    use super::*;
    use dashpot_engine::Waits;
    use dashpot_observe::{IoWaits, Layer};

    /// Reads of one client, this far apart.
    fn reads(count: u64, apart_ns: u64) -> Vec<FinishedIo> {
        let read = |at: u64| FinishedIo {
            depth: Some(1),
            length_bytes: 4_096,
            begun_ns: at * apart_ns,
            ended_ns: at * apart_ns,
            waits: IoWaits::Zio(Waits::default()),
            ..FinishedIo::bare(Layer::Disk, "d".into(), Kind::Op(Op::Read))
        };
        (0..count).map(read).collect()
    }

    /// The same I/Os an hour later.
    fn later(mut ios: Vec<FinishedIo>) -> Vec<FinishedIo> {
        ios.iter_mut()
            .for_each(|io| io.begun_ns += 3_600_000_000_000);
        ios
    }

    fn under(words: &str, ios: &[FinishedIo]) -> Expected {
        let rules = dashpot_rules::parse_injection(words).unwrap().rules;
        let each = |look: &mut dyn FnMut(&FinishedIo)| ios.iter().for_each(look);
        expect(
            each,
            vec![rules.into_iter().map(|rule| rule.spec).collect()],
        )
    }

    #[test]
    fn a_lane_that_keeps_up_gives_its_delay_and_one_that_does_not_a_queue() {
        let ios = reads(100, 20_000_000);
        let light = under("-D 10ms:1", &ios);
        assert_eq!(
            (light.latencies.min(), light.latencies.max()),
            (Some(10_000_000), Some(10_000_000))
        );
        assert_eq!((light.latencies.count(), light.waiting), (100, 1));
        // An I/O arrives every 20 ms and takes 30 ms, so each I/O waits 10 ms longer than the I/O before it.
        let heavy = under("-D 30ms:1", &ios);
        assert_eq!(heavy.latencies.max(), Some(30_000_000 + 99 * 10_000_000));
        assert!(heavy.waiting > 30, "{}", heavy.waiting);
        let brief = under("-D 10ms --for 1s", &later(ios.clone()));
        assert_eq!(brief.latencies.max(), Some(10_000_000));
        let none = under("-D 30ms:1 -T write", &ios);
        assert_eq!(none.latencies.max(), Some(0));
    }
}
