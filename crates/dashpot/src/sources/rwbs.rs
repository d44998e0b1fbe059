//! The kernel's letters as the type of an I/O.

use dashpot_observe::{Kind, Type};
use dashpot_probe::Rwbs;

/// The type of an I/O of the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Letters(pub(super) Rwbs);

impl Type for Letters {
    fn kind(&self) -> Kind {
        Kind::of_letters(self.0.bytes())
    }

    fn letters(&self) -> Option<String> {
        Some(self.0.to_string())
    }
}
