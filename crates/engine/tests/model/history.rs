//! Random histories of a disk, with times and sizes that make coincidences likely.

use std::sync::Arc;

use dashpot_engine::inject::{
    Count, Cycle, Damage, Delay, Effect, GroupId, Mode, QuantileTable, Ramp, RuleId, RuleSpec,
    Service, When,
};
use dashpot_engine::{ClientId, Command, Duration, Errno, Op, OpSet, Ratio, Release, Target};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::select;

use crate::driver::{Ask, Driver};
use crate::machine::{DISK, Machine};

const GROUPS: u32 = 3;
const CLIENTS: u8 = 3;
const CLIENT_NAMES: [&str; 4] = ["pid=1", "pid=12", "pid=2", "uid=0"];
const BLOCK: u64 = 512;

/// The configuration of a disk, and all events in its life.
#[derive(Clone, Debug)]
pub(crate) struct History {
    pub(crate) seed: u64,
    /// The driver's grain. A late driver wakes up only at multiples of its grain.
    pub(crate) grain: Duration,
    /// Rules armed at the start, each with its group.
    pub(crate) rules: Vec<(u32, RuleSpec)>,
    /// The events, each with the time since the event before it, in ms.
    pub(crate) events: Vec<(u64, Event)>,
    pub(crate) ending: Ending,
}

#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// This number of equal zios arrives at the same moment.
    Arrive(usize, Ask),
    /// Aborts the living zios whose serials modulo 16 are in the mask.
    Abort(u16),
    /// A client loses all its connections.
    Leave(ClientId),
    Join(ClientId, &'static str),
    Suspend {
        lasts: Option<Duration>,
        now: bool,
    },
    Resume,
    Inject(u32, RuleSpec),
    /// Updates the armed rule at this index, modulo the number of armed rules.
    Update(usize, RuleSpec),
    /// Clears the armed rule at this index, or all rules if there is no index.
    Clear(Option<usize>, Release),
}

/// How a replay of the history ends the zios that remain at its end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ending {
    Abort,
    Release,
    Fail,
}

/// The features of the engine that a history may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope {
    pub(crate) bandwidth: bool,
    pub(crate) faults: bool,
    pub(crate) fua: bool,
    pub(crate) update: bool,
    pub(crate) release: bool,
    /// Whether the driver is late.
    pub(crate) late: bool,
    /// Whether times, rates, offsets and lengths may take their extreme values.
    pub(crate) extremes: bool,
}

impl Scope {
    pub(crate) const ALL: Scope = Scope {
        bandwidth: true,
        faults: true,
        fua: true,
        update: true,
        release: true,
        late: false,
        extremes: false,
    };
    /// Only lanes, groups, modes, matching, suspension and aborts.
    pub(crate) const LANES: Scope = Scope {
        bandwidth: false,
        faults: false,
        fua: false,
        update: false,
        release: false,
        late: false,
        extremes: false,
    };

    fn weight_of_extremes(self) -> u32 {
        u32::from(self.extremes)
    }
}

pub(crate) fn histories(scope: Scope) -> impl Strategy<Value = History> {
    let rules = vec((0..GROUPS, specs(scope)), 0..5);
    let events = vec((gaps(), events(scope)), 1..60);
    let grain = if scope.late { 1..12_000_000_u64 } else { 1..2 };
    let grain = grain.prop_map(Duration::from_nanos);
    (any::<u64>(), grain, rules, events, endings(scope)).prop_map(
        |(seed, grain, rules, events, ending)| History {
            seed,
            grain,
            rules,
            events,
            ending,
        },
    )
}

fn endings(scope: Scope) -> impl Strategy<Value = Ending> {
    let endings = if scope.release {
        vec![Ending::Abort, Ending::Release, Ending::Fail]
    } else {
        vec![Ending::Abort]
    };
    select(endings)
}

/// Milliseconds between events: often zero, sometimes long enough for every zio to end.
fn gaps() -> impl Strategy<Value = u64> {
    prop_oneof![4 => Just(0_u64), 4 => 1..4_u64, 2 => Just(10_u64), 1 => 0..60_u64]
}

