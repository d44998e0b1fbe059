//! Pools with real bytes: a driver that holds the buffers and the disks, and a flat model beside.

mod bytes;
mod machine;
