//! Converts power cuts from the types of the API and back.

use dashpot_api::{
    ClientLoss, Crash, Crashed, KeepWord, LostTxg, LostWrite, PoolCrashed, ThenWord, WriteSum,
};
use dashpot_export::{Cut, Keep, Loss, PoolLoss, Sum, Then};

use crate::{Refusal, RefusalKind};

/// The power cut that a caller asks for.
pub(crate) fn cut(crash: &Crash) -> Result<Cut, Refusal> {
    match crash.tear_bytes {
        None | Some(512 | 4096) => {}
        Some(other) => {
            let error = format!("a write cannot be torn at {other} bytes");
            return Err(unfit(error).remedy("give 512 or 4096"));
        }
    }
    if crash.list > LIST_MAX {
        let error = format!(
            "list is {}: an answer lists at most {LIST_MAX} writes",
            crash.list
        );
        return Err(unfit(error).remedy("ask for a shorter list; the answer counts all writes"));
    }
    if crash.tear_bytes.is_some() && crash.keep != KeepWord::Random {
        let error = "a torn write survives in part, but with keep 'none' or 'all' no write does";
        return Err(unfit(error.to_owned()).remedy("set keep to 'random', or leave out tear"));
    }
    Ok(Cut {
        keep: match crash.keep {
            KeepWord::None => Keep::None,
            KeepWord::All => Keep::All,
            KeepWord::Random => Keep::Random,
        },
        tear: crash.tear_bytes,
        seed: crash.seed,
        then: match crash.then {
            ThenWord::GoOn => Then::GoesOn,
            ThenWord::Off => Then::Off,
            ThenWord::Restart => Then::Restart,
        },
    })
}

fn unfit(error: String) -> Refusal {
    Refusal::new(RefusalKind::Unprocessable, error)
}

/// The writes that a disk lost in a power cut, in the API's form.
pub(crate) fn crashed(disk: String, crash: &Crash, loss: Loss) -> Crashed {
    let client = |(client, lost)| ClientLoss {
        client,
        lost: write_sum(lost),
    };
    Crashed {
        disk,
        keep: crash.keep,
        tear_bytes: crash.tear_bytes,
        seed: crash.seed,
        then: crash.then,
        was_off: loss.was_off,
        unflushed: write_sum(loss.unflushed),
        lost: write_sum(loss.lost),
        torn: loss.torn,
        unacknowledged: loss.unacknowledged,
        early_bytes: loss.early_bytes,
        clients: loss.clients.into_iter().map(client).collect(),
        writes: loss
            .writes
            .into_iter()
            .map(lost_write)
            .take(crash.list)
            .collect(),
    }
}

/// The data that a pool lost in a power cut, in the API's form. `disks` has the names of the pool's disks.
pub(crate) fn pool_crashed(
    pool: String,
    disks: impl Iterator<Item = String>,
    crash: &Crash,
    loss: PoolLoss,
) -> PoolCrashed {
    let txg = |(txg, dirty_bytes)| LostTxg { txg, dirty_bytes };
    let mut asked = crash.clone();
    let disk = |(disk, loss)| {
        let crashed = crashed(disk, &asked, loss);
        asked.list -= crashed.writes.len();
        crashed
    };
    PoolCrashed {
        pool,
        keep: crash.keep,
        tear_bytes: crash.tear_bytes,
        seed: crash.seed,
        then: crash.then,
        was_off: loss.was_off,
        txgs: loss.txgs.into_iter().map(txg).collect(),
        disks: disks.zip(loss.disks).map(disk).collect(),
    }
}

fn write_sum(sum: Sum) -> WriteSum {
    WriteSum {
        writes: sum.writes,
        bytes: sum.bytes,
    }
}

fn lost_write(write: dashpot_export::LostWrite) -> LostWrite {
    LostWrite {
        client: write.client,
        offset_bytes: write.offset,
        length_bytes: write.length,
        missing_bytes: write.missing,
        age_ns: write.age.as_nanos(),
    }
}

/// The most lost writes that an answer lists.
const LIST_MAX: usize = 10_000;
