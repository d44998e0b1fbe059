//! The control plane's state: the served disks, and the rules armed on them.
//!
//! Changes to rules are serial: the daemon holds a lock until the engine has answered. Callers therefore get
//! their answers in the order in which their changes took effect.

mod clear;
mod events;
mod lapse;
mod pools;

use std::sync::atomic::{AtomicBool, Ordering};

use dashpot_engine::inject::{Damage, Effect};
use dashpot_engine::{Answer, ClientId, Command, DiskId, Duration, Instant};
use dashpot_export::{
    Attach, AttachError, Cut, CutError, DamageReport, DiskInfo, DiskSnapshot, Handle, Loss,
    ProbeReading, ShardGone, why_out_of_reach,
};
use dashpot_rules::{ClientNames, Injection, TypedRule, format_size};
use tokio::sync::{Mutex, MutexGuard, Notify, oneshot};

use crate::answers::AnswerMemory;
use crate::collector::Collector;
use crate::host::Counted;
use crate::limits::RulesHeld;
use crate::refusal::{Refusal, RefusalKind};
use crate::registry::{Gone, Record, Registry};
use crate::runs::Runs;
pub use clear::{Cleared, Scope};

/// Refuses a rule for which dashpot must do a part of a program's calls itself, if it knows that it cannot.
fn check_reach(rule: &TypedRule) -> Result<(), Refusal> {
    if rule.spec.effect != Effect::Damage(Damage::Short) {
        return Ok(());
    }
    match why_out_of_reach() {
        Some(why) => {
            let error =
                format!("--short: dashpot cannot do a part of a program's call itself here: {why}");
            Err(Refusal::conflict(error)
                .remedy("give dashpot CAP_SYS_PTRACE, or allow these calls"))
        }
        None => Ok(()),
    }
}

/// The state that requests to the daemon can read or change.
pub struct Daemon {
    handle: Handle,
    /// The addresses for NBD clients, by export.
    uris: Vec<Vec<String>>,
    /// The rules that the daemon arms at the start and after a reset, with the indices of their disks.
    lab_rules: Vec<(usize, Injection)>,
    registry: Mutex<Registry>,
    runs: Runs,
    /// Tells [`Daemon::clear_lapsed`] that a lease has begun or was renewed.
    leases_changed: Notify,
    collector: Collector,
    answers: AnswerMemory,
    /// All zios that ended before this second are collected.
    collected_to: Mutex<u64>,
    started: Instant,
    /// The host's counters when the daemon started.
    counted_before: Counted,
    ending: Ending,
}

/// The end of a daemon that a caller of the API may end.
#[derive(Default)]
struct Ending {
    is_awaited: AtomicBool,
    asked: Notify,
}

