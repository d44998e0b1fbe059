//! A stand-in until the server is there: engines without shards.
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Instant as Clock;

use dashpot_engine::{Action, Answer, Command, CommandError, CommandId, DiskId, Engine, Input, Instant};

use crate::{Address, DiskInfo, DiskSnapshot, Handle, RuleSnapshot, ServerConfig};

type Reply = Box<dyn FnOnce(Result<Answer, CommandError>) + Send>;

/// A running server.
pub struct Server {
    handle: Handle,
    addresses: Vec<Address>,
}

/// Why it did not start.
#[derive(Debug, thiserror::Error)]
#[error("did not start")]
pub struct StartError;

pub(crate) struct Stub {
    engine: Engine,
    start: Clock,
    next: u64,
    waiting: HashMap<u64, Reply>,
}

impl Server {
    /// Starts it.
    pub fn start(config: ServerConfig) -> Result<Server, StartError> {
        let mut engine = Engine::new();
        let mut disks = Vec::new();
        for disk in &config.disks {
            engine.add_disk(dashpot_engine::DiskConfig { seed: config.seed });
            disks.push(DiskInfo {
                name: disk.name.clone(),
                size: disk.size.unwrap_or(0),
                block: disk.block,
                read_only: disk.read_only,
                store: format!("{:?}", disk.store),
                shard: 0,
            });
        }
        let stub = Stub { engine, start: Clock::now(), next: 0, waiting: HashMap::new() };
        let handle = Handle { disks: Arc::new(disks), stub: Arc::new(Mutex::new(stub)) };
        Ok(Server { handle, addresses: config.listen })
    }
    /// Its handle.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }
    /// Where it listens.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }
    /// Ends it.
    pub fn shutdown(self, _grace: std::time::Duration) {}
}

impl Stub {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.start.elapsed().as_nanos() as u64)
    }
    pub(crate) fn command(&mut self, command: Command, reply: Reply) {
        self.next += 1;
        self.waiting.insert(self.next, reply);
        let mut actions = Vec::new();
        let now = self.now();
        self.engine.step(now, Input::Command(CommandId(self.next), command), &mut actions);
        for action in actions {
            if let Action::Answer(id, answer) = action
                && let Some(reply) = self.waiting.remove(&id.0)
            {
                reply(answer);
            }
        }
    }
    pub(crate) fn snapshot(&self, disk: DiskId) -> DiskSnapshot {
        let at = self.now();
        let rules = self.engine.rules(disk, at).map(|rule| RuleSnapshot {
            id: rule.id,
            group: rule.group,
            spec: rule.spec.clone(),
            armed: rule.armed,
            stats: rule.stats.clone(),
            backlog: rule.backlog,
        });
        DiskSnapshot {
            at,
            stats: self.engine.disk_stats(disk, at).unwrap_or_default(),
            rules: rules.collect(),
            in_flight: Vec::new(),
            suspended: self.engine.suspended(disk),
            clients: Vec::new(),
            stalled: 0,
            stalls: 0,
            faulted: None,
        }
    }
}