fn events(scope: Scope) -> impl Strategy<Value = Event> {
    let releases = if scope.release {
        vec![Release::Nothing, Release::Hung, Release::All]
    } else {
        vec![Release::Nothing]
    };
    let clear = (option::of(0..8_usize), select(releases))
        .prop_map(|(nth, release)| Event::Clear(nth, release));
    let suspend = (option::of(spans(scope)), any::<bool>())
        .prop_map(|(lasts, now)| Event::Suspend { lasts, now });
    let join = (
        (0..CLIENTS).prop_map(ClientId),
        select(CLIENT_NAMES.to_vec()),
    )
        .prop_map(|(client, name)| Event::Join(client, name));
    let update = if scope.update { 1 } else { 0 };
    prop_oneof![
        20 => (1..5_usize, asks(scope)).prop_map(|(count, ask)| Event::Arrive(count, ask)),
        3 => any::<u16>().prop_map(Event::Abort),
        1 => clients().prop_map(Event::Leave),
        1 => join,
        1 => suspend,
        2 => Just(Event::Resume),
        1 => (0..GROUPS, specs(scope)).prop_map(|(group, spec)| Event::Inject(group, spec)),
        update => (0..8_usize, specs(scope)).prop_map(|(nth, spec)| Event::Update(nth, spec)),
        2 => clear,
    ]
}

fn clients() -> impl Strategy<Value = ClientId> {
    prop_oneof![4 => (0..CLIENTS).prop_map(ClientId), 1 => Just(ClientId::OTHER)]
}

fn asks(scope: Scope) -> impl Strategy<Value = Ask> {
    let ops = prop_oneof![4 => Just(Op::Read), 4 => Just(Op::Write), 2 => select(Op::ALL.to_vec())];
    // For some requests, the store finishes just before or just after a target, to test that the engine
    // handles these two moments in the right order.
    let nearly = (round_spans(), 0..3_u64)
        .prop_map(|(span, ns)| Duration::from_nanos(span.as_nanos() + ns - 1));
    let store = prop_oneof![3 => Just(Duration::ZERO), 2 => nearly];
    let outcome = prop_oneof![9 => Just(Ok(())), 1 => Just(Err(Errno::NoSpc))];
    let age = prop_oneof![6 => Just(Duration::ZERO), 1 => round_spans()];
    let ends = (store, outcome, age);
    (ops, any::<bool>(), clients(), places(scope), ends).prop_map(
        move |(op, fua, client, (offset, length), (store, outcome, age))| Ask {
            op,
            fua: fua && scope.fua && op == Op::Write,
            client,
            offset: if op == Op::Flush { 0 } else { offset },
            length: if op == Op::Flush { 0 } else { length },
            store,
            outcome,
            age,
        },
    )
}

/// Draws an offset and a length.
fn places(scope: Scope) -> impl Strategy<Value = (u64, u32)> {
    let blocks = (0..64_u64, select(vec![1, 2, 8, 64]));
    let blocks = blocks.prop_map(|(block, blocks)| (block * BLOCK, blocks * BLOCK as u32));
    let edges = (
        select(vec![0, 1, u64::MAX - BLOCK, u64::MAX - 1, u64::MAX]),
        select(vec![0, 1, BLOCK as u32, u32::MAX]),
    );
    prop_oneof![2 => blocks, scope.weight_of_extremes() => edges]
}

/// A few round spans, so that different sums are often equal.
fn round_spans() -> impl Strategy<Value = Duration> {
    select(vec![1, 2, 5, 10, 25]).prop_map(Duration::from_millis)
}

fn spans(scope: Scope) -> impl Strategy<Value = Duration> {
    // A wait whose length is a sum of these spans never ends, or ends long before the end of time. So the
    // clock never reaches the end of time.
    let edges = select(vec![0, 1, 1 << 63, u64::MAX - (1 << 40), u64::MAX]);
    let edges = edges.prop_map(Duration::from_nanos);
    prop_oneof![2 => round_spans(), scope.weight_of_extremes() => edges]
}

