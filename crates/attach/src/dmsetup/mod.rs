//! `dmsetup`: makes slow devices, with the commands and tables of the device mapper's own tool.
//!
//! Each device has a daemon of its own with one disk. The disk is attached, and its node has a link in
//! `/dev/mapper`. The device's table becomes the rules of that disk. The state of a device is in a directory
//! below `/run`, where only root can write.

mod daemon;
mod mapped;
mod medium;
mod shown;

use std::fs::File;
use std::io::{self, Read};

use anyhow::{Context, bail};
use dashpot_api::{Client, Inject, Suspend};
use dashpot_cli::{DmAction, DmsetupArgs, TableArgs, With};
use dashpot_export::reclaim;
use dashpot_rules::dm::{Table, Word, parse_table};
use dashpot_sources::Stop;

use self::mapped::Mapped;
use crate::attach::{AttachRequest, attach_disk};
use crate::detach::{Fails, detach_all_of};
use crate::stale::clean_quietly;
use crate::tool::check_root;

/// Runs `dmsetup`: makes, shows, changes or removes devices that outlive their command.
///
/// # Errors
///
/// Fails if the caller is not root, if the table cannot be read, or if the kernel refuses a device.
pub fn dmsetup(args: &DmsetupArgs) -> anyhow::Result<()> {
    check_root("dmsetup")?;
    match &args.action {
        DmAction::Create { name, table } => create(name, &read_table(table)?),
        DmAction::Reload { name, table } => reload(name, &read_table(table)?),
        DmAction::Suspend { name } => suspend(&Mapped::find(name)?),
        DmAction::Resume { name } => resume(Mapped::find(name)?),
        DmAction::Remove { name, force } => remove(Mapped::find_any(name)?, *force),
        DmAction::Table { name, inactive } => shown::table(name.as_deref(), *inactive),
        DmAction::Status { name } => shown::status(name.as_deref()),
        DmAction::Info { name } => shown::info(name.as_deref()),
        DmAction::Ls => shown::ls(),
    }
}

fn read_table(args: &TableArgs) -> anyhow::Result<Table> {
    let text = match (&args.table, &args.file) {
        (Some(line), _) => line.clone(),
        (None, Some(file)) => {
            let read = File::open(file).and_then(read_to_end);
            read.with_context(|| format!("the table cannot be read from {}", file.display()))?
        }
        (None, None) => read_to_end(io::stdin().lock())
            .context("the table cannot be read from standard input; --table LINE gives it")?,
    };
    Ok(parse_table(&text)?)
}

fn read_to_end(from: impl Read) -> io::Result<String> {
    let mut text = String::new();
    from.take(LONGEST).read_to_string(&mut text)?;
    Ok(text)
}

/// Makes a device. Leaves nothing behind if a step fails.
fn create(name: &str, table: &Table) -> anyhow::Result<()> {
    let stop = Stop::new()?;
    let medium = medium::resolve(table)?;
    let mut new = Mapped::new(name, &medium.table, &medium.store)?;
    // Protect this process before the daemon starts: the daemon inherits the protection, and locks its memory
    // when it receives the device.
    reclaim::protect();
    new.start(table, &|| stop.is_set())?;
    let client = new.client()?;
    let wish = AttachRequest {
        disk: name,
        with: With::Auto,
        linked: false,
    };
    let attached = attach_disk(&client, &wish, || stop.is_set())?;
    new.node = attached.node.clone();
    // By now, the kernel has read the new device, so the rules do not delay that read. The device has no link
    // yet, so no program finds it before its rules are armed.
    arm(&client, name, &medium.table)?;
    new.publish()?;
    attached.say_lacks();
    Ok(())
}

/// Keeps an inactive table, which `resume` makes active.
fn reload(name: &str, table: &Table) -> anyhow::Result<()> {
    let mut mapped = Mapped::find(name)?;
    let medium = medium::resolve(table)?;
    let live = &mapped.table()?;
    if medium.table.sectors != live.sectors {
        let why = format!("{name} has {} sectors: write that", live.sectors);
        bail!(table.refuse(Word::Sectors, &why));
    }
    if medium.table.medium().is_some() && medium.store != mapped.state.store {
        let why = format!(
            "{name} is on {}, not on this device: remove {name} and create it anew",
            mapped.state.store
        );
        bail!(table.refuse(Word::Device, &why));
    }
    let (start, asked) = (mapped.state.start, medium.table.start());
    if medium.table.medium().is_some() && asked != start {
        let why = format!(
            "{name} begins at sector {start} of {}: remove {name} and create it anew",
            mapped.state.store
        );
        bail!(table.refuse(Word::Start, &why));
    }
    mapped.state.inactive = Some(medium.table.to_string());
    mapped.write()
}

/// Suspends a device, and waits until no I/O is in flight. dm-delay would release this I/O at once, but
/// dashpot ends no I/O early.
fn suspend(mapped: &Mapped) -> anyhow::Result<()> {
    let waits = Suspend {
        for_ns: None,
        now: false,
    };
    mapped.client()?.suspend(&mapped.name, &waits)?;
    Ok(())
}

/// Makes the inactive table active. The disk is suspended while its rules change, so that no I/O sees a
/// mixture of both tables.
fn resume(mut mapped: Mapped) -> anyhow::Result<()> {
    let (client, name) = (mapped.client()?, mapped.name.clone());
    if let Some(line) = mapped.state.inactive.take() {
        let table = parse_table(&line)?;
        let at_once = Suspend {
            for_ns: None,
            now: true,
        };
        client.suspend(&name, &at_once)?;
        client.clear_disk(&name, false)?;
        arm(&client, &name, &table)?;
        mapped.state.live = line;
        mapped.write()?;
    }
    if client.disk(&name, 0)?.suspended.is_some() {
        client.resume(&name)?;
    }
    Ok(())
}

fn arm(client: &Client, disk: &str, table: &Table) -> anyhow::Result<()> {
    for (name, words) in table.rules() {
        let rule = Inject {
            rule: words,
            name: Some(name.to_owned()),
            pool: None,
        };
        client.inject(disk, &rule)?;
    }
    Ok(())
}

/// Removes a device that is not in use, or the remains of a device.
fn remove(mapped: Mapped, force: bool) -> anyhow::Result<()> {
    if mapped.is_alive() {
        // The daemon has no other device. A killed `create` may not have noted the node, so detach all nodes.
        let fails = Fails::when(force, "--force");
        let detached = detach_all_of(&mapped.client()?, fails);
        detached.with_context(|| format!("{} stays", mapped.name))?;
    }
    mapped.remove()?;
    clean_quietly();
    Ok(())
}

/// How many bytes of a table dashpot reads at most. A table of one line is always shorter.
const LONGEST: u64 = 64 << 10;
