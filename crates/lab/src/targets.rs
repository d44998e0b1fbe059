//! The possible targets of a workload or a trace: disks and volumes.

use dashpot_rules::ParseError;
use dashpot_sim::scenario::Target;

use crate::place::place_of;

/// The possible targets of a workload, with sizes.
pub(crate) struct Targets<'a> {
    /// Disks, with the pool of each.
    pub(crate) disks: Vec<(&'a str, u64, Option<&'a str>)>,
    pub(crate) volumes: Vec<(&'a str, u64)>,
}

impl Targets<'_> {
    /// Finds a disk or a volume by its name, and returns it with its size.
    pub(crate) fn find(&self, name: &str) -> Result<(Target, u64), ParseError> {
        let taken = self.disks.iter().find(|disk| disk.0 == name);
        if let Some((_, _, Some(pool))) = taken {
            return Err(ParseError::new(format!(
                "disk '{name}' belongs to pool '{pool}', which writes it; name one of the pool's \
                 volumes"
            )));
        }
        let volumes = self.volumes.iter().enumerate();
        let volumes = volumes.map(|(at, volume)| (volume.0, Target::Volume(at), volume.1));
        let lone = self
            .disks
            .iter()
            .enumerate()
            .filter(|(_, disk)| disk.2.is_none());
        let lone = lone.map(|(at, disk)| (disk.0, Target::Disk(at), disk.1));
        let known: Vec<(&str, Target, u64)> = volumes.chain(lone).collect();
        let names: Vec<&str> = known.iter().map(|known| known.0).collect();
        let (_, target, size) = known[place_of("target", name, &names)?];
        Ok((target, size))
    }
}
