//! The unfinished part of a command that takes more than one step.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::inject::RuleId;
use crate::zio::{DiskId, Errno, ZioId};

/// Zios, each with its order of issue, because the id of a zio may be used again.
pub(super) type Listed = VecDeque<(u64, ZioId)>;

/// The unfinished part of a command.
#[derive(Debug)]
pub(super) enum Part {
    /// Rules have been cleared, and the zios that they hold are still to be released. If `rules` is `None`,
    /// the zios that any rule holds are released. If `only_hung`, no delay ends.
    Release {
        disk: DiskId,
        rules: Option<Vec<RuleId>>,
        only_hung: bool,
        held: Listed,
    },
    /// A disk is resumed, and its suspended zios are still to be issued.
    Resume(DiskId),
    /// The disk is closed, and its zios that wait or are held are still to fail.
    Fail {
        disk: DiskId,
        errno: Errno,
        held: Listed,
    },
}

/// The maximum number of zios that one step wakes, releases, issues or fails. Each of these zios may end in
/// that step, and sending its reply may take as long as all other work for it.
pub(super) const ZIOS_PER_STEP: usize = 256;
