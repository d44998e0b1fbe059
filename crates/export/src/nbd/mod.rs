//! The NBD frontend: NetworkBlockDevice/nbd, doc/proto.md.
