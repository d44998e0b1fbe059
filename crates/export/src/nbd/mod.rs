//! The NBD frontend: NetworkBlockDevice/nbd, doc/proto.md.
//!
//! Half of it is pure and knows no socket: [`setup`] shakes hands, [`wire`] has the layout of
//! requests and replies, [`check`] says whether a request may be served.

pub mod check;
mod export;
pub mod setup;
pub mod wire;

pub use export::ExportInfo;
