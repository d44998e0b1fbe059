//! The state of a pool, in the shapes that its driver and reports use.

use alloc::vec::Vec;

use super::block_io::Then;
use super::block_map::BlockMap;
use super::pool::{Leaf, Pool};
use super::request::Request;
use super::stats::{PoolState, PoolStats, VolumeTraffic};
use super::step::{Child, SyncFor, Work};
use super::tag::Tag;
use super::tunable::Tunables;
use crate::bytes::{Buf, Segment};
use crate::event::Event;
use crate::stats::{DiskStats, InFlight};
use crate::time::Instant;
use crate::zio::{DiskId, ZioId};

impl Pool {
    pub(crate) fn stats(&self, now: Instant) -> PoolStats {
        let dirty_of = |txg| self.throttle.dirty_of(txg);
        let mut txgs = self.txgs.clone();
        txgs.pass_idle(now, self.txg_timeout());
        let txgs = txgs.stats(now, self.reached_disks(), dirty_of);
        let mut stats = PoolStats {
            degraded: self.failures.is_degraded(),
            dirty: self.dirty_bytes(),
            dirty_metadata: self.overhead.dirty(),
            throttled: self.throttle.waiting(),
            write_limit: self.throttle.write_limit(),
            level: self.throttle.level(),
            admissions: self.throttle.admissions(),
            disks: self.reached_disks(),
            overhead: VolumeTraffic {
                queued: self.overhead.queued,
                disks: self.overhead.disks,
                ..VolumeTraffic::default()
            },
            mirrors: self.mirrors.as_ref().map(|mirrors| mirrors.stats()),
            txgs: txgs.collect(),
            ..PoolStats::default()
        };
        for volume in &self.volumes {
            stats.volumes.add(volume.traffic.asked);
            stats.by_volume.push(volume.traffic);
        }
        for leaf in &self.disks {
            stats.queued.add(leaf.queue.apart());
            stats.queues.push(leaf.queue.stats().clone());
        }
        stats
    }

    /// The number of dirty bytes of clients in the pool. The throttle also counts metadata.
    pub(crate) fn dirty_bytes(&self) -> u64 {
        self.throttle.dirty() - self.overhead.dirty()
    }

    pub(crate) fn state(&self) -> PoolState {
        PoolState {
            dirty: self.dirty_bytes(),
            dirty_metadata: self.overhead.dirty(),
            throttled: self.throttle.waiting(),
            repairs: self
                .mirrors
                .as_ref()
                .is_some_and(|mirrors| mirrors.differ()),
            txgs: self.txgs.live().collect(),
            queues: self.disks.iter().map(Leaf::state).collect(),
        }
    }

    pub(crate) fn volume_stats(&self, volume: usize, now: Instant) -> DiskStats {
        let volume = &self.volumes[volume];
        volume.occupancy.stats_at(now, &volume.stats)
    }

    /// See [`Failures::is_degraded`](super::failures::Failures::is_degraded).
    pub(crate) fn is_degraded(&self) -> bool {
        self.failures.is_degraded()
    }

    pub(crate) fn has(&self, id: ZioId) -> bool {
        self.requests.get(id).is_some()
    }

    /// The sources or destinations of a child's bytes.
    pub(crate) fn segments(&self, disk: usize, work: Work) -> impl Iterator<Item = Segment> + '_ {
        let picked = match work {
            Work::Picked(picked) => Some(picked),
            Work::Sync { .. } | Work::Orphan => None,
        };
        let queue = &self.disks[disk].queue;
        let members = picked.into_iter().flat_map(|picked| queue.members(picked));
        let mut end = None;
        members.flat_map(move |member| {
            let gap = end.map_or(0, |end| member.offset - end);
            end = Some(member.offset + u64::from(member.length));
            let gap = (gap > 0).then_some(Segment::Gap(gap as u32));
            gap.into_iter().chain(
                self.buf_of(member.tag)
                    .map(|buf| Segment::Buf(buf, member.length)),
            )
        })
    }

    /// The buffer of a child that moves exactly one buffer.
    pub(crate) fn sole_buffer(&self, disk: usize, work: Work) -> Option<Buf> {
        let Work::Picked(picked) = work else {
            return None;
        };
        let mut members = self.disks[disk].queue.members(picked);
        let first = members.next()?;
        let is_sole = members.next().is_none();
        self.buf_of(first.tag).filter(|_| is_sole)
    }

    /// Whether a child reads only for replies, and its disk keeps the bytes, or newer ones, until the replies
    /// are sent. This is false under the dynamic layout, because another block may get the row meanwhile, and
    /// for a mirror, because a write that fails may have reached this side only.
    pub(crate) fn reads_only_for_replies(&self, disk: usize, work: Work) -> bool {
        let Work::Picked(picked) = work else {
            return false;
        };
        let mut members = self.disks[disk].queue.members(picked);
        let is_for_reply = |tag| match Tag::unpack(tag) {
            Tag::Read(id) => {
                let read = &self.reads[id];
                let is_mirrored = self.map.sides(read.member).len() > 1;
                !is_mirrored && matches!(read.then, Then::Reply { .. })
            }
            Tag::Write(_) | Tag::Repair | Tag::Beside(_) => false,
        };
        !self.map.is_dynamic() && members.all(|member| is_for_reply(member.tag))
    }

    /// A client's zio, if it is in flight in this pool.
    pub(crate) fn view(&self, id: ZioId) -> Option<InFlight> {
        self.requests.get(id).map(Request::view)
    }

    /// The zios of a volume, in the order of submission.
    pub(crate) fn in_flight(&self, volume: usize) -> Vec<InFlight> {
        let requests = self.requests.iter();
        let of_volume = requests.filter(|request| request.volume == volume);
        let mut requests: Vec<&Request> = of_volume.collect();
        requests.sort_unstable_by_key(|request| request.number);
        requests.into_iter().map(Request::view).collect()
    }

    /// Where the pool's blocks are.
    pub(crate) fn map(&self) -> &BlockMap {
        &self.map
    }

    pub(crate) fn disks(&self) -> Vec<DiskId> {
        self.disks.iter().map(|leaf| leaf.disk.disk).collect()
    }

    /// The disk at this index.
    pub(crate) fn disk(&self, index: usize) -> DiskId {
        self.disks[index].disk.disk
    }

    pub(crate) fn tunables(&self) -> &Tunables {
        &self.tunables
    }

    /// The event of a zio whose reply has left.
    pub(crate) fn event(&self, id: ZioId, offered: Instant, now: Instant) -> Event {
        let request = &self.requests[id];
        Event {
            txg_syncing: Some(self.txgs.synced_since(request.zio.arrived)),
            ..request.event(offered, now)
        }
    }

    /// Completes a child's event: adds the child's class, whether a txg synced, and the zio to which the
    /// child belongs.
    pub(crate) fn describe(&self, child: &Child, event: Event) -> Event {
        let (class, parent) = match child.work {
            Work::Picked(picked) => {
                let queue = &self.disks[child.disk].queue;
                let first = queue.members(picked).next();
                (
                    Some(queue.picked(picked).class),
                    first.and_then(|member| self.client_of(member.tag)),
                )
            }
            Work::Sync {
                who: SyncFor::Request(id),
                ..
            } => (None, Some(id)),
            Work::Sync { .. } | Work::Orphan => (None, None),
        };
        let parent = parent.map(|id| &self.requests[id]);
        Event {
            class,
            parent: parent.map(|request| request.number),
            txg_syncing: Some(self.txgs.synced_since(event.arrived)),
            ..event
        }
    }
}
