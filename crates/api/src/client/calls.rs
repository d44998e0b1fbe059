//! A method for each operation of the API that the command line uses.
//!
//! Each method returns the errors of [`Client::send`].

use std::time::Duration;

use dashpot_rules::segment;
use http::Method;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::connection::Lease;
use super::{Client, ClientError};
use crate::types::{
    AttachmentFailed, By, Cleared, Clock, Crash, Crashed, DeviceIo, Disk, DiskLatency, Export,
    FailAttachment, Faults, FinishedZios, Inject, LayerWord, Pool, PoolCrashed, PoolLatency, Renew,
    Resumed, Rule, RuleLatency, RulesReset, RunScenario, ScenarioRun, Seconds, SetTunables, Status,
    Stopped, Suspend, Suspended, TunableValue, Txg, Update, Volume,
};

/// The finished zios that a caller wants.
#[derive(Clone, Debug, Default)]
pub struct WantedZios {
    /// The name of the disk whose zios are wanted; `None` for all disks.
    pub disk: Option<String>,
    /// The wanted operations, as words separated by commas; `None` for all operations.
    pub ops: Option<String>,
    /// The minimum total latency of a wanted zio, in nanoseconds.
    pub min_ns: u64,
    /// The maximum number of zios in an answer.
    pub limit: usize,
}

impl Client {
    /// The disks and volumes as they were when the daemon started. The daemon answers without asking a shard.
    pub fn exports(&self) -> Result<Vec<Export>, ClientError> {
        self.get("/v1/exports")
    }

    /// The names of the disks. The daemon answers without asking a shard.
    pub fn disk_names(&self) -> Result<Vec<String>, ClientError> {
        self.export_names(LayerWord::Disk)
    }

    /// The names of the volumes.
    pub fn volume_names(&self) -> Result<Vec<String>, ClientError> {
        self.export_names(LayerWord::Volume)
    }

    fn export_names(&self, layer: LayerWord) -> Result<Vec<String>, ClientError> {
        let mut exports = self.exports()?;
        exports.retain(|export| export.layer == layer);
        Ok(exports.into_iter().map(|export| export.name).collect())
    }

    /// Whether the daemon serves a disk with this name.
    pub fn has_disk(&self, name: &str) -> Result<bool, ClientError> {
        Ok(self.disk_names()?.iter().any(|known| known == name))
    }

    /// The time of the daemon's clock. The daemon answers without asking a shard.
    pub fn clock(&self) -> Result<Clock, ClientError> {
        self.get("/v1/clock")
    }

    /// The daemon, its shards and its disks. Each disk comes with its oldest zios in flight, at most `oldest`
    /// of them.
    pub fn status(&self, oldest: usize) -> Result<Status, ClientError> {
        self.get(&format!("/v1/status?oldest={oldest}"))
    }

    /// Like [`Client::status`], but it fails if the answer takes longer than `limit`.
    pub fn status_within(&self, oldest: usize, limit: Duration) -> Result<Status, ClientError> {
        self.get_within(&format!("/v1/status?oldest={oldest}"), limit)
    }

    /// All disks, without zios in flight.
    pub fn disks(&self) -> Result<Vec<Disk>, ClientError> {
        self.get("/v1/disks?oldest=0")
    }

    /// A disk with its oldest zios in flight, at most `oldest` of them.
    pub fn disk(&self, name: &str, oldest: usize) -> Result<Disk, ClientError> {
        self.get(&format!("/v1/disks/{}?oldest={oldest}", segment(name)))
    }

    /// The latencies of a disk since the daemon started, as a whole or broken down.
    pub fn latency(&self, disk: &str, by: Option<By>) -> Result<DiskLatency, ClientError> {
        self.get(&format!("/v1/disks/{}/latency{}", segment(disk), query(by)))
    }

    /// Like [`Client::latency`], for a volume.
    pub fn volume_latency(&self, name: &str, by: Option<By>) -> Result<DiskLatency, ClientError> {
        self.get(&format!(
            "/v1/volumes/{}/latency{}",
            segment(name),
            query(by)
        ))
    }

    /// All pools.
    pub fn pools(&self) -> Result<Vec<Pool>, ClientError> {
        self.get("/v1/pools")
    }

    /// The latencies in the queues of a pool's disks, and the pool's transaction groups.
    pub fn pool_latency(&self, pool: &str) -> Result<PoolLatency, ClientError> {
        self.get(&format!("/v1/pools/{}/latency", segment(pool)))
    }

    /// The transaction groups of a pool, the oldest first.
    pub fn txgs(&self, pool: &str) -> Result<Vec<Txg>, ClientError> {
        self.get(&format!("/v1/pools/{}/txgs", segment(pool)))
    }

    /// The tunables of a pool.
    pub fn tunables(&self, pool: &str) -> Result<Vec<TunableValue>, ClientError> {
        self.get(&format!("/v1/pools/{}/tunables", segment(pool)))
    }

