//! The HTTP API: what the command line and the page use to see and change a running daemon.
//!
//! Its resources are shaped as Toxiproxy's: disks for proxies, rules for toxics. A request that
//! carries a rule sends its words, in the one grammar that there is.

mod access;
mod answer;
mod error;
mod lease;
mod listen;
mod openapi;
mod router;
mod routes;
#[cfg(test)]
mod tests;
mod told;

pub use access::{Access, Hosts, guard_host};
pub use answer::Manners;
pub use listen::{HttpListener, TokenFile, make_private_dir, random_word};
pub use router::router;
