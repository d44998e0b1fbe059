//! What is asked of a daemon, by name.

use super::{Client, ClientError, segment};
use crate::types::{Clock, Export, Rule, Seconds};

impl Client {
    /// The disks as they were started. No shard is asked.
    pub fn exports(&self) -> Result<Vec<Export>, ClientError> {
        self.get("/v1/exports")
    }

    /// Whether the daemon serves a disk of this name.
    pub fn has_disk(&self, name: &str) -> Result<bool, ClientError> {
        Ok(self.exports()?.iter().any(|export| export.name == name))
    }

    /// The time at the daemon. No shard is asked.
    pub fn clock(&self) -> Result<Clock, ClientError> {
        self.get("/v1/clock")
    }

    /// Every rule.
    pub fn rules(&self) -> Result<Vec<Rule>, ClientError> {
        self.get("/v1/rules")
    }

    /// The seconds that began after a moment, of one disk or of all.
    pub fn seconds(&self, after_ns: u64, disk: Option<&str>) -> Result<Seconds, ClientError> {
        let disk = disk.map_or(String::new(), |name| format!("&disk={}", segment(name)));
        self.get(&format!("/v1/seconds?after_ns={after_ns}{disk}"))
    }
}
