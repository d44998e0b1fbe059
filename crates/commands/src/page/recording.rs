//! Answers a page from a recording, as a daemon's memory of finished I/Os would. If the recording is still
//! being made, the page follows it.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dashpot_api::{Clock, Source, SourceDevice, SourceGap, SourceKind, SourceLayer};
use dashpot_daemon::http::{Memory, Wanted};
use dashpot_observe::{Dimension, FinishedIo, Knows, Layer};
use dashpot_rules::shell_word;
use dashpot_sources::{Recorded, unix_ns};

/// A recording that the page shows.
pub(crate) struct RecordedMemory {
    path: PathBuf,
    state: Mutex<State>,
}

struct State {
    recorded: Recorded,
    looked: Instant,
    /// Why the recording can no longer be read.
    trouble: Option<String>,
}

impl RecordedMemory {
    pub(crate) fn open(path: &Path) -> anyhow::Result<RecordedMemory> {
        let recorded = Recorded::open(path, &[])?;
        recorded.tell_stacked();
        let state = State {
            recorded,
            looked: Instant::now(),
            trouble: None,
        };
        Ok(RecordedMemory {
            path: path.to_owned(),
            state: Mutex::new(state),
        })
    }

    /// The recording as it is now. From time to time, this function opens the files again.
    fn now(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.looked.elapsed() >= LOOK_EVERY {
            match Recorded::open(&self.path, &[]) {
                Ok(recorded) => (state.recorded, state.trouble) = (recorded, None),
                Err(error) => state.trouble = Some(format!("{error:#}")),
            }
            state.looked = Instant::now();
        }
        state
    }

    fn recorded(&self) -> anyhow::Result<Recorded> {
        let state = self.now();
        match &state.trouble {
            None => Ok(state.recorded.clone()),
            Some(trouble) => anyhow::bail!("{trouble}"),
        }
    }
}

impl Memory for RecordedMemory {
    fn source(&self) -> Source {
        let state = self.now();
        let recorded = &state.recorded;
        let devices = LAYERS.into_iter().flat_map(|(layer, word)| {
            let names = recorded.devices(layer).into_iter();
            names.map(move |name| SourceDevice {
                over: recorded.over(layer, &name),
                layer: word,
                name,
            })
        });
        let (_, last_ns) = recorded.moments();
        let is_over = state.trouble.is_some() || !grows(recorded);
        Source {
            kind: SourceKind::Recording,
            name: self.path.display().to_string(),
            words: format!("--in {}", shell_word(&self.path.to_string_lossy())),
            devices: devices.collect(),
            gaps: gaps(recorded),
            ended_ns: is_over.then_some(last_ns),
            trouble: state.trouble.clone(),
        }
    }

    fn knows(&self, layer: Layer) -> Option<Knows> {
        let recorded = &self.now().recorded;
        let is_there = layer != Layer::Fs && recorded.layers().contains(&layer);
        is_there.then(|| recorded.knows_on(layer))
    }

    fn clock(&self) -> Clock {
        let state = self.now();
        let (first_ns, last_ns) = state.recorded.moments();
        // While the recording is still being made, the second in which its last I/O ended is not over.
        let now_ns = if grows(&state.recorded) {
            last_ns
        } else {
            (last_ns / SECOND_NS + 1) * SECOND_NS
        };
        Clock {
            now_ns,
            started_ns: first_ns,
            unix_ns: now_ns,
        }
    }

    fn values(&self, dimension: Dimension) -> Vec<String> {
        match dimension {
            Dimension::Device => self.now().recorded.names().to_vec(),
            _ => Vec::new(),
        }
    }

    fn since(&self) -> u64 {
        self.now().recorded.moments().0 / SECOND_NS
    }

    fn each(&self, wanted: &Wanted, look: &mut dyn FnMut(&FinishedIo)) -> anyhow::Result<u64> {
        let Range { start, end } = wanted.seconds;
        let recorded = self.recorded()?;
        let part = recorded.within(start * SECOND_NS..end.saturating_mul(SECOND_NS));
        part.each(|io| {
            if io.layer == wanted.layer {
                // The page uses the wall clock, because the recorder's own clock starts anew when the host
                // boots.
                let total_ns = io.total_ns();
                look(&FinishedIo {
                    begun_ns: io.at_ns.saturating_sub(total_ns),
                    ended_ns: io.at_ns,
                    ..io.clone()
                });
            }
        })?;
        Ok(recorded.moments().0 / SECOND_NS)
    }

    fn lost(&self, layer: Layer, seconds: &Range<u64>) -> Vec<(u64, u64)> {
        let lost = self
            .recorded()
            .and_then(|recorded| recorded.losses(layer, seconds));
        lost.unwrap_or_default()
    }
}

/// The layers of recordings that the page shows.
const LAYERS: [(Layer, SourceLayer); 3] = [
    (Layer::Disk, SourceLayer::Disk),
    (Layer::Volume, SourceLayer::Volume),
    (Layer::Kernel, SourceLayer::Kernel),
];

/// The periods in which at least one layer was not recorded. A gap without a layer is a gap in all layers.
fn gaps(recorded: &Recorded) -> Vec<SourceGap> {
    let gap = |(from_ns, to_ns), layer| SourceGap {
        from_ns,
        to_ns,
        layer,
    };
    let of_all = recorded.pauses();
    let of_each = LAYERS.into_iter().flat_map(|(layer, word)| {
        let part = recorded.on(layer).ok();
        let pauses = part.map_or_else(Vec::new, |part| part.pauses());
        pauses.into_iter().map(move |pause| (pause, word))
    });
    let of_each = of_each.filter(|(pause, _)| !of_all.contains(pause));
    let of_each = of_each.map(|(pause, word)| gap(pause, Some(word)));
    let gaps = of_all.iter().map(|pause| gap(*pause, None));
    gaps.chain(of_each).collect()
}

/// Whether more I/Os may come: the recorder has recently written something, and has not marked the end of the
/// recording.
fn grows(recorded: &Recorded) -> bool {
    let (_, last_ns) = recorded.moments();
    !recorded.has_ended() && unix_ns().saturating_sub(last_ns) < SILENT_NS
}

/// How often to open the files again.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// If a recorder has written nothing for this long, it was killed, because a recorder completes a file at
/// least every 10 s.
const SILENT_NS: u64 = 60_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;