fn specs(scope: Scope) -> impl Strategy<Value = RuleSpec> {
    let ops = prop_oneof![
        4 => Just(OpSet::DATA),
        1 => select(Op::ALL.to_vec()).prop_map(OpSet::of),
        1 => Just(OpSet::of(Op::Flush).union(OpSet::of(Op::Write))),
        1 => Just(OpSet::FUA),
        2 => Just(OpSet::ALL),
    ];
    let range = (0..64_u64, 1..65_u64).prop_map(|(at, len)| (at * BLOCK, (at + len) * BLOCK));
    let edges = select(vec![(0, 1), (0, u64::MAX), (u64::MAX - 1, u64::MAX)]);
    let range = prop_oneof![2 => range, scope.weight_of_extremes() => edges];
    let glob = select(vec!["*", "pid=*", "pid=1?", "*1*", "other"]).prop_map(str::to_owned);
    let mode = prop_oneof![2 => Just(Mode::Floor), 1 => Just(Mode::Add)];
    let filters = (ops, seldom(range), seldom(glob), chances(), counts());
    let window = (seldom(spans(scope)), seldom(spans(scope)), seldom(cycles()));
    (effects(scope), filters, window, mode).prop_map(
        |(
            (effect, bandwidth),
            (ops, range, client, chance, count),
            (after, lasts, cycle),
            mode,
        )| {
            RuleSpec {
                ops: match effect {
                    Effect::Damage(damage) => damage.ops(),
                    _ => ops,
                },
                effect,
                bandwidth,
                chance,
                count,
                range,
                client,
                when: When {
                    after: after.unwrap_or_default(),
                    lasts,
                    cycle,
                },
                mode,
            }
        },
    )
}

fn cycles() -> impl Strategy<Value = Cycle> {
    (1..20_u64, 1..20_u64, 0..20_u64).prop_map(|(on, off, jitter)| Cycle {
        on: Duration::from_millis(on),
        period: Duration::from_millis(on + off),
        jitter: Duration::from_millis(jitter.min(off)),
    })
}

fn seldom<S: Strategy>(inner: S) -> impl Strategy<Value = Option<S::Value>> {
    option::weighted(0.15, inner)
}

fn chances() -> impl Strategy<Value = Option<Ratio>> {
    let halves = Just(Ratio::new(1, 2));
    let thirds = Just(Ratio::new(1, 3));
    prop_oneof![6 => Just(None), 1 => halves, 1 => thirds]
}

fn counts() -> impl Strategy<Value = Count> {
    let any = (0..4_u64, 1..4_u64, proptest::option::of(1..4_u64));
    prop_oneof![
        6 => Just(Count::ALL),
        3 => any.prop_map(|(skip, every, first)| Count { skip, every, first }),
    ]
}

fn effects(scope: Scope) -> impl Strategy<Value = (Effect, Option<u64>)> {
    let service = prop_oneof![3 => spans(scope).prop_map(Service::Constant), 1 => tables(scope)];
    let lanes = prop_oneof![1 => Just(None), 4 => (1..5_u32).prop_map(Some)];
    let ramp = (spans(scope), 1..40_u64, any::<bool>()).prop_map(|(from, ms, repeats)| Ramp {
        from,
        lasts: Duration::from_millis(ms),
        repeats,
    });
    let delay = (service, lanes, seldom(ramp))
        .prop_map(|(service, lanes, ramp)| Delay {
            service,
            lanes,
            ramp,
        })
        .boxed();
    let fail = (any::<bool>(), option::of(delay.clone())).prop_map(|(work, delay)| Effect::Fail {
        errno: Errno::Io,
        work,
        delay,
    });
    let delay = delay.prop_map(Effect::Delay);
    let rate = || {
        let round = select(vec![512_000, 1_000_000, 4_096_000, 333_333]);
        let edges = select(vec![1, u64::MAX]);
        prop_oneof![2 => round, scope.weight_of_extremes() => edges]
    };
    let (faults, bandwidth) = (u32::from(scope.faults), u32::from(scope.bandwidth));
    prop_oneof![
        12 => delay.clone().prop_map(|delay| (delay, None)),
        faults => (fail, Just(None)),
        faults => (Just(Effect::Hang), Just(None)),
        faults => (damages().prop_map(Effect::Damage), Just(None)),
        2 * bandwidth => rate().prop_map(|rate| (Effect::Pass, Some(rate))),
        bandwidth => (delay, rate().prop_map(Some)),
    ]
}

fn damages() -> impl Strategy<Value = Damage> {
    let units = || select(vec![512, 4096]);
    prop_oneof![
        Just(Damage::Drop),
        Just(Damage::Lie),
        units().prop_map(Damage::Torn),
        Just(Damage::Flip),
        units().prop_map(Damage::Zero),
        Just(Damage::Misdirect),
        Just(Damage::Short),
    ]
}

