//! `crash`: cuts the power of disks, and lists the lost writes.

use anyhow::bail;
use dashpot_api::{Client, Crash, Disk, Failure, ThenWord};
use dashpot_export::complain;
use dashpot_report::crash::text;

use super::failed::check;
use super::output::{print, print_json};
use super::screen::room;
use crate::cli::CrashArgs;

pub(crate) fn crash(client: &Client, args: &CrashArgs) -> anyhow::Result<()> {
    let disks = match args.target.as_str() {
        "all" => lossy_disks(client)?,
        disk => vec![disk.to_owned()],
    };
    let seed = args.seed.map_or_else(random_seed, Ok)?;
    let (mut crashed, mut failed) = (Vec::new(), Vec::new());
    for (at, disk) in disks.into_iter().enumerate() {
        // Disks with equal content should lose different writes.
        let request = request(args, seed.wrapping_add(at as u64));
        match client.crash(&disk, &request) {
            Ok(one) => crashed.push(one),
            Err(error) if args.target == "all" => failed.push(Failure {
                disk,
                error: error.to_string(),
            }),
            Err(error) => return Err(error.into()),
        }
    }
    if args.json {
        print_json(&crashed)?;
    } else {
        let texts = crashed.iter().map(|one| text(room(false), one, args.top));
        let texts: Vec<String> = texts.collect();
        print(&texts.join("\n"))?;
    }
    check(&failed)
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

/// The disks with a lossy store. Names the others on stderr.
fn lossy_disks(client: &Client) -> anyhow::Result<Vec<String>> {
    let disks = client.disks()?;
    let (lossy, others): (Vec<Disk>, Vec<Disk>) = disks
        .into_iter()
        .partition(|disk| disk.store.starts_with("lossy:"));
    if lossy.is_empty() {
        bail!(
            "no disk here loses anything in a power cut: serve one from lossy:ram or \
             lossy:file:PATH, as in `dashpot serve -d d=lossy:ram,size=1G`"
        );
    }
    let others: Vec<String> = others.into_iter().map(|disk| disk.name).collect();
    if !others.is_empty() {
        complain(format_args!(
            "dashpot: not hit, because only a lossy store has a volatile cache: {}",
            others.join(", ")
        ));
    }
    Ok(lossy.into_iter().map(|disk| disk.name).collect())
}

/// A seed that is short enough to type.
fn random_seed() -> anyhow::Result<u64> {
    let seed = getrandom::u32().map(u64::from);
    seed.map_err(|error| anyhow::anyhow!("no randomness from the kernel: {error}"))
}
