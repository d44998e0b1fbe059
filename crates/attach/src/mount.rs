//! `mount`: attaches a disk, and mounts the file system on it.

use std::cell::Cell;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, bail};
use dashpot_api::Client;
use dashpot_cli::{FileSystem, MountArgs};
use dashpot_export::complain;
use dashpot_output::print;
use dashpot_sources::Stop;

use crate::attach::{AttachRequest, UNSAID, attach_disk, told};
use crate::detach::detach_own;
use crate::exported::Exported;
use crate::file_system::Manner;
use crate::tool::check_root;
use crate::{file_system, kinds};

/// Attaches a disk, and mounts the file system on it. Undoes all steps if one of them fails.
pub fn mount(client: &Client, args: &MountArgs) -> anyhow::Result<()> {
    check_root("mount")?;
    let stop = Stop::new()?;
    let is_stopped = || stop.is_set();
    file_system::directory(&args.directory)?;
    check_kind(args)?;
    let exported = Exported::find(client, &args.disk)?;
    let words = exported.words();
    if args.mkfs && exported.served.read_only {
        bail!("--mkfs: {words} is read-only");
    }
    let attached = attach_disk(
        client,
        &AttachRequest::of(&args.disk, args.with),
        is_stopped,
    )?;
    let node = &attached.node;
    if let Err(error) = mount_node(client, (node, &words), args, &is_stopped) {
        if attached.took_over.is_none() {
            detach_own(client, node)?;
        }
        return Err(error);
    }
    attached.explain();
    told(client, &attached, print(&format!("{node}\n")))
}

/// Refuses a kind of file system that this host cannot make or mount, before `mount` makes anything.
fn check_kind(args: &MountArgs) -> anyhow::Result<()> {
    if args.mkfs {
        kinds::check_made(&args.fs.clone().unwrap_or_default())?;
    }
    args.fs.as_ref().map_or(Ok(()), kinds::check_mounted)
}

fn mount_node(
    client: &Client,
    (node, words): (&str, &str),
    args: &MountArgs,
    is_stopped: &dyn Fn() -> bool,
) -> anyhow::Result<()> {
    if file_system::is_mounted(node, &args.directory) {
        // `attach` took over the device with its mounted file system.
        return Ok(());
    }
    file_system::check_free(&args.directory)?;
    let gives_up = &says_that_it_waits(node, is_stopped);
    if args.mkfs {
        let kind = args.fs.clone().unwrap_or_default();
        file_system::make(client, node, &kind, gives_up)?;
        file_system::mount(node, &args.directory, manner(args), gives_up)?;
    } else {
        mount_found(client, (node, words), args, gives_up)?;
    }
    if is_stopped() {
        bail!("interrupted: nothing is attached")
    } else {
        Ok(())
    }
}

fn manner(args: &MountArgs) -> Manner<'_> {
    Manner {
        kind: args.fs.as_ref(),
        options: args.options.as_deref(),
    }
}

/// Mounts the file system that the disk has.
fn mount_found(
    client: &Client,
    (node, words): (&str, &str),
    args: &MountArgs,
    is_stopped: &dyn Fn() -> bool,
) -> anyhow::Result<()> {
    let Some(found) = file_system::found_on(client, node, is_stopped)? else {
        bail!("{words} has no file system: --mkfs makes one");
    };
    let mounted = file_system::mount(node, &args.directory, manner(args), is_stopped);
    match &args.fs {
        Some(kind) if kind.name() != found => mounted
            .with_context(|| format!("--fs {}: {words} has {found}; leave --fs out", kind.name())),
        _ => mounted,
    }
}

/// Mounts the file system of an attached node. First makes a file system if the disk is empty, and
/// returns whether it made one.
pub(crate) fn mount_for_run(
    client: &Client,
    node: &str,
    at: &Path,
    is_stopped: &dyn Fn() -> bool,
) -> anyhow::Result<bool> {
    if file_system::is_mounted(node, at) {
        return Ok(false);
    }
    file_system::check_free(at)?;
    let gives_up = &says_that_it_waits(node, is_stopped);
    let is_new = file_system::found_on(client, node, gives_up)?.is_none();
    if is_new {
        file_system::make(client, node, &FileSystem::default(), gives_up)?;
    }
    file_system::mount(node, at, Manner::default(), gives_up)?;
    Ok(is_new)
}

/// Wraps `is_stopped` in a function that also prints, once, that mounting takes long. Rules may hold the I/Os
/// of mounting.
fn says_that_it_waits<'a>(
    node: &'a str,
    is_stopped: &'a dyn Fn() -> bool,
) -> impl Fn() -> bool + 'a {
    let (begun, has_said) = (Instant::now(), Cell::new(false));
    move || {
        if begun.elapsed() >= UNSAID && !has_said.replace(true) {
            complain(format_args!(
                "dashpot: {node} is not mounted yet: mounting waits for its I/O, and so for its rules; Ctrl-C gives up"
            ));
        }
        is_stopped()
    }
}
