//! A device: its directory, its state and its link.

use std::fmt::Write;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use dashpot_api::Client;
use dashpot_rules::dm::{Table, Word, parse_table};
use dashpot_rules::{Address, parse_name};
use serde::{Deserialize, Serialize};

use super::daemon;
use super::medium::RAM;
use crate::attach::put_link;
use crate::place::cannot_make;
use crate::process::Process;

/// A device. Dropping a new device before it is [published](Mapped::publish) removes it.
#[derive(Debug)]
pub(super) struct Mapped {
    pub(super) name: String,
    /// The block device; empty before it is made.
    pub(super) node: String,
    /// The daemon that serves the device; `None` before the daemon runs.
    daemon: Option<Process>,
    pub(super) state: State,
    is_kept: bool,
}

/// The content of the state file in a device's directory.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct State {
    node: String,
    daemon: Option<Process>,
    /// The store of the device's disk.
    pub(super) store: String,
    /// The sector of the store at which the disk begins.
    #[serde(default)]
    pub(super) start: u64,
    /// The line of the active table.
    pub(super) live: String,
    /// The line of the table that `resume` will put in place.
    pub(super) inactive: Option<String>,
}

impl Mapped {
    /// Makes the directory of a new device.
    pub(super) fn new(name: &str, table: &Table, store: &str) -> anyhow::Result<Mapped> {
        parse_name(name)?;
        if name.contains('/') || name.starts_with('.') {
            bail!("'{name}' is not a name of a device: use no '/', and no '.' at the beginning");
        }
        if name == CONTROL {
            bail!("'{name}' is the device mapper's own node: choose another name");
        }
        let link = link(name);
        if fs::symlink_metadata(&link).is_ok() {
            bail!("{} exists: choose another name", link.display());
        }
        let cannot = |error| cannot_make(&directory(name), &error);
        let private = &mut DirBuilder::new();
        let private = private.mode(0o700);
        private.recursive(true).create(BASE).map_err(cannot)?;
        match private.recursive(false).create(directory(name)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => bail!(
                "{name} exists, or is left over from a daemon that is gone: 'dashpot dmsetup remove {name}' removes it"
            ),
            made => made.map_err(cannot)?,
        }
        let mapped = Mapped {
            name: name.to_owned(),
            node: String::new(),
            daemon: None,
            state: State {
                store: store.to_owned(),
                start: table.start(),
                live: table.to_string(),
                ..State::default()
            },
            is_kept: false,
        };
        mapped.write()?;
        Ok(mapped)
    }

    /// The device that `word` names: by its own name, or by the path of its link or its node.
    pub(super) fn find(word: &str) -> anyhow::Result<Mapped> {
        let found = Mapped::find_any(word)?;
        if !found.is_made() {
            bail!(
                "{word} is not complete yet, or its 'create' was killed: 'dashpot dmsetup remove {word}' removes it"
            );
        }
        Ok(found)
    }

    /// Like [`Mapped::find`], but also finds the remains of a killed `create`.
    pub(super) fn find_any(word: &str) -> anyhow::Result<Mapped> {
        let meant = |mapped: &Mapped| {
            let is_name = mapped.name == word || Path::new(word) == link(&mapped.name);
            is_name || mapped.present_node() == Some(word)
        };
        let all = Mapped::directories()?;
        all.into_iter().find(meant).ok_or_else(|| {
            anyhow!("there is no device '{word}': 'dashpot dmsetup ls' lists those of dashpot")
        })
    }

    /// The devices, sorted by name.
    pub(super) fn all() -> anyhow::Result<Vec<Mapped>> {
        let all = Mapped::directories()?.into_iter();
        Ok(all.filter(Mapped::is_made).collect())
    }

    /// The node; `None` if the daemon is gone, because by now the node may belong to another device.
    pub(super) fn present_node(&self) -> Option<&str> {
        self.is_alive().then_some(self.node.as_str())
    }

    /// Whether `create` has made the block device.
    fn is_made(&self) -> bool {
        !self.node.is_empty()
    }

