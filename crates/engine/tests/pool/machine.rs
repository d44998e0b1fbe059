//! A driver with bytes: its disks are vectors that answer after a random time.

use std::collections::BTreeMap;

use dashpot_engine::pool::{
    Layout, MirrorRecord, MirrorStart, PoolConfig, PoolDisk, ThrottleConfig, Tunable, Tunables,
    VolumeConfig, WritePolicy,
};
use dashpot_engine::{
    Action, Buf, ClientId, Command, CommandId, DiskConfig, DiskId, Duration, Engine, Errno, Input,
    Instant, Move, Op, Outcome, PoolId, Random, Segment, Span, VolumeId, Zio, ZioId,
};

use crate::cache::Cache;

pub(crate) struct Machine {
    pub(crate) engine: Engine,
    pool: PoolConfig,
    volume: VolumeConfig,
    /// The durable record of the mirrors.
    record: Vec<MirrorRecord>,
    /// The record that is being made, and the moment at which it will be durable.
    next_record: Option<(Instant, Vec<MirrorRecord>)>,
    keeps_record: bool,
    pub(crate) now: Instant,
    block_size: u32,
    /// The size of the volume, which takes the whole space of the pool.
    size: u64,
    disks: Vec<Vec<u8>>,
    caches: Vec<Cache>,
    buffers: BTreeMap<Buf, Vec<u8>>,
    payloads: BTreeMap<ZioId, Vec<u8>>,
    /// The parts of buffers that are lent to reads.
    lent: BTreeMap<ZioId, Span>,
    /// The zios at the disks, each with the moment at which its disk finishes.
    working: BTreeMap<(Instant, u64), ZioId>,
    started: u64,
    random: Random,
    /// For each disk, how many of 16 writes, zeroes or trims fail on average.
    pub(crate) bad: Vec<u64>,
    /// Whether reads fail in the same proportion as writes.
    pub(crate) bad_reads: bool,
    /// The longest time that a sync takes, in microseconds.
    pub(crate) sync_takes: u64,
    /// The largest number of I/Os that one step has queued, or of blocks that one step has made dirty or
    /// clean.
    pub(crate) most_touched: u64,
    /// The largest number of moves in one step. Freeing a buffer counts as a move, too.
    pub(crate) most_moved: usize,
    /// How many zios without bytes the disks have had.
    pub(crate) overhead: usize,
    pub(crate) ended: Vec<(ZioId, Outcome, Vec<u8>)>,
}

impl Machine {
    pub(crate) fn new(
        members: &[usize],
        layout: Layout,
        (throttle, write): (ThrottleConfig, WritePolicy),
        block_size: u32,
        size: u64,
        seed: u64,
    ) -> Machine {
        let count: usize = members.iter().sum();
        let disks: Vec<DiskId> = (0..count as u32).map(DiskId).collect();
        let mut rest = disks.iter();
        let blocks = size / u64::from(block_size);
        let disk_size = blocks.div_ceil(members.len() as u64) * u64::from(block_size);
        let disk = |disk: &DiskId| PoolDisk {
            disk: *disk,
            size: disk_size,
            rotational: false,
        };
        let members = members
            .iter()
            .map(|sides| rest.by_ref().take(*sides).map(disk).collect());
        let mut tunables = Tunables::new(1 << 30);
        tunables
            .set(Tunable::DirtyDataMax, 40 * u64::from(block_size))
            .unwrap();
        tunables.set(Tunable::TxgOverhead, 0).unwrap();
        let config = PoolConfig {
            members: members.collect(),
            layout,
            throttle,
            tunables,
        };
        let volume = VolumeConfig {
            pool: PoolId(0),
            size,
            block_size,
            write,
        };
        Machine {
            engine: engine(&config, volume, Instant::ZERO),
            pool: config,
            volume,
            record: Vec::new(),
            next_record: None,
            keeps_record: false,
            now: Instant::ZERO,
            block_size,
            size,
            disks: vec![vec![0; disk_size as usize]; count],
            caches: vec![Cache::new(disk_size as usize); count],
            buffers: BTreeMap::new(),
            payloads: BTreeMap::new(),
            lent: BTreeMap::new(),
            working: BTreeMap::new(),
            started: 0,
            random: Random::new(seed),
            bad: vec![0; count],
            bad_reads: false,
            sync_takes: 2_000,
            most_touched: 0,
            most_moved: 0,
            overhead: 0,
            ended: Vec::new(),
        }
    }

