//! What is asked of a daemon, by name: each operation of the API that the command line uses.

use std::time::Duration;

use dashpot_rules::segment;
use http::Method;

use super::connection::Lease;
use super::{Client, ClientError};
use crate::types::{
    By, Cleared, Clock, Crash, Crashed, Disk, DiskLatency, Export, FinishedZios, Inject, Resumed,
    Rule, RuleLatency, RulesReset, Seconds, Status, Suspend, Suspended, Update,
};

/// Which finished zios are wanted.
#[derive(Clone, Debug, Default)]
pub struct WantedZios {
    /// Those of this disk; of all disks if there is none.
    pub disk: Option<String>,
    /// Those of these operations, in words with commas between them; of all if there are none.
    pub ops: Option<String>,
    /// Those that took at least as long, in nanoseconds.
    pub min_ns: u64,
    /// How many are answered at most.
    pub limit: usize,
}

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

    /// The daemon, its shards and its disks, each with this many of its oldest zios in flight.
    pub fn status(&self, oldest: usize) -> Result<Status, ClientError> {
        self.get(&format!("/v1/status?oldest={oldest}"))
    }

    /// As [`Client::status`], but the answer must come within a time.
    pub fn status_within(&self, oldest: usize, limit: Duration) -> Result<Status, ClientError> {
        self.get_within(&format!("/v1/status?oldest={oldest}"), limit)
    }

    /// All disks, without zios in flight.
    pub fn disks(&self) -> Result<Vec<Disk>, ClientError> {
        self.get("/v1/disks?oldest=0")
    }

    /// A disk with this many of its oldest zios in flight.
    pub fn disk(&self, name: &str, oldest: usize) -> Result<Disk, ClientError> {
        self.get(&format!("/v1/disks/{}?oldest={oldest}", segment(name)))
    }

    /// The latencies of a disk since the start, as a whole or broken down.
    pub fn latency(&self, disk: &str, by: Option<By>) -> Result<DiskLatency, ClientError> {
        let by = by.map_or("", |by| match by {
            By::Client => "?by=client",
            By::Size => "?by=size",
        });
        self.get(&format!("/v1/disks/{}/latency{by}", segment(disk)))
    }

    /// The zios that finished after a cursor; without one, from the oldest that is remembered.
    pub fn finished(
        &self,
        wanted: &WantedZios,
        after: Option<u64>,
    ) -> Result<FinishedZios, ClientError> {
        let WantedZios { limit, min_ns, .. } = wanted;
        let disk = wanted.disk.as_deref().map(segment);
        let words = [
            Some(format!("limit={limit}&min_ns={min_ns}")),
            disk.map(|disk| format!("disk={disk}")),
            wanted.ops.as_ref().map(|ops| format!("op={ops}")),
            after.map(|after| format!("after={after}")),
        ];
        let words: Vec<String> = words.into_iter().flatten().collect();
        self.get(&format!("/v1/events?{}", words.join("&")))
    }

    /// The seconds that began after a moment, of one disk or of all.
    pub fn seconds(&self, after_ns: u64, disk: Option<&str>) -> Result<Seconds, ClientError> {
        let disk = disk.map_or(String::new(), |name| format!("&disk={}", segment(name)));
        self.get(&format!("/v1/seconds?after_ns={after_ns}{disk}"))
    }

    /// Every rule that is armed.
    pub fn rules(&self) -> Result<Vec<Rule>, ClientError> {
        self.get("/v1/rules")
    }

    /// The rules of a disk.
    pub fn rules_of(&self, disk: &str) -> Result<Vec<Rule>, ClientError> {
        self.get(&format!("/v1/disks/{}/rules", segment(disk)))
    }

    /// The rules of an id or a name, armed or else gone.
    pub fn rules_named(&self, key: &str) -> Result<Vec<Rule>, ClientError> {
        self.get(&format!("/v1/rules/{}", segment(key)))
    }

    /// The latencies of the rules of an id or a name, armed or else gone.
    pub fn rule_latency(&self, key: &str) -> Result<Vec<RuleLatency>, ClientError> {
        self.get(&format!("/v1/rules/{}/latency", segment(key)))
    }

    /// Arms rules on a disk, all or none.
    pub fn inject(&self, disk: &str, rule: &Inject) -> Result<Vec<Rule>, ClientError> {
        self.post(&format!("/v1/disks/{}/rules", segment(disk)), rule)
    }

    /// As [`Client::inject`], but the rules end when the lease is dropped, or its connection ends.
    pub fn inject_leased(
        &self,
        disk: &str,
        rule: &Inject,
    ) -> Result<(Vec<Rule>, Lease), ClientError> {
        self.lease(&format!("/v1/disks/{}/leases", segment(disk)), rule)
    }

    /// Replaces what the rules of an id or a name say.
    pub fn update(&self, key: &str, rule: &Update) -> Result<Vec<Rule>, ClientError> {
        self.send(Method::PATCH, &format!("/v1/rules/{}", segment(key)), rule)
    }

    /// Clears the rules of an id or a name. With `release`, what they hold completes now.
    pub fn clear(&self, key: &str, release: bool) -> Result<Cleared, ClientError> {
        self.delete(&format!("/v1/rules/{}?release={release}", segment(key)))
    }

    /// As [`Client::clear`], for all rules of a disk.
    pub fn clear_disk(&self, disk: &str, release: bool) -> Result<Cleared, ClientError> {
        self.delete(&format!(
            "/v1/rules?disk={}&release={release}",
            segment(disk)
        ))
    }

    /// As [`Client::clear`], for all rules.
    pub fn clear_all(&self, release: bool) -> Result<Cleared, ClientError> {
        self.delete(&format!("/v1/rules?release={release}"))
    }

    /// Goes back to what the lab says.
    pub fn reset(&self) -> Result<RulesReset, ClientError> {
        self.post("/v1/reset", &())
    }

    /// Suspends a disk. Unless the request says `now`, the answer comes when nothing is in flight;
    /// Ctrl-C then ends the waiting, and not the program.
    pub fn suspend(&self, disk: &str, how: &Suspend) -> Result<Suspended, ClientError> {
        self.post_unless_interrupted(&format!("/v1/disks/{}/suspend", segment(disk)), how)
    }

    /// Lets a suspended disk go on.
    pub fn resume(&self, disk: &str) -> Result<Resumed, ClientError> {
        self.post(&format!("/v1/disks/{}/resume", segment(disk)), &())
    }

    /// Cuts the power of a disk on a `lossy` store, or gives it back.
    pub fn crash(&self, disk: &str, how: &Crash) -> Result<Crashed, ClientError> {
        self.post(&format!("/v1/disks/{}/crash", segment(disk)), how)
    }

    fn delete(&self, path: &str) -> Result<Cleared, ClientError> {
        self.send(Method::DELETE, path, &())
    }
}
