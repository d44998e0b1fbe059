//! The NBD frontend: NetworkBlockDevice/nbd, doc/proto.md.
//!
//! Half of it is pure and knows no socket: [`setup`] shakes hands, [`wire`] has the layout of
//! requests and replies, [`check`] says whether a request may be served. The other half,
//! `receive` and `send`, is the shard's: it moves bytes between sockets, zios and stores.

pub mod check;
pub mod client;
pub mod handshake;
pub mod wire;