    pub(crate) fn submit(&mut self, id: ZioId, op: Op, fua: bool, offset: u64, data: Vec<u8>) {
        let zio = Zio {
            id,
            device: VolumeId(0),
            client: ClientId(0),
            op,
            fua,
            call: None,
            offset,
            length: data.len() as u32,
            arrived: self.now,
        };
        self.payloads.insert(id, data);
        self.step(Input::SubmitToVolume(zio));
    }

    /// Advances to the next moment at which something happens; returns false if there is no such moment.
    pub(crate) fn advance(&mut self) -> bool {
        let done = self.working.first_key_value().map(|((at, _), _)| *at);
        let wake = self.engine.next_deadline();
        let recorded = self.next_record.as_ref().map(|(at, _)| *at);
        let Some(next) = [done, wake, recorded].into_iter().flatten().min() else {
            return false;
        };
        self.now = self.now.max(next);
        if recorded.is_some_and(|at| at <= self.now) {
            self.end_record();
            return true;
        }
        if done.is_some_and(|at| at <= self.now)
            && let Some((_, id)) = self.working.pop_first()
        {
            self.finish(id);
        } else {
            self.step(Input::Tick);
        }
        true
    }

    /// Cuts the power of the host. The disks drop their unfinished work. Each write that no sync has covered
    /// is lost or survives, at random.
    pub(crate) fn crash(&mut self) {
        let zios: Vec<ZioId> = self.payloads.keys().copied().collect();
        self.step(Input::Abort(&zios));
        let crash = Command::Crash(PoolId(0));
        self.step(Input::Command(CommandId(1), crash));
        for (_, id) in std::mem::take(&mut self.working) {
            self.step(Input::Done(id, Err(Errno::Io)));
        }
        for (disk, cache) in self.disks.iter_mut().zip(&mut self.caches) {
            cache.lose_power(&mut self.random);
            disk.clone_from(&cache.kept);
        }
        self.payloads.clear();
        self.lent.clear();
        self.ended.clear();
        let repair = Command::Repair(PoolId(0));
        self.step(Input::Command(CommandId(2), repair));
    }

    /// Keeps a durable record of the mirrors from now on. At first the sides may differ everywhere, so the
    /// pool must not read the sides in `stale`.
    pub(crate) fn keep_record(&mut self, stale: u64) {
        self.keeps_record = true;
        let record = |(member, sides): (usize, &Vec<PoolDisk>)| MirrorRecord {
            member,
            region_size: sides[0].size,
            regions: vec![0],
            stale,
        };
        self.record = self.pool.members.iter().enumerate().map(record).collect();
        self.start_from_record();
    }

    /// Fills a disk with other bytes, as if another disk had replaced it.
    pub(crate) fn replace(&mut self, disk: usize) {
        self.disks[disk].fill(0xbb);
        self.caches[disk] = Cache::new(self.disks[disk].len());
        self.caches[disk].kept.fill(0xbb);
    }

    /// Kills the daemon and cuts the power of its host, then starts a new engine with the durable data.
    pub(crate) fn restart(&mut self) {
        if let Some((_, record)) = self.next_record.take()
            && self.random.below(2) == 0
        {
            self.record = record;
        }
        for (disk, cache) in self.disks.iter_mut().zip(&mut self.caches) {
            cache.lose_power(&mut self.random);
            disk.clone_from(&cache.kept);
        }
        self.payloads.clear();
        self.lent.clear();
        self.ended.clear();
        self.start_from_record();
    }

    fn start_from_record(&mut self) {
        let size = self.disks[0].len() as u64;
        let start = |record: &MirrorRecord| {
            let of_region = |at: &u32| {
                let start = u64::from(*at) * record.region_size;
                start..(start + record.region_size).min(size)
            };
            let regions = record.regions.iter().map(of_region);
            let all = (record.stale != 0).then_some(0..size);
            MirrorStart {
                stale: record.stale,
                differ: all.into_iter().chain(regions).collect(),
            }
        };
        let starts: Vec<MirrorStart> = self.record.iter().map(start).collect();
        self.next_record = None;
        self.working.clear();
        self.buffers.clear();
        self.engine = engine(&self.pool, self.volume, self.now);
        self.engine.record_mirrors(PoolId(0), &starts);
        self.step(Input::Command(CommandId(2), Command::Repair(PoolId(0))));
    }

    fn end_record(&mut self) {
        let Some((_, record)) = self.next_record.take() else {
            return;
        };
        let outcome = match self.random.below(8) {
            0 => Err(Errno::Io),
            _ => Ok(()),
        };
        if outcome.is_ok() || self.random.below(2) == 0 {
            self.record = record;
        }
        self.step(Input::Recorded(PoolId(0), outcome));
    }

