//! A report's question to a source, beyond the figures that every source gives.

/// The breakdown and the extra latencies that a report needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// The breakdown of each operation.
    pub by: Option<By>,
    /// Whether latencies from arrival are needed. For the kernel's disks, they take more events.
    pub queued: bool,
    /// Whether latencies of the store alone are needed. A daemon knows them from events.
    pub store: bool,
}

/// The dimension of a breakdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The client that sent the I/O to dashpot.
    Client,
    /// The name of the process that asked the kernel for the I/O.
    Process,
    /// The control group of that process.
    Cgroup,
    /// Their number of bytes, in powers of two.
    Size,
}

impl By {
    /// The word on the command line.
    pub fn word(self) -> &'static str {
        match self {
            By::Client => "client",
            By::Process => "process",
            By::Cgroup => "cgroup",
            By::Size => "size",
        }
    }
}
