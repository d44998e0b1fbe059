//! The owner of the disks that a source watches.

use dashpot_observe::Layer;

/// The owner of disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// This host's kernel.
    Kernel,
    /// A dashpot daemon.
    Daemon,
}

impl Owner {
    /// The owner of a layer, in a recording of the kernel's disks and a daemon's disks.
    pub fn of(layer: Layer) -> Owner {
        match layer {
            Layer::Kernel | Layer::Fs => Owner::Kernel,
            Layer::Disk | Layer::Volume | Layer::Store => Owner::Daemon,
        }
    }

    /// The word for the owner in the marks of a recording of the kernel's disks and a daemon's disks.
    pub fn word(self) -> &'static str {
        match self {
            Owner::Kernel => "kernel",
            Owner::Daemon => "daemon",
        }
    }

    pub(crate) fn of_word(word: &str) -> Option<Owner> {
        let mut both = [Owner::Kernel, Owner::Daemon].into_iter();
        both.find(|owner| owner.word() == word)
    }

    /// The owner whose word begins the text of a mark. A colon and more may follow.
    pub fn of_text(text: &str) -> Option<Owner> {
        Owner::of_word(text.split_once(':').map_or(text, |(word, _)| word))
    }

    /// The owner, and what it owns, in words.
    pub fn disks(self) -> &'static str {
        match self {
            Owner::Kernel => "the kernel's disks",
            Owner::Daemon => "the daemon's disks",
        }
    }
}
