//! The control plane's state: the served disks, and the rules armed on them.
//!
//! Changes of rules are serial: a lock is held until the engine has answered. So the order in
//! which callers are answered is the order in which their changes took effect.

mod clear;
mod events;

use dashpot_engine::{Answer, Command, DiskId, Duration, Instant};
use dashpot_export::{
    Cut, CutError, DiskInfo, DiskSnapshot, Handle, Loss, ProbeReading, ShardGone,
};
use dashpot_rules::{Injection, TypedRule, format_size};
use tokio::sync::{Mutex, MutexGuard, oneshot};

use crate::answers::AnswerMemory;
use crate::collector::Collector;
use crate::host::Counted;
use crate::limits::RulesHeld;
use crate::refusal::{Refusal, RefusalKind};
use crate::registry::{Gone, Record, Registry};
pub use clear::{Cleared, Scope};

/// Everything that a request to the daemon can read or change.
pub struct Daemon {
    handle: Handle,
    /// Of each disk, where clients reach it.
    uris: Vec<Vec<String>>,
    /// What the lab arms at the start and after a reset: disks by their index.
    lab_rules: Vec<(usize, Injection)>,
    registry: Mutex<Registry>,
    collector: Collector,
    answers: AnswerMemory,
    started: Instant,
    /// What the host had counted then.
    counted_before: Counted,
}

impl Daemon {
    /// A daemon over running disks. `uris` has one list for each disk.
    pub fn new(
        handle: Handle,
        uris: Vec<Vec<String>>,
        lab_rules: Vec<(usize, Injection)>,
        collector: Collector,
    ) -> Daemon {
        Daemon {
            handle,
            uris,
            lab_rules,
            registry: Mutex::default(),
            collector,
            answers: AnswerMemory::default(),
            started: dashpot_export::now(),
            counted_before: Counted::now(),
        }
    }

    /// The disks that are served, each with its index.
    pub fn disks(&self) -> impl Iterator<Item = (usize, &DiskInfo)> {
        self.handle.disks().iter().enumerate()
    }

    /// The facts about a disk that [`Daemon::disks`] or [`Daemon::disk`] gave the index of.
    pub fn info(&self, disk: usize) -> &DiskInfo {
        &self.handle.disks()[disk]
    }

    /// Why a disk is no longer served, if it is not.
    pub fn failure(&self, disk: usize) -> Option<String> {
        let served = self.handle.is_served(disk);
        served.err().map(|gone| gone.to_string())
    }

    /// Where clients reach a disk.
    pub fn uris(&self, disk: usize) -> &[String] {
        self.uris.get(disk).map_or(&[], Vec::as_slice)
    }

    /// The time of the clock that all the daemon's moments are of.
    pub fn now(&self) -> Instant {
        dashpot_export::now()
    }

    /// When it began to count.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// What the host had counted before.
    pub fn counted_before(&self) -> Counted {
        self.counted_before
    }

    /// Whether shards meet their deadlines by spinning.
    pub fn spins(&self) -> bool {
        self.handle.spins()
    }

    /// The memory of answers to callers of the API.
    pub(crate) fn answers(&self) -> &AnswerMemory {
        &self.answers
    }

    /// What the rules take of what they may.
    pub(crate) async fn rules_held(&self) -> RulesHeld {
        self.registry.lock().await.held()
    }

    /// What the probe of a shard has found in the last minute, the oldest first.
    pub fn probe(&self, shard: usize) -> Vec<ProbeReading> {
        self.handle.probe(shard)
    }

    /// The index of the disk of a name.
    pub fn disk(&self, name: &str) -> Result<usize, Refusal> {
        let found = self.disks().find(|(_, info)| info.name == name);
        let known = self.disks().map(|(_, info)| info.name.as_str());
        found
            .map(|(index, _)| index)
            .ok_or_else(|| Refusal::not_found("disk", name, known))
    }

    /// A disk as it is now, with the `oldest` of its zios in flight.
    pub async fn snapshot(&self, disk: usize, oldest: usize) -> Result<DiskSnapshot, Refusal> {
        Ok(self
            .ask_snapshot(disk, oldest)?
            .await
            .map_err(|_| ShardGone)?)
    }

    /// Asks for a snapshot: what the shard is asked for afterwards comes after it.
    fn ask_snapshot(
        &self,
        disk: usize,
        oldest: usize,
    ) -> Result<oneshot::Receiver<DiskSnapshot>, Refusal> {
        let (answer, answered) = oneshot::channel();
        // The receiver is gone when the caller has hung up, and then nobody wants the answer.
        self.handle
            .snapshot(disk, oldest, |snapshot| drop(answer.send(snapshot)))?;
        Ok(answered)
    }

    /// Every armed rule, in the order of their ids.
    pub async fn records(&self) -> Vec<Record> {
        self.registry.lock().await.records().cloned().collect()
    }

    /// The rules of an id or a name.
    pub async fn find(&self, key: &str) -> Result<Vec<Record>, Refusal> {
        self.registry.lock().await.find(key)
    }

    /// The rules of an id or a name that are gone.
    pub async fn find_gone(&self, key: &str) -> Vec<Gone> {
        self.registry.lock().await.past.find(key)
    }

    /// Arms what the lab says.
    pub async fn arm_lab(&self) -> Result<(), Refusal> {
        let mut registry = self.registry.lock().await;
        for (disk, injection) in self.lab_rules.clone() {
            self.inject_in(&mut registry, disk, injection, None).await?;
        }
        Ok(())
    }