fn tables(scope: Scope) -> impl Strategy<Value = Service> {
    let span = (1..40_u64).prop_map(Duration::from_millis);
    let edges = select(vec![Duration::ZERO, Duration::MAX]);
    let span = prop_oneof![4 => span, scope.weight_of_extremes() => edges];
    let knots = vec((any::<u64>(), span), 2..4);
    knots.prop_map(|knots| {
        let (mut quantiles, mut spans): (Vec<u64>, Vec<Duration>) = knots.into_iter().unzip();
        quantiles.sort();
        quantiles.dedup();
        spans.sort();
        let table = QuantileTable::new(quantiles.into_iter().zip(spans).collect());
        Service::Quantiles(Arc::new(table.expect("knots in order")))
    })
}

/// Plays a history on a machine, event by event.
pub(crate) struct Play<M> {
    pub(crate) driver: Driver<M>,
    /// The ids of the rules that are armed now.
    armed: Vec<RuleId>,
    injected: u32,
}

impl<M: Machine> Play<M> {
    pub(crate) fn new(history: &History) -> Play<M> {
        let mut play = Play {
            driver: Driver::late(history.seed, history.grain),
            armed: Vec::new(),
            injected: 0,
        };
        for client in 0..CLIENTS {
            let name = CLIENT_NAMES[usize::from(client)];
            play.driver.join(ClientId(client), name);
        }
        for (group, spec) in &history.rules {
            play.inject(*group, spec);
        }
        play
    }

    pub(crate) fn after(&mut self, gap_ms: u64, event: &Event) {
        let until = self.driver.now + Duration::from_millis(gap_ms);
        self.driver.run_until(until);
        match event {
            Event::Arrive(count, ask) => {
                for _ in 0..*count {
                    self.driver.submit(*ask);
                }
            }
            Event::Abort(mask) => self.abort(|serial, _| mask & (1 << (serial % 16)) != 0),
            Event::Leave(client) => self.abort(|_, ask| ask.client == *client),
            Event::Join(client, name) => self.driver.join(*client, name),
            Event::Suspend { lasts, now } => {
                let (disk, lasts, now) = (DISK, *lasts, *now);
                self.driver.command(Command::Suspend { disk, lasts, now });
            }
            Event::Resume => {
                self.driver.command(Command::Resume(DISK));
            }
            Event::Inject(group, spec) => self.inject(*group, spec),
            Event::Update(nth, spec) => {
                if let Some(rule) = self.nth(*nth) {
                    self.driver
                        .command(Command::Update(rule, Box::new(spec.clone())));
                }
            }
            Event::Clear(nth, release) => self.clear(*nth, *release),
        }
    }

    /// Waits for every zio that ends by itself, and removes the other zios.
    pub(crate) fn end(&mut self, ending: Ending) {
        self.driver.run();
        match ending {
            Ending::Abort => {}
            Ending::Release => {
                self.driver.command(Command::Resume(DISK));
                self.clear(None, Release::All);
            }
            Ending::Fail => {
                self.driver.command(Command::FailHeld(Errno::Shutdown));
            }
        }
        self.driver.run();
        self.abort(|_, _| true);
        self.driver.run();
    }

    fn inject(&mut self, group: u32, spec: &RuleSpec) {
        self.injected += 1;
        let rule = RuleId(self.injected);
        self.armed.push(rule);
        self.driver.command(Command::Inject {
            disk: DISK,
            group: GroupId(group),
            rules: vec![(rule, spec.clone())],
        });
    }

    fn nth(&self, nth: usize) -> Option<RuleId> {
        self.armed.get(nth % self.armed.len().max(1)).copied()
    }

    fn clear(&mut self, nth: Option<usize>, release: Release) {
        let target = match nth {
            None => Target::All,
            Some(nth) => match self.nth(nth) {
                None => return,
                Some(rule) => Target::Rule(rule),
            },
        };
        self.armed
            .retain(|rule| !matches!(target, Target::All) && target != Target::Rule(*rule));
        self.driver.command(Command::Clear { target, release });
    }

    fn abort(&mut self, gone: impl Fn(usize, &Ask) -> bool) {
        let mut serials = self.driver.alive();
        serials.retain(|serial| gone(*serial, &self.driver.asks[*serial].1));
        self.driver.abort(&serials);
    }
}
