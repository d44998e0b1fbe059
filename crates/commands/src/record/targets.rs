//! The targets of `record`: a daemon's disks, the kernel's disks, or both.

use std::collections::BTreeSet;

use dashpot_cli::reports::DeviceArgs;
use dashpot_cli::{RecordArgs, each_once};
use dashpot_observe::{Layer, Schedule};
use dashpot_output::usage;
use dashpot_rules::{ApiAddress, ParseError};
use dashpot_sources::{Axis, Owner, Target};

use super::part::{Part, layers};
use super::watching::check;

/// The targets of a recording.
pub(super) struct Targets {
    /// The kernel's disks if there are two targets; otherwise the only target.
    here: Target,
    /// A daemon's disks beside the kernel's.
    beside: Option<Target>,
}

impl Targets {
    /// Finds the disks that the user names. If `--disk` names a daemon's disks, `-d` and `-k` mean the
    /// kernel's.
    pub(super) fn find(api: Option<&ApiAddress>, args: &RecordArgs) -> anyhow::Result<Targets> {
        let RecordArgs { device, disks, .. } = args;
        if disks.is_empty() {
            return Ok(Targets {
                here: Target::find(api, device)?,
                beside: None,
            });
        }
        let daemon = Target::of_daemon(api, disks)?;
        if device.devices.is_empty() && !device.kernel {
            return Ok(Targets {
                here: daemon,
                beside: None,
            });
        }
        let device = DeviceArgs {
            kernel: true,
            ..device.clone()
        };
        Ok(Targets {
            here: Target::find(None, &device)?,
            beside: Some(daemon),
        })
    }

    /// The owners of these disks.
    pub(super) fn owners(&self) -> BTreeSet<Owner> {
        let targets = std::iter::once(&self.here).chain(&self.beside);
        targets.map(Target::owner).collect()
    }

    /// Ends the program if these layers cannot be recorded.
    pub(super) fn check(&self, asked: &[Layer]) {
        let asked = each_once(asked);
        let Some(daemon) = &self.beside else {
            return check(&self.here, &layers(&self.here, &asked));
        };
        let [of_kernel, of_daemon] = shared(&asked);
        check(daemon, &layers(daemon, &of_daemon));
        check(&self.here, &of_kernel);
    }

    /// Begins to watch the layers that the user asks for, or all layers.
    pub(super) fn watch(
        &mut self,
        asked: &[Layer],
        schedule: &Schedule,
    ) -> anyhow::Result<Vec<Part<'_>>> {
        let asked = each_once(asked);
        let Some(daemon) = self.beside.take() else {
            let layers = layers(&self.here, &asked);
            return Ok(vec![Part::here(&self.here, &layers, schedule)?]);
        };
        let [of_kernel, of_daemon] = shared(&asked);
        let of_daemon = layers(&daemon, &of_daemon);
        let ahead_ns = Axis::here().ahead_ns;
        // The threads that read the kernel's events have a higher priority, which a new thread would inherit,
        // so start the thread for the daemon first.
        let daemon = Part::apart(daemon, &of_daemon, schedule, ahead_ns)?;
        let kernel = Part::here(&self.here, &of_kernel, schedule)?;
        Ok(vec![kernel.beside(ahead_ns), daemon.beside(ahead_ns)])
    }
}

/// Divides the layers that the user asks for into those of the kernel's disks, under the names that their
/// source uses, and those of a daemon's disks.
fn shared(asked: &[Layer]) -> [Vec<Layer>; 2] {
    let (of_kernel, of_daemon): (Vec<Layer>, Vec<Layer>) = asked
        .iter()
        .partition(|layer| Owner::of(**layer) == Owner::Kernel);
    let missing = match (&of_kernel[..], &of_daemon[..]) {
        ([], [_, ..]) => Some("the kernel's disks: add kernel or fs, or leave out -d and -k"),
        ([_, ..], []) => Some("a daemon's disks: add disk or volume, or leave out --disk"),
        _ => None,
    };
    if let Some(missing) = missing {
        usage(&ParseError::new(format!(
            "--layer: this names no layer of {missing}"
        )));
    }
    let of_kernel = of_kernel.into_iter().map(|layer| match layer {
        Layer::Kernel => Layer::Disk,
        layer => layer,
    });
    let of_kernel = match asked {
        [] => vec![Layer::Disk],
        _ => of_kernel.collect(),
    };
    [of_kernel, of_daemon]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_layer_is_asked_of_its_owner() {
        assert_eq!(shared(&[]), [vec![Layer::Disk], vec![]]);
        let asked = [Layer::Volume, Layer::Kernel, Layer::Fs, Layer::Disk];
        let of_kernel = vec![Layer::Disk, Layer::Fs];
        assert_eq!(
            shared(&asked),
            [of_kernel, vec![Layer::Volume, Layer::Disk]]
        );
    }
}
