//! The types of the API's requests and answers: the server, the client and the OpenAPI document share them.
//!
//! Times are integers of nanoseconds (`_ns`), sizes integers of bytes (`_bytes`). Ages count back from
//! `at_ns`, a moment of the daemon's monotonic clock.

mod attachment;
mod change;
mod crash;
mod depth;
mod device;
mod difference;
mod disk;
mod event;
mod export;
mod faults;
mod host;
mod io;
mod latency;
mod memory;
mod pool;
mod pool_latency;
mod promise;
mod reclaim;
mod rule;
mod rule_latency;
mod scenario;
mod second;
mod shard;
mod source;
mod statistic;
mod summary;
mod tunable;
mod unheld;
mod volume;
mod wide;

pub use attachment::{
    Attachment, AttachmentFailed, FailAttachment, HandOver, HandedOver, MechanismWord,
};
pub use change::{
    Cleared, Error, Failure, Inject, Renew, Resumed, RulesReset, Stopped, Suspend, Suspended,
    Update, VersionInfo,
};
pub use crash::{
    ClientLoss, Crash, Crashed, KeepWord, LostTxg, LostWrite, PoolCrashed, ThenWord, WriteSum,
};
pub use depth::{Depth, DepthTime};
pub use device::{DeviceIo, DiskClient, InFlightZio, OpCount, wait_word};
pub use difference::{Difference, DifferenceSide, DifferentDimension, DifferentValue, SpentWait};
pub use disk::{Disk, Status, Suspension};
pub use event::{FinishedZio, FinishedZios, ZioWaits};
pub use export::{Clock, Export, LayerWord, STARTED_AGAIN};
pub use faults::{ByteRange, DamagedIo, Faults};
pub use host::Host;
pub use io::{StatisticIo, StatisticIos, StatisticWait};
pub use latency::{Bucket, By, DiskLatency, LatencyHistogram, Layout, OpLatency};
pub use memory::{ClientMemory, Memory};
pub use pool::{
    Admitted, Level, Mirrors, Pool, PoolTraffic, TrafficSum, Txg, TxgWord, VolumeTraffic,
};
pub use pool_latency::{ClassLatency, PoolLatency, SizeBucket, SizeHistogram};
pub use promise::{CanHold, LATENESS_NS, LATENESS_OF_BURST_NS, Promise};
pub use reclaim::Reclaim;
pub use rule::{
    Chance, Rule, RuleCounters, RuleEffect, RuleFields, RuleMode, RuleRamp, RuleState, op_words,
};
pub use rule_latency::{HoldLatency, RuleLatency};
pub use scenario::{RunScenario, ScenarioRun, ScenarioState, ScenarioStep};
pub use second::{Second, SecondLatency, Seconds};
pub use shard::{Load, Probe, Shard, StopTotals, Stops};
pub use source::{Source, SourceDevice, SourceGap, SourceKind, SourceLayer};
pub use statistic::{
    Buckets, Column, ColumnPart, Columns, Distribution, Expectation, RememberedSteps,
    StatisticWord, StatisticWords, UnitWord, Watch, WatchedSecond,
};
pub use summary::Summary;
pub use tunable::{SetTunables, TunableValue};
pub use unheld::{Unheld, UnheldWay};
pub use volume::{Volume, WriteWord};
pub use wide::Wide;
