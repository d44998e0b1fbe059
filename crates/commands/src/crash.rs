//! `crash`: cuts the power of disks and pools, and lists the lost writes.

use std::collections::{BTreeMap, BTreeSet};

use crate::failed::check_failures;
use anyhow::bail;
use dashpot_api::{
    Client, ClientError, Crash, Crashed, Export, Failure, PoolCrashed, ThenWord, random_number,
};
use dashpot_cli::CrashArgs;
use dashpot_export::complain;
use dashpot_output::screen::room;
use dashpot_output::{print, print_json};
use dashpot_rules::remedy_for;
use dashpot_text::crash::{pool_text, text};
use serde::Serialize;

/// The target of a power cut.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Hit {
    Disk(String),
    Pool(String),
}

/// The lost writes of a disk or of a pool.
#[derive(Serialize)]
#[serde(untagged)]
enum Lost {
    Disk(Crashed),
    Pool(PoolCrashed),
}

/// Cuts the power of disks or pools, and prints what was lost.
pub fn crash(client: &Client, args: &CrashArgs) -> anyhow::Result<()> {
    let hits = match args.target.as_str() {
        "all" => all_lossy(client)?,
        name => vec![hit(client, name)?],
    };
    let seed = args.seed.map_or_else(random_seed, Ok)?;
    let (mut lost, mut failed) = (Vec::new(), Vec::new());
    for (at, hit) in hits.iter().enumerate() {
        // Disks with equal content should lose different writes.
        let request = request(args, seed.wrapping_add(at as u64));
        match hit.cut(client, &request) {
            Ok(one) => lost.push(one),
            Err(error) if args.target == "all" => failed.push(Failure {
                disk: hit.name().to_owned(),
                error: error.to_string(),
            }),
            Err(error) => return Err(error.into()),
        }
    }
    if args.json {
        print_json(&lost)?;
    } else {
        let texts = lost.iter().map(|one| match one {
            Lost::Disk(crashed) => text(room(false), crashed, args.top),
            Lost::Pool(crashed) => pool_text(room(false), crashed, args.top),
        });
        let texts: Vec<String> = texts.collect();
        print(&texts.join("\n"))?;
    }
    check_failures(&failed)
}

impl Hit {
    fn name(&self) -> &str {
        match self {
            Hit::Disk(name) | Hit::Pool(name) => name,
        }
    }

    fn cut(&self, client: &Client, request: &Crash) -> Result<Lost, ClientError> {
        match self {
            Hit::Disk(name) => client.crash(name, request).map(Lost::Disk),
            Hit::Pool(name) => client.crash_pool(name, request).map(Lost::Pool),
        }
    }
}

/// The disk or the pool whose power is cut if the user names `name`. A volume loses power with its pool. A
/// pool loses power as a whole, so a disk of a pool cannot lose power alone.
fn hit(client: &Client, name: &str) -> anyhow::Result<Hit> {
    let exports = client.exports()?;
    if exports
        .iter()
        .any(|export| export.pool.as_deref() == Some(name))
    {
        return Ok(Hit::Pool(name.to_owned()));
    }
    let Some(export) = exports.iter().find(|export| export.name == name) else {
        bail!(
            "no disk, volume or pool '{name}': {}",
            remedy_for(name, &names(&exports))
        );
    };
    let Some(pool) = export.pool.clone() else {
        return Ok(Hit::Disk(name.to_owned()));
    };
    complain(format_args!(
        "dashpot: {name} is of pool {pool}, whose power is cut as a whole"
    ));
    Ok(Hit::Pool(pool))
}

/// The names that `crash` accepts, with the names of pools last.
fn names(exports: &[Export]) -> Vec<&str> {
    let own = exports.iter().map(|export| export.name.as_str());
    let pools: BTreeSet<&str> = exports
        .iter()
        .filter_map(|export| export.pool.as_deref())
        .collect();
    own.chain(pools).collect()
}

fn request(args: &CrashArgs, seed: u64) -> Crash {
    Crash {
        keep: args.keep,
        tear_bytes: args.tear,
        seed,
        then: match (args.off, args.restart) {
            (true, _) => ThenWord::Off,
            (_, true) => ThenWord::Restart,
            _ => ThenWord::GoOn,
        },
        list: args.top,
    }
}

/// The disks with a lossy store that are in no pool, and the pools whose disks all have a lossy store. A
/// message on stderr names the disks and pools that are left out.
fn all_lossy(client: &Client) -> anyhow::Result<Vec<Hit>> {
    let mut are_lossy: BTreeMap<Hit, bool> = BTreeMap::new();
    for export in client.exports()? {
        let Some(store) = export.store else {
            continue;
        };
        let hit = export.pool.map_or(Hit::Disk(export.name), Hit::Pool);
        *are_lossy.entry(hit).or_insert(true) &= store.starts_with("lossy:");
    }
    let (hits, others): (Vec<_>, Vec<_>) = are_lossy.into_iter().partition(|(_, lossy)| *lossy);
    let hits: Vec<Hit> = hits.into_iter().map(|(hit, _)| hit).collect();
    let others: Vec<&str> = others.iter().map(|(hit, _)| hit.name()).collect();
    if hits.is_empty() {
        bail!(
            "no disk here loses anything in a power cut: serve one from lossy:ram or \
             lossy:file:PATH, as in `dashpot serve -d d=lossy:ram,size=1G`"
        );
    }
    if !others.is_empty() {
        complain(format_args!(
            "dashpot: not hit, because only a lossy store has a volatile cache: {}",
            others.join(", ")
        ));
    }
    Ok(hits)
}

/// A seed that is short enough for a user to type.
fn random_seed() -> anyhow::Result<u64> {
    Ok(random_number()? & u64::from(u32::MAX))
}