impl Daemon {
    /// A daemon over running disks. `uris` has one list for each export.
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
            runs: Runs::default(),
            leases_changed: Notify::new(),
            answers: AnswerMemory::with_copies(collector.remembers_bytes()),
            collector,
            collected_to: Mutex::new(0),
            started: dashpot_export::now(),
            counted_before: Counted::now(),
            ending: Ending::default(),
        }
    }

    /// Lets callers of the API end this daemon from now on. The future is ready when a caller asks for the end.
    pub fn asked_to_end(&self) -> impl Future<Output = ()> {
        self.ending.is_awaited.store(true, Ordering::Relaxed);
        self.ending.asked.notified()
    }

    /// Ends the daemon, unless its disks end with a command.
    pub(crate) fn ask_to_end(&self) -> Result<(), Refusal> {
        if !self.ending.is_awaited.load(Ordering::Relaxed) {
            let error = "the disks of 'dashpot run' end with its command";
            let refusal = Refusal::new(RefusalKind::Conflict, error);
            return Err(refusal.remedy("end that command"));
        }
        self.ending.asked.notify_one();
        Ok(())
    }

    /// The daemon's disks, each with its index.
    pub fn disks(&self) -> impl Iterator<Item = (usize, &DiskInfo)> {
        self.handle.disks().iter().enumerate()
    }

    /// The facts about the disk at an index that [`Daemon::disks`] or [`Daemon::disk`] gave.
    pub fn info(&self, disk: usize) -> &DiskInfo {
        &self.handle.disks()[disk]
    }

    /// The reason that a disk is no longer served; `None` if it is served.
    pub fn failure(&self, disk: usize) -> Option<String> {
        let served = self.handle.is_served(disk);
        served.err().map(|gone| gone.to_string())
    }

    /// The addresses at which clients reach a disk. The disk of a pool has none.
    pub fn uris(&self, disk: usize) -> &[String] {
        let export = self.info(disk).export;
        let uris = export.and_then(|export| self.uris.get(export));
        uris.map_or(&[], Vec::as_slice)
    }

    /// The time of the clock that the daemon uses for all moments.
    pub fn now(&self) -> Instant {
        dashpot_export::now()
    }

    /// When the daemon started to count.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// The host's counters when the daemon started.
    pub fn counted_before(&self) -> Counted {
        self.counted_before
    }

    /// Whether shards meet their deadlines by spinning.
    pub fn spins(&self) -> bool {
        self.handle.spins()
    }

    /// The runs of scenarios.
    pub(crate) fn runs(&self) -> &Runs {
        &self.runs
    }

    /// The memory that answers to callers of the API may use.
    pub(crate) fn answers(&self) -> &AnswerMemory {
        &self.answers
    }

    /// The memory that the rules use, and its bounds.
    pub(crate) async fn rules_held(&self) -> RulesHeld {
        self.registry.lock().await.held()
    }

    /// The readings of a shard's prober in the last minute, the oldest first.
    pub fn probe(&self, shard: usize) -> Vec<ProbeReading> {
        self.handle.probe(shard)
    }

    /// The index of the disk with this name.
    pub fn disk(&self, name: &str) -> Result<usize, Refusal> {
        let known = self.handle.disks().iter();
        index_of("disk", name, known.map(|info| info.name.as_str()))
    }

    /// `volume` or `disk`: the kind of the device with this name.
    fn what_is(&self, name: &str) -> &'static str {
        let mut volumes = self.handle.volumes().iter();
        let found = volumes.find(|volume| volume.name == name);
        found.map_or("disk", |_| "volume")
    }

    /// The index of the export with this name.
    fn export(&self, name: &str) -> Result<usize, Refusal> {
        let mut volumes = self.handle.volumes().iter();
        if let Some(volume) = volumes.find(|volume| volume.name == name) {
            return Ok(volume.export);
        }
        let info = self.info(self.disk(name)?);
        info.export.ok_or_else(|| {
            if info.followed.is_some() {
                let error =
                    format!("disk '{name}' is the files of a program: no other client reaches it");
                return Refusal::conflict(error).remedy("name another disk");
            }
            let pool = info.pool.and_then(|pool| self.handle.pools().get(pool));
            let pool = pool.map_or("?", |pool| pool.name.as_str());
            Refusal::conflict(format!("disk '{name}' belongs to pool '{pool}'"))
                .remedy("name a volume of the pool")
        })
    }

    /// The state of a disk now, with at most `oldest` zios in flight, the oldest first.
    pub async fn snapshot(&self, disk: usize, oldest: usize) -> Result<DiskSnapshot, Refusal> {
        Ok(asked(|answer| self.handle.snapshot(disk, oldest, answer)).await?)
    }

    /// The damage of a disk.
    pub async fn damage(&self, disk: usize) -> Result<DamageReport, Refusal> {
        Ok(asked(|answer| self.handle.damage(disk, answer)).await?)
    }

    /// All armed rules, in order of their ids.
    pub async fn records(&self) -> Vec<Record> {
        self.registry.lock().await.records().cloned().collect()
    }

    /// The armed rules with this id or name.
    pub async fn find(&self, key: &str) -> Result<Vec<Record>, Refusal> {
        self.registry.lock().await.find(key)
    }

    /// The cleared rules with this id or name that the daemon remembers: for a name, only those of the last
    /// call that used the name.
    pub async fn find_gone(&self, key: &str) -> Vec<Gone> {
        self.registry.lock().await.past.find(key)
    }

    /// All cleared rules that the daemon remembers.
    pub async fn all_gone(&self) -> Vec<Gone> {
        self.registry.lock().await.past.all()
    }

    /// Arms the lab's rules.
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

    /// Replaces the words of a rule. The rule's counters continue, and its counters since the last update
    /// begin at zero.
    pub async fn update(&self, key: &str, rule: TypedRule) -> Result<Record, Refusal> {
        let mut registry = self.registry.lock().await;
        let record = registry.find_one(key)?;
        let rule = self.fit(record.disk, rule)?;
        registry.check_replacement(record.id, &rule)?;
        let update = Command::Update(record.id, Box::new(rule.spec.clone()));
        self.command(record.disk, |_| update).await?;
        let words = rule.words.clone();
        registry.replace(record.id, rule);
        Ok(Record { words, ..record })
    }

    /// Makes new zios of a disk wait. Unless `now` is set, the call waits until no zio is in flight. Returns
    /// how many zios are still in flight, which is 0 unless `now` is set.
    pub async fn suspend(
        &self,
        disk: &str,
        lasts: Option<Duration>,
        now: bool,
    ) -> Result<u32, Refusal> {
        // This call does not hold the lock, because the answer may come only after another caller has cleared
        // a rule that hangs a zio.
        let suspend = |disk| Command::Suspend { disk, lasts, now };
        match self.command(self.disk(disk)?, suspend).await? {
            Answer::Suspended { in_flight } => Ok(in_flight),
            _ => Ok(0),
        }
    }

    /// Issues the suspended zios. Returns how many zios were suspended.
    pub async fn resume(&self, disk: &str) -> Result<u32, Refusal> {
        match self.command(self.disk(disk)?, Command::Resume).await? {
            Answer::Resumed { waiting } => Ok(waiting),
            _ => Ok(0),
        }
    }

    /// Cuts the power of a disk, or restores it.
    pub async fn cut(&self, name: &str, cut: Cut) -> Result<Loss, Refusal> {
        let disk = self.disk(name)?;
        let export = self.export(name)?;
        let loss = asked(|answer| self.handle.cut(export, cut, answer)).await?;
        let store = &self.info(disk).store;
        loss.map_err(|error| {
            refusal_of_cut(error, "disk", name, || {
                let error =
                    format!("disk '{name}' loses nothing in a power cut: its store is {store}");
                Refusal::conflict(error).remedy("serve it from lossy:ram or lossy:file:PATH")
            })
        })
    }

    /// Makes the kernel a client of a disk or a volume.
    pub async fn attach(&self, name: &str, attach: Attach) -> Result<(), Refusal> {
        let export = self.export(name)?;
        let attached = asked(|answer| self.handle.attach(export, attach, answer)).await?;
        attached.map_err(|error| {
            let what = self.what_is(name);
            let remedy = match &error {
                AttachError::Attached(node) => format!("`dashpot detach {node}` first"),
                AttachError::Closed => format!("see `dashpot status` for {what} '{name}'"),
                _ => "use `dashpot attach`".to_owned(),
            };
            Refusal::conflict(format!("{what} '{name}': {error}")).remedy(remedy)
        })
    }

    /// Ends an attachment of a disk or a volume. Returns how many zios failed.
    pub async fn fail_attachment(&self, name: &str, node: &str) -> Result<u32, Refusal> {
        let export = self.export(name)?;
        let fail = |answer| self.handle.fail_attachment(export, node.to_owned(), answer);
        let failed = asked(fail).await?;
        failed.ok_or_else(|| {
            let what = self.what_is(name);
            let error = format!("'{node}' is not an attachment of {what} '{name}'");
            Refusal::new(RefusalKind::NotFound, error)
        })
    }

    async fn inject_in(
        &self,
        registry: &mut MutexGuard<'_, Registry>,
        disk: usize,
        mut injection: Injection,
        pool: Option<&str>,
    ) -> Result<Vec<Record>, Refusal> {
        self.check_name(injection.name.as_deref())?;
        let rules = injection.rules.into_iter().map(|rule| self.fit(disk, rule));
        injection.rules = rules.collect::<Result<_, _>>()?;
        let lease = injection.lease;
        let mut plan = registry.plan(disk, injection, pool)?;
        let Some(group) = plan.group() else {
            return Ok(Vec::new());
        };
        let rules = plan.rules();
        let inject = |disk| Command::Inject { disk, group, rules };
        self.command(disk, inject).await?;
        if let Some(lease) = lease {
            let now = self.now();
            plan.records
                .iter_mut()
                .for_each(|record| record.lease(lease, now));
            self.leases_changed.notify_one();
        }
        let armed = plan.records.clone();
        registry.commit(plan);
        Ok(armed)
    }

    /// Refuses a rule's name that is also a disk's name, because `clear` takes both kinds of names.
    pub(crate) fn check_name(&self, name: Option<&str>) -> Result<(), Refusal> {
        match name {
            Some(name) if self.disk(name).is_ok() => {
                Err(Refusal::conflict(format!("'{name}' is the name of a disk"))
                    .remedy("choose another name for the rule"))
            }
            _ => Ok(()),
        }
    }

    /// If the disk has a program's files, turns the rule into a rule for calls. Refuses a rule that does not
    /// suit its disk.
    pub(crate) fn fit(&self, disk: usize, rule: TypedRule) -> Result<TypedRule, Refusal> {
        let info = self.info(disk);
        if let Some(followed) = &info.followed {
            rule.check_client(ClientNames::Programs)?;
            check_reach(&rule)?;
            return Ok(rule.of_calls(followed.types)?);
        }
        match info.pool {
            Some(pool) => rule.check_client(ClientNames::Pool(&self.clients_of_pool(pool)))?,
            None => rule.check_client(ClientNames::Connections)?,
        }
        rule.check_of_blocks()?;
        rule.check_of_store(&info.store)?;
        self.check_range(disk, &rule)?;
        Ok(rule)
    }

    /// The names of the clients that a pool's disks tell apart.
    fn clients_of_pool(&self, pool: usize) -> Vec<&str> {
        let volumes = self
            .handle
            .volumes()
            .iter()
            .filter(|volume| volume.pool == pool);
        let told_apart = volumes.take(ClientId::POOL.0.into());
        let names = told_apart.map(|volume| volume.name.as_str());
        names
            .chain([self.handle.pools()[pool].name.as_str()])
            .collect()
    }

    /// Refuses a rule whose range begins beyond the end of the disk.
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

    /// Sends a command to the shard of a disk, and waits until the command has taken effect.
    async fn command(
        &self,
        disk: usize,
        build: impl FnOnce(DiskId) -> Command,
    ) -> Result<Answer, Refusal> {
        Ok(asked(|answer| self.handle.command(disk, build, answer)).await??)
    }
}