    /// Cuts the power of the disks alone. The host keeps running, and the work in flight continues.
    pub(crate) fn lose_caches(&mut self) {
        for (disk, cache) in self.disks.iter_mut().zip(&mut self.caches) {
            cache.lose_writes(&mut self.random);
            disk.clone_from(&cache.kept);
        }
        let repair = Command::Repair(PoolId(0));
        self.step(Input::Command(CommandId(2), repair));
    }

    /// Makes the pool write its dirty data to the disks, because the pool is about to end.
    pub(crate) fn drain(&mut self) {
        self.step(Input::Command(CommandId(3), Command::Drain));
    }

    /// Reads all bytes of the volume.
    pub(crate) fn read_all(&mut self) -> Vec<u8> {
        let reply = vec![0xdd; self.size as usize];
        self.submit(ZioId(0), Op::Read, false, 0, reply);
        while self.ended.is_empty() {
            assert!(self.advance(), "the read never ends");
        }
        self.ended.remove(0).2
    }

    /// Whether all sides of each member hold the same bytes.
    pub(crate) fn sides_agree(&self, members: &[usize]) -> bool {
        let mut disks = self.disks.iter();
        let agree = |sides: &usize| {
            let mut sides = disks.by_ref().take(*sides);
            let first = sides.next();
            sides.all(|side| Some(side) == first)
        };
        members.iter().all(agree)
    }

    /// The total size of the buffers' content, in bytes.
    pub(crate) fn buffered(&self) -> u64 {
        self.buffers.values().map(|bytes| bytes.len() as u64).sum()
    }

    /// How many I/Os wait in the queues, and how many blocks are dirty.
    fn touched(&self) -> (u64, u64) {
        let state = self.engine.pool_state(PoolId(0)).unwrap();
        let pending = state.queues.iter().flat_map(|queue| queue.pending);
        let dirty = state.dirty / u64::from(self.block_size);
        (pending.map(u64::from).sum(), dirty)
    }

    pub(crate) fn tune(&mut self, tunable: Tunable, value: u64) {
        let tune = Command::Tune {
            pool: PoolId(0),
            changes: vec![(tunable, value)],
        };
        self.step(Input::Command(CommandId(4), tune));
    }

    /// How many buffers hold bytes.
    pub(crate) fn buffers(&self) -> usize {
        self.buffers.len()
    }

    /// The volume's bytes as the static layout places them on this side of each member.
    pub(crate) fn on_disk(&self, members: &[usize], side: usize) -> Vec<u8> {
        let blocks = self.size as usize / self.block_size as usize;
        let mut image = Vec::new();
        for block in 0..blocks {
            let member = block % members.len();
            let before: usize = members[..member].iter().sum();
            let disk = before + side % members[member];
            let at = block / members.len() * self.block_size as usize;
            image.extend_from_slice(&self.disks[disk][at..at + self.block_size as usize]);
        }
        image
    }

    fn step(&mut self, input: Input<'_>) {
        let mut actions = Vec::new();
        let before = self.touched();
        self.engine.step(self.now, input, &mut actions);
        let after = self.touched();
        self.most_touched = self.most_touched.max(after.0.saturating_sub(before.0));
        self.most_touched = self.most_touched.max(before.1.abs_diff(after.1));
        let moves = actions.iter();
        let moves = moves.filter(|action| matches!(action, Action::Move(_)));
        self.most_moved = self.most_moved.max(moves.count());
        for action in actions {
            match action {
                Action::Start(id) | Action::StartDamaged(id, _) => {
                    let is_sync = self.note_sync(id);
                    let most = if is_sync { self.sync_takes } else { 2_000 };
                    let takes = Duration::from_micros(self.random.below(most));
                    self.started += 1;
                    self.working.insert((self.now + takes, self.started), id);
                }
                Action::Move(step) => self.move_bytes(step),
                Action::Complete(id, outcome) => {
                    let mut data = self.payloads.remove(&id).unwrap();
                    if let Some(lent) = self.lent.remove(&id) {
                        data.copy_from_slice(self.span(lent));
                    }
                    self.ended.push((id, outcome, data));
                    self.replied(id);
                }
                Action::Record(pool) => {
                    assert!(self.keeps_record && self.next_record.is_none());
                    let takes = Duration::from_micros(self.random.below(4_000));
                    let record = self.engine.mirror_records(pool);
                    self.next_record = Some((self.now + takes, record));
                }
                Action::Drop(_) | Action::Ended { .. } | Action::Answer(..) => {}
            }
        }
    }