    /// Sets tunables of a pool: all that `wanted` has, or none if the daemon refuses one of them. Returns all
    /// tunables of the pool after the change.
    pub fn set_tunables(
        &self,
        pool: &str,
        wanted: &SetTunables,
    ) -> Result<Vec<TunableValue>, ClientError> {
        let path = format!("/v1/pools/{}/tunables", segment(pool));
        self.send(Method::PATCH, &path, wanted)
    }

    /// The clients and the I/O of a disk or a volume, without zios in flight.
    pub fn io(&self, layer: LayerWord, name: &str) -> Result<DeviceIo, ClientError> {
        let path = format!("/v1/{}/{}?oldest=0", collection(layer), segment(name));
        match layer {
            LayerWord::Disk => Ok(self.get::<Disk>(&path)?.io),
            LayerWord::Volume => Ok(self.get::<Volume>(&path)?.io),
        }
    }

    /// All volumes, without zios in flight.
    pub fn volumes(&self) -> Result<Vec<Volume>, ClientError> {
        self.get("/v1/volumes?oldest=0")
    }

    /// The zios that finished after a cursor. Without a cursor, the answer has no zios, and `next`
    /// is the present cursor.
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

    /// The I/O of each second that began after `after_ns`, on one disk or on all disks.
    pub fn seconds(&self, after_ns: u64, disk: Option<&str>) -> Result<Seconds, ClientError> {
        let disk = disk.map_or(String::new(), |name| format!("&disk={}", segment(name)));
        let part = |after_ns| self.get(&format!("/v1/seconds?after_ns={after_ns}{disk}"));
        let mut all: Seconds = part(after_ns)?;
        while all.more {
            let next: Seconds = part(all.next_ns)?;
            all.seconds.extend(next.seconds);
            all = Seconds {
                seconds: all.seconds,
                ..next
            };
        }
        Ok(all)
    }

    /// The armed rules of all disks.
    pub fn rules(&self) -> Result<Vec<Rule>, ClientError> {
        self.get("/v1/rules")
    }

    /// All armed rules, and the cleared rules that the daemon remembers.
    pub fn rules_and_cleared(&self) -> Result<Vec<Rule>, ClientError> {
        self.get("/v1/rules?cleared=true")
    }

    /// How many cleared rules the daemon does not remember any more.
    pub fn rules_forgotten(&self) -> Result<u64, ClientError> {
        Ok(self.status(0)?.memory.rules_forgotten)
    }

    /// The rules of a disk.
    pub fn rules_of(&self, disk: &str) -> Result<Vec<Rule>, ClientError> {
        self.get(&format!("/v1/disks/{}/rules", segment(disk)))
    }

    /// The armed rules with this id or name; if none is armed, the rules with this id or name that were
    /// cleared last.
    pub fn rules_named(&self, key: &str) -> Result<Vec<Rule>, ClientError> {
        self.get(&format!("/v1/rules/{}", segment(key)))
    }

    /// The latencies of the rules that [`Client::rules_named`] returns for this id or name.
    pub fn rule_latency(&self, key: &str) -> Result<Vec<RuleLatency>, ClientError> {
        self.get(&format!("/v1/rules/{}/latency", segment(key)))
    }

    /// Arms rules on a disk: all of them, or none if one cannot be armed.
    pub fn inject(&self, disk: &str, rule: &Inject) -> Result<Vec<Rule>, ClientError> {
        self.post(&format!("/v1/disks/{}/rules", segment(disk)), rule)
    }

    /// Like [`Client::inject`], but the rules end when the lease is dropped, or when its connection
    /// ends.
    pub fn inject_leased(
        &self,
        disk: &str,
        rule: &Inject,
    ) -> Result<(Vec<Rule>, Lease), ClientError> {
        self.lease(&format!("/v1/disks/{}/leases", segment(disk)), rule)
    }

    /// Replaces the words of the rule with this id or name. Fails if several rules have this name.
    pub fn update(&self, key: &str, rule: &Update) -> Result<Vec<Rule>, ClientError> {
        self.send(Method::PATCH, &format!("/v1/rules/{}", segment(key)), rule)
    }

    /// The scenarios that run, and those that ended last, the oldest first.
    pub fn scenarios(&self) -> Result<Vec<ScenarioRun>, ClientError> {
        self.get("/v1/scenarios")
    }

    /// Begins a scenario. It ends when the lease is dropped, or when its connection ends.
    pub fn run_scenario(&self, run: &RunScenario) -> Result<(ScenarioRun, Lease), ClientError> {
        self.lease("/v1/scenarios", run)
    }

