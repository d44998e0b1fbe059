//! The record of a finished I/O.

use serde::Serialize;

/// An I/O that one of the kernel's disks has finished. JSON: these fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FinishedIo {
    /// The device's name.
    #[serde(rename = "device")]
    pub disk: String,
    /// The operation, in the kernel's letters.
    pub rwbs: String,
    /// First sector of 512 bytes.
    pub sector: u64,
    /// Its length.
    pub bytes: u64,
    /// The time from queueing until completion; from issue, if no event showed the queueing.
    pub total_ns: u64,
    /// The time before the driver got it, if an event showed the queueing.
    pub queue_ns: Option<u64>,
    /// The time with the driver.
    pub device_ns: u64,
    /// How many bios and requests have joined it.
    pub merged: u32,
    /// How often the driver has given it back.
    pub requeued: u32,
    /// The thread that asked for it, if an event showed that.
    pub pid: Option<i32>,
    /// The name of that thread.
    pub comm: Option<String>,
    /// The error that it ended with, by its name in C or by its number.
    pub error: Option<String>,
}
