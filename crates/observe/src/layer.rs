//! Where latencies are measured.

use serde::Serialize;

/// What a report is of: of disks, of the volumes above them, or of what is below the injection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// Volumes, above the throttle and the queues.
    Volume,
    /// Disks, with what is injected.
    #[default]
    Disk,
    /// Where the bytes are, below what is injected.
    Store,
}

impl Layer {
    /// The words for all of them.
    pub const WORDS: [&str; 3] = ["volume", "disk", "store"];

    /// The layer of one of these words; any other is a disk.
    pub fn of_word(word: &str) -> Layer {
        match word {
            "volume" => Layer::Volume,
            "store" => Layer::Store,
            _ => Layer::Disk,
        }
    }
}
