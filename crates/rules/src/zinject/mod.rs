//! zinject: the flags, the refusals and the tables of OpenZFS's fault injector.
//!
//! The sources are its manual and its output (OpenZFS 2.4; up to 2.3 for the tables of D. Prakash
//! Surya's article of 2015). The differences come from a block device not being a pool. Flags for
//! labels, objects, pools and the ARC are refused by name. The trailing pool may be any word, and
//! is printed back, because pools are not served yet. GUIDs are hashes of names. Text after the
//! lanes of `-D`, which zinject ignores, is refused.

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

/// The release of OpenZFS whose output to imitate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compat {
    /// Up to 2.3: without I/O types and counters.
    V2_3,
    /// 2.4 and later.
    #[default]
    V2_4,
}