    /// Arms the rules of one call, all or none.
    pub async fn inject(
        &self,
        disk: &str,
        injection: Injection,
        pool: Option<&str>,
    ) -> Result<Vec<Record>, Refusal> {
        let disk = self.disk(disk)?;
        let mut registry = self.registry.lock().await;
        self.inject_in(&mut registry, disk, injection, pool).await
    }

    /// Replaces what a rule says. Its counters go on; the evidence of what it says begins anew.
    pub async fn update(&self, key: &str, rule: TypedRule) -> Result<Record, Refusal> {
        let mut registry = self.registry.lock().await;
        let record = registry.find_one(key)?;
        self.check_range(record.disk, &rule)?;
        registry.check_replacement(record.id, &rule)?;
        let update = Command::Update(record.id, rule.spec.clone());
        self.command(record.disk, |_| update).await?;
        let words = rule.words.clone();
        registry.replace(record.id, rule);
        Ok(Record { words, ..record })
    }

    /// Stops new zios of a disk, and waits until none is in flight unless `now`. Returns how many
    /// are.
    pub async fn suspend(
        &self,
        disk: &str,
        lasts: Option<Duration>,
        now: bool,
    ) -> Result<u32, Refusal> {
        // Not under the lock: a rule that hangs a zio must be cleared before this is answered.
        let suspend = |disk| Command::Suspend { disk, lasts, now };
        match self.command(self.disk(disk)?, suspend).await? {
            Answer::Suspended { in_flight } => Ok(in_flight),
            _ => Ok(0),
        }
    }

    /// Issues what was suspended. Returns how many zios that were.
    pub async fn resume(&self, disk: &str) -> Result<u32, Refusal> {
        match self.command(self.disk(disk)?, Command::Resume).await? {
            Answer::Resumed { waiting } => Ok(waiting),
            _ => Ok(0),
        }
    }

    /// Cuts the power of a disk, or gives it back.
    pub async fn cut(&self, name: &str, cut: Cut) -> Result<Loss, Refusal> {
        let disk = self.disk(name)?;
        let (answer, answered) = oneshot::channel();
        self.handle.cut(disk, cut, |loss| drop(answer.send(loss)))?;
        let loss = answered.await.map_err(|_| ShardGone)?;
        loss.map_err(|error| refusal_of(error, self.info(disk)))
    }

    async fn inject_in(
        &self,
        registry: &mut MutexGuard<'_, Registry>,
        disk: usize,
        injection: Injection,
        pool: Option<&str>,
    ) -> Result<Vec<Record>, Refusal> {
        self.check_name(injection.name.as_deref())?;
        for rule in &injection.rules {
            self.check_range(disk, rule)?;
        }
        let plan = registry.plan(disk, injection, pool)?;
        let Some(group) = plan.group() else {
            return Ok(Vec::new());
        };
        let rules = plan.rules();
        let inject = |disk| Command::Inject { disk, group, rules };
        self.command(disk, inject).await?;
        let armed = plan.records.clone();
        registry.commit(plan);
        Ok(armed)
    }

    /// `clear` takes rules and disks by name, so that none may be called like the other.
    fn check_name(&self, name: Option<&str>) -> Result<(), Refusal> {
        match name {
            Some(name) if self.disk(name).is_ok() => {
                Err(Refusal::conflict(format!("'{name}' is the name of a disk"))
                    .remedy("choose another name for the rule"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a rule that no zio of the disk could meet.
    fn check_range(&self, disk: usize, rule: &TypedRule) -> Result<(), Refusal> {
        let disk = &self.handle.disks()[disk];
        let beyond = |(start, _): &(u64, u64)| *start >= disk.size;
        let Some((start, _)) = rule.spec.range.filter(beyond) else {
            return Ok(());
        };
        let (start, name, size) = (format_size(start), &disk.name, format_size(disk.size));
        let error = format!("--range begins at {start}, beyond the end of disk '{name}' at {size}");
        Err(Refusal::new(RefusalKind::Unprocessable, error).remedy("begin it below"))
    }

    /// Sends a command to the shard of a disk, and waits until it took effect.
    async fn command(
        &self,
        disk: usize,
        build: impl FnOnce(DiskId) -> Command,
    ) -> Result<Answer, Refusal> {
        let (answer, answered) = oneshot::channel();
        // The receiver is gone when the caller has hung up, and then nobody wants the answer.
        self.handle
            .command(disk, build, |result| drop(answer.send(result)))?;
        Ok(answered.await.map_err(|_| ShardGone)??)
    }
}

fn refusal_of(error: CutError, disk: &DiskInfo) -> Refusal {
    let DiskInfo { name, store, .. } = disk;
    match error {
        CutError::LosesNothing => {
            let error = format!("disk '{name}' loses nothing in a power cut: its store is {store}");
            Refusal::conflict(error).remedy("serve it from lossy:ram or lossy:file:PATH")
        }
        CutError::IsOff => Refusal::conflict(format!("disk '{name}' is off already"))
            .remedy(format!("`dashpot crash {name} --restart` serves it again")),
        CutError::Failed(errno) => {
            let error = format!("the store of disk '{name}' failed in the power cut: {errno:?}");
            Refusal::new(RefusalKind::Failed, error)
        }
    }
}
