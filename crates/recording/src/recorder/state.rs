//! The state that the caller's thread and the writer share.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// How much the recorder records at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// The recorder writes single I/Os and seconds.
    Everything,
    /// The recorder writes only seconds, because the writer took too much CPU time.
    SecondsOnly,
    /// The recorder writes no more I/Os or seconds, because the writer cannot write.
    Stopped,
}

/// The totals of a recorder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// How often the recorder has sealed its files.
    pub seals: u64,
    /// The number of finished I/Os in sealed files.
    pub ios: u64,
    /// The total size of the remaining files, in bytes.
    pub bytes: u64,
    /// The CPU time of the thread that writes.
    pub cpu_ns: u64,
    /// The number of I/Os and events that are missing.
    pub lost: u64,
    /// The number of sync calls on unknown devices.
    pub unplaced: u64,
    /// The number of files of I/Os that were deleted to keep the recording within its size. The table of
    /// seconds still counts the I/Os of these files.
    pub deleted: u64,
    /// Why the recorder has stopped; `None` if it has not stopped.
    pub stopped: Option<String>,
}

/// The writer sets these figures, and the caller's thread reads them. Both threads add to `lost`.
#[derive(Default)]
pub(super) struct State {
    mode: AtomicU8,
    seals: AtomicU64,
    ios: AtomicU64,
    bytes: AtomicU64,
    cpu_ns: AtomicU64,
    lost: AtomicU64,
    unplaced: AtomicU64,
    deleted: AtomicU64,
    why: Mutex<Option<String>>,
}

impl State {
    pub(super) fn mode(&self) -> Mode {
        match self.mode.load(Ordering::Relaxed) {
            0 => Mode::Everything,
            1 => Mode::SecondsOnly,
            _ => Mode::Stopped,
        }
    }

    pub(super) fn set_mode(&self, mode: Mode) {
        let number = match mode {
            Mode::Everything => 0,
            Mode::SecondsOnly => 1,
            Mode::Stopped => 2,
        };
        self.mode.store(number, Ordering::Relaxed);
    }

    pub(super) fn stop(&self, why: String) {
        self.set_mode(Mode::Stopped);
        if let Ok(mut place) = self.why.lock() {
            place.get_or_insert(why);
        }
    }

    pub(super) fn add_seal(&self) {
        self.seals.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn add_ios(&self, ios: u64) {
        self.ios.fetch_add(ios, Ordering::Relaxed);
    }

    pub(super) fn add_lost(&self, lost: u64) {
        self.lost.fetch_add(lost, Ordering::Relaxed);
    }

    pub(super) fn add_unplaced(&self, unplaced: u64) {
        self.unplaced.fetch_add(unplaced, Ordering::Relaxed);
    }

    pub(super) fn add_deleted(&self) {
        self.deleted.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn set_bytes(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn set_cpu(&self, ns: u64) {
        self.cpu_ns.store(ns, Ordering::Relaxed);
    }

    pub(super) fn summary(&self) -> Summary {
        Summary {
            seals: self.seals.load(Ordering::Relaxed),
            ios: self.ios.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            cpu_ns: self.cpu_ns.load(Ordering::Relaxed),
            lost: self.lost.load(Ordering::Relaxed),
            unplaced: self.unplaced.load(Ordering::Relaxed),
            deleted: self.deleted.load(Ordering::Relaxed),
            stopped: self.why.lock().ok().and_then(|why| why.clone()),
        }
    }
}