/// The place of a name among the known names of its kind.
fn index_of<'a>(
    what: &str,
    name: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> Result<usize, Refusal> {
    let found = known.clone().position(|known| known == name);
    found.ok_or_else(|| Refusal::not_found(what, name, known))
}

/// Asks a shard at once, and returns its answer when it comes.
fn asked<T: Send + 'static>(
    ask: impl FnOnce(Box<dyn FnOnce(T) + Send>) -> Result<(), ShardGone>,
) -> impl Future<Output = Result<T, ShardGone>> {
    let (answer, answered) = oneshot::channel();
    // Sending fails only if the caller has hung up, and then no one waits for the answer.
    let asked = ask(Box::new(|value| drop(answer.send(value))));
    async move {
        asked?;
        answered.await.map_err(|_| ShardGone)
    }
}

/// The refusal of a power cut. `kind` is the word `disk` or `pool`.
fn refusal_of_cut(
    error: CutError,
    kind: &str,
    name: &str,
    loses_nothing: impl FnOnce() -> Refusal,
) -> Refusal {
    match error {
        CutError::LosesNothing => loses_nothing(),
        CutError::IsOff => Refusal::conflict(format!("{kind} '{name}' is off already"))
            .remedy(format!("`dashpot crash {name} --restart` serves it again")),
        CutError::Failed(errno) => {
            let error = format!("a store of {kind} '{name}' failed in the power cut: {errno:?}");
            Refusal::new(RefusalKind::Failed, error)
        }
    }
}
