//! Frontends: each turns a protocol into requests and takes replies back.

pub mod nbd;