    fn finish(&mut self, id: ZioId) {
        let zio = self.engine.child(id).unwrap();
        let can_fail = match zio.op {
            Op::Read => self.bad_reads,
            op => op != Op::Flush,
        };
        if can_fail && self.random.below(16) < self.bad[zio.device.0 as usize] {
            return self.fail(id, &zio);
        }
        self.work(id, &zio);
        self.step(Input::Done(id, Ok(())));
    }

    /// Fails a zio, although the disk may have done its work.
    fn fail(&mut self, id: ZioId, zio: &Zio) {
        if self.random.below(2) == 0 {
            self.work(id, zio);
        }
        self.step(Input::Done(id, Err(Errno::Io)));
    }

    fn work(&mut self, id: ZioId, zio: &Zio) {
        if self.engine.is_overhead(id) {
            assert_eq!(self.engine.segments(id).count(), 0);
            self.overhead += 1;
            return;
        }
        let segments: Vec<Segment> = self.engine.segments(id).collect();
        let disk = &mut self.disks[zio.device.0 as usize];
        let mut at = zio.offset as usize;
        for segment in segments {
            match segment {
                Segment::Gap(length) => at += length as usize,
                Segment::Buf(buf, length) => {
                    let end = at + length as usize;
                    let bytes = self.buffers.entry(buf).or_default();
                    bytes.resize(length as usize, 0xee);
                    match zio.op {
                        Op::Read => bytes.copy_from_slice(&disk[at..end]),
                        _ => disk[at..end].copy_from_slice(bytes),
                    }
                    at = end;
                }
            }
        }
        if matches!(zio.op, Op::Zero | Op::Trim) {
            disk[at..at + zio.length as usize].fill(0);
        }
        let cache = &mut self.caches[zio.device.0 as usize];
        match zio.op {
            Op::Flush => cache.synced(id),
            Op::Read => {}
            _ => cache.wrote(
                zio.offset as usize,
                &disk[zio.offset as usize..][..zio.length as usize],
            ),
        }
    }

    /// If the zio is a sync, notes which writes it covers. Returns whether the zio is a sync.
    fn note_sync(&mut self, id: ZioId) -> bool {
        let zio = self.engine.child(id).filter(|zio| zio.op == Op::Flush);
        if let Some(zio) = &zio {
            self.caches[zio.device.0 as usize].sync_began(id);
        }
        zio.is_some()
    }

    fn replied(&mut self, zio: ZioId) {
        let mut actions = Vec::new();
        let offered = self.now;
        let input = Input::Replied { zio, offered };
        self.engine.step(self.now, input, &mut actions);
        for action in actions {
            let Action::Move(step) = action else {
                panic!("{action:?} after a reply");
            };
            self.move_bytes(step);
        }
    }

    fn span(&mut self, span: Span) -> &mut [u8] {
        let bytes = self.buffers.entry(span.buf).or_default();
        bytes.resize(self.block_size as usize, 0xee);
        &mut bytes[span.at as usize..][..span.length as usize]
    }

    fn move_bytes(&mut self, step: Move) {
        match step {
            Move::CopyIn { zio, from, to } => {
                let data = self.payloads[&zio][from as usize..][..to.length as usize].to_vec();
                self.span(to).copy_from_slice(&data);
            }
            Move::CopyOut { zio, to, from } => {
                let data = self.span(from).to_vec();
                let reply = self.payloads.get_mut(&zio).unwrap();
                reply[to as usize..][..data.len()].copy_from_slice(&data);
            }
            Move::Lend { zio, from } => {
                self.lent.insert(zio, from);
            }
            Move::ZeroOut { zio, to, length } => {
                let reply = self.payloads.get_mut(&zio).unwrap();
                reply[to as usize..][..length as usize].fill(0);
            }
            Move::Zero(span) => self.span(span).fill(0),
            Move::Clone { from, to } => {
                let data = self.buffers[&from].clone();
                self.buffers.insert(to, data);
            }
            Move::Free(buf) => {
                self.buffers.remove(&buf);
            }
        }
    }
}

/// Makes an engine with a pool of all disks, and a volume.
fn engine(pool: &PoolConfig, volume: VolumeConfig, now: Instant) -> Engine {
    let mut engine = Engine::new();
    for seed in 0..pool.members.iter().flatten().count() as u64 {
        engine.add_disk(DiskConfig { seed });
    }
    engine.add_pool(pool.clone(), now).unwrap();
    engine.add_volume(volume).unwrap();
    engine
}
