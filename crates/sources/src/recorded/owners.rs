//! The owners of the disks of a recording: the kernel, a daemon, or both.

use std::collections::BTreeSet;

use dashpot_export::complain;
use dashpot_observe::{Knows, Layer};

use super::history::is_without;
use super::period::Recorded;
use crate::owner::Owner;

impl Recorded {
    /// The owner of the report's disks; `None` if the report is about all disks, or the recording has one owner.
    pub(super) fn owner(&self) -> Option<Owner> {
        self.layer.filter(|_| self.has_both()).map(Owner::of)
    }

    /// Whether the recording has the kernel's disks and a daemon's.
    pub(super) fn has_both(&self) -> bool {
        let owner = |layer| match self.knows_on(layer) {
            Knows::Kernel => Owner::Kernel,
            Knows::Zios => Owner::Daemon,
        };
        let owners = self.known.iter().map(|(layer, _)| owner(*layer));
        owners.collect::<BTreeSet<Owner>>().len() > 1
    }

    /// Whether the recording had gone on without the disks of a layer before the period began.
    pub fn is_without(&self, layer: Layer) -> bool {
        is_without(Owner::of(layer), &self.sessions, &self.ends, self.period)
    }

    /// Names the disks that the report's sums leave out.
    pub fn tell_stacked(&self) {
        for one in self.stacked() {
            complain(format_args!(
                "dashpot: not in the sums: {one}; -d names one that counts"
            ));
        }
    }

    /// If the report leaves out the kernel's disks, says that the recording has them beside a daemon's disks.
    pub fn tell_kernels(&self, asked: &[Layer]) {
        let is_asked = asked.iter().any(|layer| Owner::of(*layer) == Owner::Kernel);
        let has_them = self.layers().contains(&Layer::Kernel);
        if has_them && !is_asked {
            complain(format_args!(
                "The report is about the daemon's disks; the recording has the kernel's, too: --layer kernel."
            ));
        }
    }
}
