//! The part of a recording that has the disks of one owner: the kernel, or a daemon. A recording of
//! both owners has two such parts.

use dashpot_observe::{FinishedIo, Layer, Schedule, Seen};
use dashpot_sources::{KERNEL_DISK, KERNEL_FS, Owner, Source, Target};

use super::apart::Apart;
use super::changes::{Change, Changes};
use super::watching::{in_flight, next, put_on, sources};

/// The disks of one owner that are recorded.
pub(super) struct Part<'a> {
    pub(super) owner: Owner,
    /// Whether the recording has the disks of another owner, too.
    pub(super) is_beside: bool,
    /// The part's times are on the clock that both owners share, and may be off by up to this many
    /// nanoseconds.
    pub(super) off_ns: u64,
    /// The names of the devices, by layer.
    devices: Vec<(Layer, Vec<String>)>,
    watch: Watch<'a>,
    /// Whether the watch of this part is over.
    pub(super) has_ended: bool,
    /// Whether the part has failed and the recording goes on without it.
    pub(super) is_left: bool,
}

/// How the disks are watched.
enum Watch<'a> {
    /// By the thread that records.
    Here {
        sources: Vec<Box<dyn Source + 'a>>,
        changes: Changes<'a>,
    },
    /// By a thread of its own.
    Apart(Apart),
}

impl<'a> Part<'a> {
    /// Begins to watch disks in the calling thread.
    pub(super) fn here(
        target: &'a Target,
        layers: &[Layer],
        schedule: &Schedule,
    ) -> anyhow::Result<Part<'a>> {
        Ok(Part {
            owner: target.owner(),
            is_beside: false,
            off_ns: 0,
            devices: names(target, layers),
            watch: Watch::Here {
                sources: sources(target, layers, schedule)?,
                changes: Changes::of(target),
            },
            has_ended: false,
            is_left: false,
        })
    }

    /// Begins to watch disks in a thread of its own.
    pub(super) fn apart(
        target: Target,
        layers: &[Layer],
        schedule: &Schedule,
        ahead_ns: u64,
    ) -> anyhow::Result<Part<'a>> {
        Ok(Part {
            owner: target.owner(),
            is_beside: false,
            off_ns: 0,
            devices: names(&target, layers),
            watch: Watch::Apart(Apart::begin(target, layers, schedule, ahead_ns)?),
            has_ended: false,
            is_left: false,
        })
    }

    /// Makes this one of two parts, with its times on the clock that both parts share.
    pub(super) fn beside(mut self, ahead_ns: u64) -> Part<'a> {
        self.is_beside = true;
        self.off_ns = match &mut self.watch {
            Watch::Here { sources, .. } => put_on(sources, ahead_ns),
            Watch::Apart(apart) => apart.off_ns,
        };
        self
    }

    /// The names of the devices.
    pub(super) fn names(&self) -> Vec<String> {
        let names = self.devices.iter().flat_map(|(_, names)| names.clone());
        names.collect()
    }

    /// The devices, each with the word that a mark uses for its kind.
    pub(super) fn kinds(&self) -> impl Iterator<Item = (&str, &'static str)> {
        self.devices.iter().flat_map(|(layer, names)| {
            let kind = self.kind(*layer);
            names.iter().map(move |name| (&**name, kind))
        })
    }

    /// The kind of this part's devices at a layer of its source.
    pub(super) fn kind(&self, layer: Layer) -> &'static str {
        match (self.owner, layer) {
            (Owner::Kernel, Layer::Fs) => KERNEL_FS,
            (Owner::Kernel, _) if !self.is_beside => KERNEL_DISK,
            _ => self.stored(layer).word(),
        }
    }

    /// The layer at which the recording stores the I/Os that the source has at `layer`. A disk of the kernel
    /// and a disk of a daemon may have the same name, so they are at different layers.
    pub(super) fn stored(&self, layer: Layer) -> Layer {
        match (self.owner, layer) {
            (Owner::Kernel, Layer::Disk) if self.is_beside => Layer::Kernel,
            _ => layer,
        }
    }

    /// Passes to `take` what was seen since the last call of `next`, with the layers of the source. Returns
    /// whether the watch goes on.
    pub(super) fn next(&mut self, take: &mut dyn FnMut(Seen)) -> anyhow::Result<bool> {
        match &mut self.watch {
            Watch::Here { sources, .. } => next(sources, take),
            Watch::Apart(apart) => apart.next(take),
        }
    }

    /// The changes of rules and disks since the last call.
    pub(super) fn changes(&mut self) -> Vec<Change> {
        match &mut self.watch {
            Watch::Here { changes, .. } => changes.news(),
            Watch::Apart(apart) => apart.changes(),
        }
    }

    /// The I/Os in flight, with the layers of the recording; `None` if they are not known.
    pub(super) fn in_flight(&mut self) -> Option<Vec<FinishedIo>> {
        let mut ios = match &mut self.watch {
            Watch::Here { sources, .. } => in_flight(sources),
            Watch::Apart(apart) => apart.in_flight(),
        }?;
        for io in &mut ios {
            io.layer = self.stored(io.layer);
        }
        Some(ios)
    }

    /// Ends the watch if it runs in the calling thread. If the watch has its own thread, signals end it.
    pub(super) fn end(&mut self) {
        if let Watch::Here { sources, .. } = &mut self.watch {
            sources.iter_mut().for_each(|source| source.end());
        }
    }

    /// Whether I/Os are left that the last reading did not return.
    pub(super) fn is_behind(&self) -> bool {
        match &self.watch {
            Watch::Here { sources, .. } => sources.iter().any(|source| source.is_behind()),
            Watch::Apart(_) => false,
        }
    }
}

fn names(target: &Target, layers: &[Layer]) -> Vec<(Layer, Vec<String>)> {
    let each = layers.iter().map(|layer| (*layer, target.names(*layer)));
    each.collect()
}

/// The layers that a recording of one target has: the layers that the user asks for, or all layers of the
/// target.
pub(super) fn layers(target: &Target, asked: &[Layer]) -> Vec<Layer> {
    match (asked, target) {
        ([_, ..], _) => asked.to_vec(),
        ([], Target::Daemon { .. }) => {
            let mut layers = vec![Layer::Disk, Layer::Volume];
            layers.retain(|layer| !target.names(*layer).is_empty());
            layers
        }
        ([], _) => vec![Layer::Disk],
    }
}
