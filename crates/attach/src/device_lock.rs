//! Lets attachments take turns at choosing a free device.
//!
//! Two attachments that run at once may find the same free device, and only one of them gets it. dashpot's
//! own attachments therefore choose one after the other; other programs take no turns.

use std::fs::File;
use std::thread;
use std::time::{Duration, Instant};

use crate::place::BASE;

/// The right to choose and make a device. Dropping this value gives the right up.
#[derive(Debug)]
pub(crate) struct DeviceLock {
    _lock: Option<File>,
}

impl DeviceLock {
    /// Waits until no other attachment has its turn. Gives up when `is_stopped` returns true, or after
    /// [`PATIENCE`], because the attachment that has the turn may wait for a stuck daemon. An attachment that
    /// goes on without a turn may lose its device to another attachment, and then tries again.
    pub(crate) fn wait(is_stopped: &dyn Fn() -> bool) -> DeviceLock {
        let end = Instant::now() + PATIENCE;
        let file = File::open(BASE).ok();
        let has_lock = |file: &File| file.try_lock().is_ok();
        while file.as_ref().is_some_and(|file| !has_lock(file)) {
            if is_stopped() || Instant::now() > end {
                return DeviceLock { _lock: None };
            }
            thread::sleep(PAUSE);
        }
        DeviceLock { _lock: file }
    }
}

/// How long an attachment waits for its turn.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pause between two attempts to get the turn.
const PAUSE: Duration = Duration::from_millis(5);