    /// Stops the scenario of a disk, and waits until it is undone. With an `id`, stops only the run with this id.
    pub fn stop_scenario(&self, disk: &str, id: Option<u64>) -> Result<ScenarioRun, ClientError> {
        let query = id.map_or(String::new(), |id| format!("?run={id}"));
        let path = format!("/v1/disks/{}/scenario{query}", segment(disk));
        self.send(Method::DELETE, &path, &())
    }

    /// Renews the leases of the rules with this id or name.
    pub fn renew(&self, key: &str, lease: &Renew) -> Result<Vec<Rule>, ClientError> {
        self.send(
            Method::POST,
            &format!("/v1/rules/{}/renew", segment(key)),
            lease,
        )
    }

    /// Clears the rules with this id or name. With `release`, the zios held by these rules complete at once.
    pub fn clear(&self, key: &str, release: bool) -> Result<Cleared, ClientError> {
        self.delete(&format!("/v1/rules/{}?release={release}", segment(key)))
    }

    /// Clears the rule with this id, because the purpose for which it was armed has ended. The zios that the
    /// rule hangs complete at once; zios with a delay complete when they are due.
    pub fn end(&self, id: u32) -> Result<Cleared, ClientError> {
        self.delete(&format!("/v1/rules/{id}?release_hung=true"))
    }

    /// Like [`Client::clear`], for all rules of a disk.
    pub fn clear_disk(&self, disk: &str, release: bool) -> Result<Cleared, ClientError> {
        self.delete(&format!(
            "/v1/rules?disk={}&release={release}",
            segment(disk)
        ))
    }

    /// Like [`Client::clear`], for all rules.
    pub fn clear_all(&self, release: bool) -> Result<Cleared, ClientError> {
        self.delete(&format!("/v1/rules?release={release}"))
    }

    /// Puts the rules and disks back into the state in which the lab starts them.
    pub fn reset(&self) -> Result<RulesReset, ClientError> {
        self.post("/v1/reset", &())
    }

    /// Ends the daemon, and waits until it no longer answers and, if the system shows its process, until that
    /// process has ended.
    pub fn stop(&self) -> Result<Stopped, ClientError> {
        // The first answer tells which process the daemon is.
        self.exports()?;
        let process = self.process();
        let stopped = self.post("/v1/stop", &())?;
        self.block_on(self.until_gone());
        if let Some(process) = process {
            let mut ended = [PollFd::new(&process, PollFlags::IN)];
            while poll(&mut ended, None) == Err(Errno::INTR) {}
        }
        Ok(stopped)
    }

    /// Suspends a disk. Without `now`, the call waits until no zio is in flight. Ctrl-C ends that wait with
    /// [`ClientError::Interrupted`], but does not end the program.
    pub fn suspend(&self, disk: &str, how: &Suspend) -> Result<Suspended, ClientError> {
        self.post_unless_interrupted(&format!("/v1/disks/{}/suspend", segment(disk)), how)
    }

    /// Resumes a suspended disk.
    pub fn resume(&self, disk: &str) -> Result<Resumed, ClientError> {
        self.post(&format!("/v1/disks/{}/resume", segment(disk)), &())
    }

    /// Cuts the power of a disk on a `lossy` store, or restores it.
    pub fn crash(&self, disk: &str, how: &Crash) -> Result<Crashed, ClientError> {
        self.post(&format!("/v1/disks/{}/crash", segment(disk)), how)
    }

    /// What rules have done to the data of a disk. The answer lists at most `list` places and I/Os.
    pub fn faults(&self, disk: &str, list: usize) -> Result<Faults, ClientError> {
        self.get(&format!("/v1/disks/{}/faults?list={list}", segment(disk)))
    }

    /// Cuts the power of a pool's disks and of its host, or restores it.
    pub fn crash_pool(&self, pool: &str, how: &Crash) -> Result<PoolCrashed, ClientError> {
        self.post(&format!("/v1/pools/{}/crash", segment(pool)), how)
    }

    /// On the daemon's side, ends an attachment of a disk or a volume; the zios in flight fail.
    pub fn fail_attachment(
        &self,
        (layer, name): (LayerWord, &str),
        node: &str,
    ) -> Result<AttachmentFailed, ClientError> {
        let node = node.to_owned();
        let (collection, name) = (collection(layer), segment(name));
        let path = format!("/v1/{collection}/{name}/fail-attachment");
        self.post(&path, &FailAttachment { node })
    }

    fn delete(&self, path: &str) -> Result<Cleared, ClientError> {
        self.send(Method::DELETE, path, &())
    }
}

/// The path segment for the devices of a layer.
fn collection(layer: LayerWord) -> &'static str {
    match layer {
        LayerWord::Disk => "disks",
        LayerWord::Volume => "volumes",
    }
}

/// The query string that asks for a breakdown; empty for none.
fn query(by: Option<By>) -> &'static str {
    match by {
        None => "",
        Some(By::Client) => "?by=client",
        Some(By::Size) => "?by=size",
    }
}
