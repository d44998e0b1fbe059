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
            let was_full = log.is_full();
            log.overwrite(&range);
            self.notice(disk, was_full);
        }
    }

    /// Counts a disk anew, whose wrong bytes have changed.
    fn notice(&mut self, disk: DiskId, was_full: bool) {
        self.wrong = self.logs.values().filter(|log| log.has_wrong()).count();
        let is_full = self.logs.get(&disk).is_some_and(DamageLog::is_full);
        if is_full != was_full {
            self.news.push((disk, is_full));
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

    pub(crate) fn note(&mut self, disk: DiskId, io: DamagedIo) {
        let log = self.logs.entry(disk).or_default();
        let was_full = log.is_full();
        log.note(io);
        self.notice(disk, was_full);
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
