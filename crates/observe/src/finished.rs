//! The record of a finished I/O.

use serde::Serialize;

/// An I/O that a disk of the kernel's has finished. JSON: these fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FinishedIo {
    /// The device's name.
    #[serde(rename = "device")]
    pub disk: String,
    /// The kernel's letters for what it did.
    pub rwbs: String,
    /// First sector of 512 bytes.
    pub sector: u64,
    /// Its length.
    pub bytes: u64,
    /// From the moment of queueing, or of issue where that was not seen, until completion.
    pub total_ns: u64,
    /// Before the driver was given it, if that was seen.
    pub queue_ns: Option<u64>,
    /// With the driver.
    pub device_ns: u64,
    /// Bios and requests that had joined it.
    pub merged: u32,
    /// Times that the driver gave it back.
    pub requeued: u32,
    /// The thread that asked for it, if that was seen, …
    pub pid: Option<i32>,
    /// … and its name.
    pub comm: Option<String>,
    /// The error that it ended with, by its name in C or by its number.
    pub error: Option<String>,
}
