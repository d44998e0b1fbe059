//! A driver without bytes. The test moves it forward step by step, and decides when disks answer.

use std::collections::VecDeque;

use dashpot_engine::inject::{GroupId, RuleId, RuleSpec};
use dashpot_engine::pool::{
    Layout, PoolConfig, PoolDisk, PoolError, ThrottleConfig, Tunable, Tunables, VolumeConfig,
    WritePolicy,
};
use dashpot_engine::{
    Action, ClientId, Command, CommandId, DiskConfig, DiskId, Engine, Errno, Input, Instant, Op,
    Outcome, PoolId, VolumeId, Zio, ZioId,
};

pub(crate) const BLOCK: u64 = 8 << 10;

pub(crate) struct Hand {
    pub(crate) engine: Engine,
    pub(crate) now: Instant,
    /// The zios at the disks, the oldest first.
    pub(crate) working: VecDeque<ZioId>,
    pub(crate) ended: Vec<(u32, Outcome)>,
}

impl Hand {
    /// Makes a pool without a volume. `members` has each member's number of sides.
    pub(crate) fn pool(
        members: &[usize],
        layout: Layout,
        disk_size: u64,
        throttle: ThrottleConfig,
        tunables: &[(Tunable, u64)],
    ) -> Result<Hand, PoolError> {
        let mut engine = Engine::new();
        let mut side = || PoolDisk {
            disk: engine.add_disk(DiskConfig { seed: 1 }),
            size: disk_size,
            rotational: false,
        };
        let members = members.iter();
        let members = members.map(|sides| (0..*sides).map(|_| side()).collect());
        let members = members.collect();
        let mut values = Tunables::new(8 << 30);
        // Most tests count zios, so they ask for overhead if they want it.
        values.set(Tunable::TxgOverhead, 0).expect("a tunable");
        values.set_all(tunables.iter().copied()).expect("tunables");
        let config = PoolConfig {
            members,
            layout,
            throttle,
            tunables: values,
        };
        engine.add_pool(config, Instant::ZERO)?;
        Ok(Hand {
            engine,
            now: Instant::ZERO,
            working: VecDeque::new(),
            ended: Vec::new(),
        })
    }

    /// Makes a volume with blocks of 8 KiB on a pool with disks of 1 MiB. `members` has each member's number
    /// of sides.
    pub(crate) fn volume(
        members: &[usize],
        throttle: ThrottleConfig,
        tunables: &[(Tunable, u64)],
    ) -> Hand {
        Hand::with_layout(members, Layout::Static, throttle, tunables)
    }

    /// Makes a volume with blocks of 8 KiB on a pool with this layout.
    pub(crate) fn with_layout(
        members: &[usize],
        layout: Layout,
        throttle: ThrottleConfig,
        tunables: &[(Tunable, u64)],
    ) -> Hand {
        let mut hand = Hand::pool(members, layout, 1 << 20, throttle, tunables).expect("a pool");
        hand.add(1 << 20, BLOCK as u32, WritePolicy::Back)
            .expect("a volume");
        hand
    }

    pub(crate) fn add(
        &mut self,
        size: u64,
        block_size: u32,
        write: WritePolicy,
    ) -> Result<VolumeId, PoolError> {
        self.engine.add_volume(VolumeConfig {
            pool: PoolId(0),
            size,
            block_size,
            write,
        })
    }

    pub(crate) fn submit(&mut self, id: u32, op: Op, fua: bool, offset: u64, length: u32) {
        let zio = Zio {
            id: ZioId(id),
            device: VolumeId(0),
            client: ClientId(0),
            op,
            fua,
            call: None,
            offset,
            length,
            arrived: self.now,
        };
        self.step(Input::SubmitToVolume(zio));
    }

    pub(crate) fn submit_to(&mut self, volume: u32, id: u32, op: Op, offset: u64, length: u32) {
        let zio = Zio {
            id: ZioId(id),
            device: VolumeId(volume),
            client: ClientId(0),
            op,
            fua: false,
            call: None,
            offset,
            length,
            arrived: self.now,
        };
        self.step(Input::SubmitToVolume(zio));
    }

    /// Writes one whole block.
    pub(crate) fn write(&mut self, id: u32, block: u64) {
        self.submit(id, Op::Write, false, block * BLOCK, BLOCK as u32);
    }

    pub(crate) fn command(&mut self, command: Command) {
        self.step(Input::Command(CommandId(1), command));
    }

    pub(crate) fn inject(&mut self, rule: RuleSpec) {
        self.command(Command::Inject {
            disk: DiskId(0),
            group: GroupId(1),
            rules: vec![(RuleId(1), rule)],
        });
    }

    /// Lets the oldest zio at the disks end; returns false if there is none.
    pub(crate) fn done(&mut self, outcome: Outcome) -> bool {
        let id = self.working.pop_front();
        if let Some(id) = id {
            self.step(Input::Done(id, outcome));
        }
        id.is_some()
    }

    /// Lets the oldest zio at the disks end, with an error if `bad` returns true for it.
    pub(crate) fn done_unless(&mut self, bad: impl Fn(&Zio) -> bool) -> bool {
        let oldest = self.working.front().and_then(|id| self.engine.child(*id));
        let failed = oldest.is_some_and(|zio| bad(&zio));
        self.done(if failed { Err(Errno::Io) } else { Ok(()) })
    }

    /// Advances to the next deadline; returns false if there is none.
    pub(crate) fn tick(&mut self) -> bool {
        let next = self.engine.next_deadline();
        if let Some(at) = next {
            self.now = self.now.max(at);
            self.step(Input::Tick);
        }
        next.is_some()
    }

    /// Lets every zio at the disks end without an error, in at most `steps` steps.
    pub(crate) fn run(&mut self, steps: usize) {
        for _ in 0..steps {
            if !self.done(Ok(())) && !self.tick() {
                break;
            }
        }
    }

    pub(crate) fn outcome(&self, id: u32) -> Option<Outcome> {
        let ended = self.ended.iter().find(|(other, _)| *other == id);
        ended.map(|(_, outcome)| *outcome)
    }

    /// The operations of the zios at the disks.
    pub(crate) fn ops(&self) -> Vec<Op> {
        let zios = self.working.iter().filter_map(|id| self.engine.child(*id));
        zios.map(|zio| zio.op).collect()
    }

    pub(crate) fn step(&mut self, input: Input<'_>) {
        let mut actions = Vec::new();
        self.engine.step(self.now, input, &mut actions);
        for action in actions {
            match action {
                Action::Start(id) | Action::StartDamaged(id, _) => self.working.push_back(id),
                Action::Complete(zio, outcome) => {
                    self.ended.push((zio.0, outcome));
                    let offered = self.now;
                    self.step(Input::Replied { zio, offered });
                }
                Action::Drop(_)
                | Action::Move(_)
                | Action::Ended { .. }
                | Action::Record(_)
                | Action::Answer(..) => {}
            }
        }
    }
}
