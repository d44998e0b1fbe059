//! The state of a lab at the time of a change, as far as the next changes depend on it.

use dashpot_daemon::Registry;
use dashpot_engine::inject::RuleId;
use dashpot_engine::pool::Tunables;
use dashpot_engine::{Command, DiskId};
use dashpot_rules::{Injection, ParseError};
use dashpot_sim::scenario::DiskSpec;

use crate::check_range;
use crate::place::place_of;

/// The state of a lab.
pub(crate) struct State<'a> {
    pub(crate) disks: &'a [DiskSpec],
    pub(crate) disk_names: Vec<&'a str>,
    pub(crate) pool_names: Vec<&'a str>,
    /// The tunables of each pool.
    pub(crate) tunables: Vec<Tunables>,
    /// The rules that are armed.
    pub(crate) registry: Registry,
    pub(crate) ever_armed: &'a mut Registry,
}

impl State<'_> {
    /// The command that arms rules on a disk, and their ids.
    pub(crate) fn arm(
        &mut self,
        disk: usize,
        injection: Injection,
    ) -> Result<(Option<Command>, Vec<RuleId>), ParseError> {
        let DiskSpec { name, size, .. } = &self.disks[disk];
        check_range(&injection, name, *size)?;
        let plan = self.registry.plan(disk, injection, None);
        let plan = plan.map_err(|refusal| ParseError::new(refusal.to_string()))?;
        let inject = plan.group().map(|group| Command::Inject {
            disk: DiskId(disk as u32),
            group,
            rules: plan.rules(),
        });
        let ids = plan.records.iter().map(|record| record.id).collect();
        self.ever_armed.commit(plan.clone());
        self.registry.commit(plan);
        Ok((inject, ids))
    }

    pub(crate) fn disk_id(&self, name: &str) -> Result<DiskId, ParseError> {
        Ok(DiskId(self.disk(name)? as u32))
    }

    pub(crate) fn disk(&self, name: &str) -> Result<usize, ParseError> {
        place_of("disk", name, &self.disk_names)
    }
}
