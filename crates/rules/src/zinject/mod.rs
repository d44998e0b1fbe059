//! zinject: the flags, the refusals and the tables of OpenZFS's fault injector.
//!
//! The sources are zinject's manual and its output, in OpenZFS 2.4. The tables of OpenZFS up to 2.3 come
//! from Prakash Surya's article of 2015. There are differences, because a block device is not a pool. dashpot
//! refuses flags for labels, objects, pools and the ARC, and says why. The pool at the end of the command
//! line may be any word, and dashpot only prints it back, because dashpot's rules are for disks. GUIDs are
//! hashes of names. zinject ignores text after the lanes of `-D`; dashpot refuses it.

mod getopt;
mod guid;
mod options;
mod refusal;
mod request;
mod table;

pub use guid::Guid;
pub use refusal::Refusal;
pub use request::{Add, Cancel, Request, parse};
pub use table::{Handler, added, list, removed};

/// The release of OpenZFS whose output dashpot imitates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compat {
    /// OpenZFS up to 2.3, whose tables have neither I/O types nor counters.
    V2_3,
    /// OpenZFS 2.4 and later.
    #[default]
    V2_4,
}
