//! The HTTP API, by which the command line and other programs inspect and change a running daemon.
//!
//! The API's resources correspond to Toxiproxy's: disks to proxies, and rules to toxics. Requests
//! contain rules as text, in the grammar of the command line. HTTP carries no descriptors, so clients hand
//! over descriptors at a socket beside the API's.

mod access;
mod answer;
mod charged;
mod error;
mod handover;
mod held;
mod io_memory;
mod lease;
mod listen;
pub(crate) mod memory;
mod openapi;
mod page;
mod router;
mod routes;
mod statistics;
#[cfg(test)]
mod tests;

pub use access::{Access, Hosts, guard_host};
pub use answer::Manners;
pub use handover::HandoverListener;
pub use io_memory::{IoMemory, Remembering};
pub use listen::{HttpListener, TokenFile, make_private_dir};
pub use memory::{Memory, Wanted};
pub use router::{page_router, router};
