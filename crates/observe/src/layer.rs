//! The layer at which latencies are measured.

use serde::Serialize;

/// The layer of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// Volumes, above the throttle and the queues.
    Volume,
    /// Disks, including the injection.
    #[default]
    Disk,
    /// Stores, below the injection.
    Store,
    /// Calls of processes that sync files, above the kernel's disks.
    Fs,
    /// The kernel's disks in a recording that has a daemon's disks, too. Everywhere else, the layer of the
    /// kernel's disks is [`Layer::Disk`].
    Kernel,
}

impl Layer {
    /// All layers, in the order in which lists show them.
    pub const ALL: [Layer; 5] = [
        Layer::Disk,
        Layer::Volume,
        Layer::Store,
        Layer::Kernel,
        Layer::Fs,
    ];

    pub fn word(self) -> &'static str {
        match self {
            Layer::Volume => "volume",
            Layer::Disk => "disk",
            Layer::Store => "store",
            Layer::Fs => "fs",
            Layer::Kernel => "kernel",
        }
    }

    /// The layer that this word stands for. A word that names no layer stands for disks.
    pub fn of_word(word: &str) -> Layer {
        match word {
            "volume" => Layer::Volume,
            "store" => Layer::Store,
            "fs" => Layer::Fs,
            "kernel" => Layer::Kernel,
            _ => Layer::Disk,
        }
    }
}
