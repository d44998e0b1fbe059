//! Power cuts of `lossy` disks.

use dashpot_export::{Cut, Keep, Loss, Sum, Then};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::daemon::{Refusal, RefusalKind};

/// Cuts the power of a disk on a `lossy` store, or gives it back.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Crash {
    /// Which of the writes that no flush has covered survive.
    #[serde(default)]
    pub(crate) keep: KeepWord,
    /// What a write is torn at: 512 or 4096. Without it a write survives whole or not at all.
    #[serde(default)]
    pub(crate) tear_bytes: Option<u64>,
    /// Decides what survives.
    #[serde(default)]
    pub(crate) seed: u64,
    /// What the disk does afterwards.
    #[serde(default)]
    pub(crate) then: ThenWord,
    /// How many of the lost writes are listed, the oldest first, up to 10,000 [100].
    #[serde(default = "hundred")]
    pub(crate) list: usize,
}

fn hundred() -> usize {
    100
}

/// Which of the writes that no flush has covered survive a power cut.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema, clap::ValueEnum,
)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KeepWord {
    None,
    All,
    #[default]
    Random,
}

/// What a disk does after a power cut: it goes on under its clients, it is off, or it is served
/// again. Connections end but in the first case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ThenWord {
    #[default]
    GoOn,
    Off,
    Restart,
}

impl Crash {
    pub(crate) fn cut(&self) -> Result<Cut, Refusal> {
        match self.tear_bytes {
            None | Some(512 | 4096) => {}
            Some(other) => {
                let error = format!("a write cannot be torn at {other} bytes");
                return Err(unfit(error).remedy("give 512 or 4096"));
            }
        }
        if self.list > LIST_MAX {
            let error = format!(
                "list is {}: {LIST_MAX} writes are listed at most",
                self.list
            );
            return Err(unfit(error).remedy("give less; all of them are counted"));
        }
        if self.tear_bytes.is_some() && self.keep != KeepWord::Random {
            let error = "a torn write survives in part, and keep 'none' and 'all' have no parts";
            return Err(unfit(error.to_owned()).remedy("leave keep at 'random', or tear out"));
        }
        Ok(Cut {
            keep: match self.keep {
                KeepWord::None => Keep::None,
                KeepWord::All => Keep::All,
                KeepWord::Random => Keep::Random,
            },
            tear: self.tear_bytes,
            seed: self.seed,
            then: match self.then {
                ThenWord::GoOn => Then::GoesOn,
                ThenWord::Off => Then::Off,
                ThenWord::Restart => Then::Restart,
            },
        })
    }
}

fn unfit(error: String) -> Refusal {
    Refusal::new(RefusalKind::Unprocessable, error)
}

/// The most writes that are listed.
const LIST_MAX: usize = 10_000;

/// What a power cut has taken.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Crashed {
    pub(crate) disk: String,
    pub(crate) keep: KeepWord,
    pub(crate) tear_bytes: Option<u64>,
    pub(crate) seed: u64,
    /// What the disk does now.
    pub(crate) then: ThenWord,
    /// Whether it was off before, so that nothing was left to lose.
    pub(crate) was_off: bool,
    /// Acknowledged writes that no flush had covered.
    pub(crate) unflushed: WriteSum,
    /// Those of them of which something is missing, and the bytes that are.
    pub(crate) lost: WriteSum,
    /// Of those that are lost, the ones of which something is there.
    pub(crate) torn: u64,
    /// Writes that were in flight: their clients had not been told that they were done.
    pub(crate) unacknowledged: u64,
    /// Bytes that had reached the medium since the last flush only because the cache was full.
    pub(crate) early_bytes: u64,
    /// What is missing, by client.
    pub(crate) clients: Vec<ClientLoss>,
    /// The lost writes, as many as were asked for, the oldest first.
    pub(crate) writes: Vec<LostWrite>,
}

/// So many writes, with so many bytes.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct WriteSum {
    pub(crate) writes: u64,
    pub(crate) bytes: u64,
}

/// What is missing of a client's writes.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct ClientLoss {
    #[schema(example = "uid=1000 pid=4711")]
    pub(crate) client: String,
    #[serde(flatten)]
    pub(crate) lost: WriteSum,
}

/// An acknowledged write of which something is missing.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct LostWrite {
    pub(crate) client: String,
    pub(crate) offset_bytes: u64,
    pub(crate) length_bytes: u64,
    /// How many of its bytes are missing.
    pub(crate) missing_bytes: u64,
    /// How long before the power cut the store had it.
    pub(crate) age_ns: u64,
}

impl Crashed {
    pub(crate) fn of(disk: String, crash: &Crash, loss: Loss) -> Crashed {
        let client = |(client, lost)| ClientLoss {
            client,
            lost: WriteSum::of(lost),
        };
        Crashed {
            disk,
            keep: crash.keep,
            tear_bytes: crash.tear_bytes,
            seed: crash.seed,
            then: crash.then,
            was_off: loss.was_off,
            unflushed: WriteSum::of(loss.unflushed),
            lost: WriteSum::of(loss.lost),
            torn: loss.torn,
            unacknowledged: loss.unacknowledged,
            early_bytes: loss.early_bytes,
            clients: loss.clients.into_iter().map(client).collect(),
            writes: loss
                .writes
                .into_iter()
                .map(LostWrite::of)
                .take(crash.list)
                .collect(),
        }
    }
}

impl WriteSum {
    fn of(sum: Sum) -> WriteSum {
        WriteSum {
            writes: sum.writes,
            bytes: sum.bytes,
        }
    }
}

impl LostWrite {
    fn of(write: dashpot_export::LostWrite) -> LostWrite {
        LostWrite {
            client: write.client,
            offset_bytes: write.offset,
            length_bytes: write.length,
            missing_bytes: write.missing,
            age_ns: write.age.as_nanos(),
        }
    }
}