    /// The devices, and the remains of killed `create` commands, sorted by name.
    fn directories() -> anyhow::Result<Vec<Mapped>> {
        let entries = match fs::read_dir(BASE) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.with_context(|| format!("cannot read {BASE}"))?,
        };
        let names = entries
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut all: Vec<Mapped> = names.map(Mapped::of).collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(all)
    }

    fn of(name: String) -> Mapped {
        let home = directory(&name);
        let text = fs::read_to_string(home.join(STATE)).unwrap_or_default();
        let state: State = serde_json::from_str(&text).unwrap_or_default();
        // A `create` may have been killed before it wrote down which daemon it had started.
        let daemon = state.daemon.or_else(|| daemon::running(&home));
        Mapped {
            node: state.node.clone(),
            daemon,
            name,
            state,
            is_kept: true,
        }
    }

    /// Makes the link of the device, and lets the device outlive this value.
    pub(super) fn publish(mut self) -> anyhow::Result<()> {
        self.write()?;
        put_link(&self.node, &link(&self.name))?;
        self.is_kept = true;
        Ok(())
    }

    /// Writes the state of the device. A reader finds either the whole new state or the whole former state.
    pub(super) fn write(&self) -> anyhow::Result<()> {
        let state = State {
            node: self.node.clone(),
            daemon: self.daemon,
            ..self.state.clone()
        };
        let (unnamed, named) = (self.path("state.new"), self.path(STATE));
        fs::write(&unnamed, serde_json::to_vec(&state)?)
            .and_then(|()| fs::rename(&unnamed, &named))
            .with_context(|| format!("cannot write {}", named.display()))
    }

    /// Ends the device's daemon, and removes the link and the directory. Call this function only when no
    /// program uses the device any longer.
    pub(super) fn remove(self) -> anyhow::Result<()> {
        if let Some(daemon) = self.daemon {
            daemon::end(daemon)?;
        }
        let link = link(&self.name);
        if fs::read_link(&link).is_ok() {
            fs::remove_file(&link).with_context(|| format!("cannot remove {}", link.display()))?;
        }
        let directory = directory(&self.name);
        fs::remove_dir_all(&directory)
            .with_context(|| format!("cannot remove {}", directory.display()))
    }

    pub(super) fn table(&self) -> anyhow::Result<Table> {
        Ok(parse_table(&self.state.live)?)
    }

    /// Starts the device's daemon. If the daemon cannot use its disk, the error names the word of the table
    /// that is at fault.
    pub(super) fn start(
        &mut self,
        table: &Table,
        is_stopped: &dyn Fn() -> bool,
    ) -> anyhow::Result<()> {
        let home = directory(&self.name);
        let started = daemon::start(&home, &self.lab()?, is_stopped)?;
        let started = started.map_err(|why| self.not_started(table, &why))?;
        self.daemon = Some(started);
        // Write down the daemon, so that `remove` knows which daemon to end if this command is killed.
        self.write()
    }

    /// The error if a daemon ended at once. If the daemon's message is about the device or the size of the
    /// disk, the error names the corresponding word of the table.
    fn not_started(&self, table: &Table, why: &str) -> anyhow::Error {
        match why.strip_prefix(&format!("disk `{}`: ", self.name)) {
            Some(why) => anyhow!(table.refuse(Word::Device, why)),
            None if why.starts_with("RAM disks of ") => anyhow!(table.refuse(Word::Sectors, why)),
            None => anyhow!("{why}"),
        }
    }

    /// The lab of the device's daemon: one disk, without rules yet.
    fn lab(&self) -> anyhow::Result<String> {
        let bytes = self.table()?.sectors * SECTOR;
        // A JSON string is also a TOML string.
        let word = |text: &str| serde_json::to_string(text);
        let (name, store) = (word(&self.name)?, word(&self.state.store)?);
        let mut lab = format!("[disk.{name}]\nstore = {store}\nsize = \"{bytes}\"\n");
        // A store in memory has no bytes before the start of the disk, so it accepts no offset.
        if self.state.start > 0 && self.state.store != RAM {
            let offset = self.state.start * SECTOR;
            writeln!(lab, "offset = \"{offset}\"")?;
        }
        Ok(lab)
    }

    pub(super) fn is_alive(&self) -> bool {
        self.daemon.is_some_and(Process::is_alive)
    }

    /// A client of the device's daemon.
    pub(super) fn client(&self) -> anyhow::Result<Client> {
        if !self.is_alive() {
            let name = &self.name;
            bail!(
                "the daemon of {name} is gone: 'dashpot dmsetup remove {name}' removes what is left"
            );
        }
        Client::at(Address::Unix(self.path("api.sock")), None)
    }

    /// The path of a file in the device's directory.
    fn path(&self, file: &str) -> PathBuf {
        directory(&self.name).join(file)
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        if let (Ok(client), false) = (self.client(), self.node.is_empty()) {
            // If this fails, `dmsetup remove` can still remove the rest of the device.
            let _ = crate::detach::detach_own(&client, &self.node);
        }
        if let Some(daemon) = self.daemon {
            let _ = daemon::end(daemon);
        }
        let _ = fs::remove_dir_all(directory(&self.name));
    }
}

fn directory(name: &str) -> PathBuf {
    Path::new(BASE).join(name)
}

/// The link to the node of a device.
fn link(name: &str) -> PathBuf {
    Path::new(LINKS).join(name)
}

const BASE: &str = "/run/dashpot-mapped";
const LINKS: &str = "/dev/mapper";
/// The node through which programs control the kernel's device mapper.
const CONTROL: &str = "control";
const STATE: &str = "state";
const SECTOR: u64 = 512;
