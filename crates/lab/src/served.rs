//! The disks that a daemon serves, and its settings.

use dashpot_rules::{
    DiskConfig, DiskInjection, Injection, Listen, ParseError, PoolSpec, StoreConfig, VolumeSpec,
    remedy_for,
};

/// The disks and settings of one daemon.
#[derive(Clone, Debug, Default)]
pub struct Lab {
    /// The disks, at least one, in the order in which they were named.
    pub disks: Vec<LabDisk>,
    /// The pools made of the disks.
    pub pools: Vec<PoolSpec>,
    /// The volumes carved from the pools.
    pub volumes: Vec<VolumeSpec>,
    /// The address for NBD clients; empty for the default.
    pub nbd: Vec<Listen>,
    /// The address of the API; `None` for the default.
    pub api: Option<Listen>,
    /// The address of the metrics; `None` if there are none.
    pub metrics: Option<Listen>,
    /// The number of shards; `None` for the default.
    pub shards: Option<usize>,
    /// The memory for finished zios in bytes; `None` for the default.
    pub events: Option<u64>,
}

/// A disk, and the rules that are armed on it at the start.
#[derive(Clone, Debug)]
pub struct LabDisk {
    /// The name, the store and the size of the disk.
    pub config: DiskConfig,
    /// The rules of each injection are a group, as if one call of `inject` had armed them.
    pub injections: Vec<Injection>,
}

impl Lab {
    pub(crate) fn add_disk(&mut self, config: &DiskConfig) -> Result<(), ParseError> {
        if self.names().any(|name| name == config.name) {
            return Err(ParseError::new(format!(
                "-d {}: there is a disk with this name already; choose another",
                config.name
            )));
        }
        self.disks.push(LabDisk {
            config: config.clone(),
            injections: Vec::new(),
        });
        Ok(())
    }

    pub(crate) fn add_rule(&mut self, rule: &DiskInjection) -> Result<(), ParseError> {
        let disk = match (&rule.disk, self.disks.as_mut_slice()) {
            (None, [only]) => only,
            (None, _) => {
                return Err(ParseError::new(format!(
                    "-r {}: the lab has several disks; put one's name first",
                    rule.injection.rules[0].words
                )));
            }
            (Some(name), _) => self.disk_named(name)?,
        };
        disk.injections.push(rule.injection.clone());
        Ok(())
    }

    fn disk_named(&mut self, name: &str) -> Result<&mut LabDisk, ParseError> {
        let Some(at) = self.names().position(|known| known == name) else {
            let known: Vec<&str> = self.names().collect();
            return Err(unknown("-r", "disk", name, &known));
        };
        Ok(&mut self.disks[at])
    }

    /// Whether the lab has a disk whose I/Os are the calls of a program.
    pub fn follows_program(&self) -> bool {
        self.program_disk().is_some()
    }

    /// The first path disk: its I/Os are a program's calls on files.
    pub fn program_disk(&self) -> Option<&DiskConfig> {
        let mut disks = self.disks.iter().map(|disk| &disk.config);
        disks.find(|disk| matches!(disk.store, StoreConfig::Path(_)))
    }

    /// Whether a disk or a volume can be a block device.
    pub fn can_be_attached(&self) -> bool {
        let is_device = |at: usize, disk: &LabDisk| {
            self.pool_of(at).is_none() && !matches!(disk.config.store, StoreConfig::Path(_))
        };
        let mut disks = self.disks.iter().enumerate();
        !self.volumes.is_empty() || disks.any(|(at, disk)| is_device(at, disk))
    }

    /// Refuses a name of `--attach` unless it is a disk or a volume that can be a block device.
    pub fn check_attached(&self, name: &str) -> Result<(), ParseError> {
        let refused = |why: String| Err(ParseError::new(format!("--attach {name}: {why}")));
        if let Some(pool) = self.pools.iter().position(|pool| pool.name == name) {
            return refused(format!("that is a pool; {}", self.volumes_of(pool)));
        }
        if let Some(at) = self.names().position(|disk| disk == name) {
            if let Some(pool) = self.pool_of(at) {
                let (volumes, pool) = (self.volumes_of(pool), &self.pools[pool].name);
                return refused(format!("that disk belongs to pool '{pool}'; {volumes}"));
            }
            if matches!(self.disks[at].config.store, StoreConfig::Path(_)) {
                return refused("that disk is the files of a program; leave it out".to_owned());
            }
            return Ok(());
        }
        let lone = self.names().enumerate();
        let lone = lone.filter(|(at, _)| self.pool_of(*at).is_none());
        let volumes = self.volumes.iter().map(|volume| volume.name.as_str());
        let known: Vec<&str> = lone.map(|(_, disk)| disk).chain(volumes).collect();
        match known.contains(&name) {
            true => Ok(()),
            false if self.volumes.is_empty() => Err(unknown("--attach", "disk", name, &known)),
            false => Err(unknown("--attach", "disk or volume", name, &known)),
        }
    }

    /// The pool that a disk belongs to.
    fn pool_of(&self, disk: usize) -> Option<usize> {
        let mut pools = self.pools.iter();
        pools.position(|pool| pool.disks().any(|at| at == disk))
    }

    /// The remedy if the user has named a pool instead of a disk or a volume.
    fn volumes_of(&self, pool: usize) -> String {
        let volumes = self.volumes.iter().filter(|volume| volume.pool == pool);
        let names: Vec<&str> = volumes.map(|volume| volume.name.as_str()).collect();
        match names.as_slice() {
            [] => "give it a volume, and name that".to_owned(),
            names => format!("name a volume of it: {}", names.join(", ")),
        }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.disks.iter().map(|disk| disk.config.name.as_str())
    }
}

/// The error for a name that an option gives, with the remedy.
fn unknown(option: &str, what: &str, name: &str, known: &[&str]) -> ParseError {
    let remedy = remedy_for(name, known);
    ParseError::new(format!(
        "{option} {name}: there is no such {what}; {remedy}"
    ))
}
