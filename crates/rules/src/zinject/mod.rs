//! zinject: the flags, the refusals and the tables of OpenZFS's fault injector.
//!
//! What is known of it is in its manual and its output (OpenZFS 2.4; up to 2.3 for the tables of
//! D. Prakash Surya's article of 2015). It differs where a block device is no pool: the flags for
//! labels, objects, pools and the ARC are refused by name; the trailing pool may be any word,
//! because pools are not served yet, and is printed back; GUIDs are hashes of names; and text after
//! the lanes of `-D`, which zinject ignores, is refused.

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

/// The release of OpenZFS whose output is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compat {
    /// Up to 2.3: neither I/O types nor counters.
    V2_3,
    /// 2.4 and later.
    #[default]
    V2_4,
}
