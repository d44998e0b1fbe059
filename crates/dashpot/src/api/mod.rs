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
mod routes;
#[cfg(test)]
mod tests;
mod told;
pub(crate) mod types;
mod why;

pub(crate) use access::{Access, Hosts, guard_host};
pub(crate) use answer::Manners;
pub(crate) use listen::{
    HttpListener, TokenFile, default_socket, make_private_dir, random_word, runtime_dir, token_file,
};
pub(crate) use routes::router;
