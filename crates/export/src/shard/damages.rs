//! What rules have done to the data of a shard's disks, and the zios that are still to be damaged.

use std::collections::HashMap;
use std::ops::Range;

use dashpot_engine::inject::DataFault;
use dashpot_engine::{Device, DiskId, ZioId};

use crate::damage::{DamageLog, DamageReport, DamagedIo};
use crate::frontend::boundary::{Operation, Request};

/// The damage of a shard's disks.
#[derive(Debug, Default)]
pub(crate) struct Damages {
    logs: HashMap<DiskId, DamageLog>,
    /// The disks that have begun to be full of wrong bytes, or have room again.
    news: Vec<(DiskId, bool)>,
    /// How many disks have wrong bytes.
    wrong: usize,
    /// The zios that are still to be damaged: reads that a store works on, and changes that wait.
    faults: HashMap<ZioId, DataFault>,
}

impl Damages {
    /// Notes that a store begins the work of a request without damage, which makes the bytes right that it changes.
    #[inline]
    pub(crate) fn begin(&mut self, device: Device, request: &Request) {
        if self.wrong > 0 && request.operation.changes_bytes() {
            let end = request.offset + u64::from(request.length);
            self.overwrite(device, request.offset..end);
        }
    }

    /// Does what [`Damages::begin`] does, and notes what a pool reads of its disk.
    #[inline]
    pub(crate) fn begin_for_pool(&mut self, device: Device, request: &Request) {
        self.begin(device, request);
        if self.wrong > 0
            && request.operation == Operation::Read
            && let Device::Disk(disk) = device
            && let Some(log) = self.logs.get_mut(&disk)
        {
            let end = request.offset + u64::from(request.length);
            log.read_by_pool(&(request.offset..end));
        }
    }

    #[cold]
    pub(crate) fn overwrite(&mut self, device: Device, range: Range<u64>) {
        if let Device::Disk(disk) = device
            && let Some(log) = self.logs.get_mut(&disk)
        {
            let before = (log.has_wrong(), log.is_full());
            log.overwrite(&range);
            let after = (log.has_wrong(), log.is_full());
            self.notice(disk, before, after);
        }
    }

    /// Notes whether a disk had and has wrong bytes, and whether it was and is full of them.
    fn notice(&mut self, disk: DiskId, before: (bool, bool), after: (bool, bool)) {
        self.wrong += usize::from(after.0);
        self.wrong -= usize::from(before.0);
        if before.1 != after.1 {
            self.news.push((disk, after.1));
        }
    }

    /// Takes the disks that have begun to be full of wrong bytes, or have room again.
    #[inline]
    pub(crate) fn take_news(&mut self) -> Option<(DiskId, bool)> {
        self.news.pop()
    }

    /// Takes the damage that a zio still is to get.
    #[inline]
    pub(crate) fn take(&mut self, id: ZioId) -> Option<DataFault> {
        if self.faults.is_empty() {
            return None;
        }
        self.faults.remove(&id)
    }

    /// Whether a zio still is to be damaged.
    #[inline]
    pub(crate) fn awaits(&self, id: ZioId) -> bool {
        !self.faults.is_empty() && self.faults.contains_key(&id)
    }

    pub(crate) fn put(&mut self, id: ZioId, fault: DataFault) {
        self.faults.insert(id, fault);
    }

    pub(crate) fn note(&mut self, device: Device, io: DamagedIo) {
        let Device::Disk(disk) = device else {
            debug_assert!(false, "rules are on disks");
            return;
        };
        let log = self.logs.entry(disk).or_default();
        let before = (log.has_wrong(), log.is_full());
        log.note(io);
        let after = (log.has_wrong(), log.is_full());
        self.notice(disk, before, after);
    }

    /// How many I/Os of a disk have been damaged, and how many of its bytes are wrong now.
    pub(crate) fn of(&self, disk: DiskId) -> (u64, u64) {
        let log = self.logs.get(&disk);
        log.map_or((0, 0), |log| (log.total(), log.wrong_bytes()))
    }

    pub(crate) fn report(&self, disk: DiskId) -> DamageReport {
        let log = self.logs.get(&disk);
        log.map_or_else(DamageReport::default, DamageLog::report)
    }
}
