//! Decides whether a medium's flushes can still be trusted.
//!
//! A failed `fdatasync` marks the medium as faulted. The kernel may have marked the dirty pages clean and
//! dropped them, or the device may have lost its cache, so the success of a retry would prove nothing. Every
//! later flush and FUA request fails until the store is opened anew. Reads and plain writes continue, because
//! they promise nothing.

use std::fs::File;
use std::io;
use std::sync::{Mutex, OnceLock, PoisonError};

use dashpot_engine::{Errno, Outcome};

#[derive(Debug, Default)]
pub(super) struct Durability {
    /// The reason that `fdatasync` can no longer be trusted.
    fault: OnceLock<String>,
    /// Locked during `fdatasync`.
    syncing: Mutex<()>,
}

impl Durability {
    /// If a flush has failed, the reason. From then on, all flushes fail.
    pub(super) fn fault(&self) -> Option<&str> {
        self.fault.get().map(String::as_str)
    }

    /// Syncs, one call at a time. The kernel reports a lost write only once, and later calls succeed. Because
    /// of the lock, a caller that had to wait sees the fault of the call before it.
    pub(super) fn sync(&self, file: &File) -> Outcome {
        let _one = self.syncing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.fault.get().is_some() {
            return Err(Errno::Io);
        }
        self.believe(file.sync_data())
    }

    /// Turns the result of a sync into an outcome. After one failure, this outcome and all later ones are
    /// errors.
    pub(super) fn believe(&self, synced: io::Result<()>) -> Outcome {
        if let Err(error) = synced {
            self.fault.get_or_init(|| {
                format!("fdatasync failed ({error}): restart to open the store anew, and check it")
            });
        }
        match self.fault.get() {
            None => Ok(()),
            Some(_) => Err(Errno::Io),
        }
    }
}
