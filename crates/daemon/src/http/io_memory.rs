//! I/Os in memory, by the second in which they ended.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dashpot_api::{Clock, Source, SourceDevice};
use dashpot_observe::{Dimension, FinishedIo, Knows, Layer, Value};

use crate::http::memory::{Memory, Wanted};

/// The last I/Os of a running source. The source's watcher adds the I/Os, and reports how far it has read.
pub struct IoMemory {
    knows: Knows,
    /// The maximum number of I/Os that are kept.
    most: usize,
    state: Mutex<State>,
}

/// The watcher's report: the source, and how far the watcher has read it.
#[derive(Clone, Debug)]
pub struct Remembering {
    /// The source's description, as far as the watcher knows it.
    pub source: Source,
    /// The watcher's clock: all I/Os that ended before the clock's present time have been added.
    pub clock: Clock,
}

struct State {
    told: Remembering,
    seconds: VecDeque<Second>,
    kept: usize,
    /// The memory has all I/Os from this second on.
    since: u64,
    /// Reports of lost I/Os: the second of each report, and the number of I/Os.
    lost: VecDeque<(u64, u64)>,
    /// For each dimension in [`LISTED`], the values of the I/Os that were added.
    seen: Vec<(Dimension, BTreeSet<String>)>,
}

struct Second {
    number: u64,
    /// A reader shares these I/Os, so that it can look at them after it has released the lock.
    ios: Arc<Vec<FinishedIo>>,
}

impl IoMemory {
    /// A memory without I/Os, which will never take more than this many bytes.
    pub fn new(knows: Knows, told: Remembering, bytes: usize) -> IoMemory {
        let state = State {
            since: told.clock.started_ns / SECOND_NS,
            told,
            seconds: VecDeque::new(),
            kept: 0,
            lost: VecDeque::new(),
            seen: LISTED.map(|one| (one, BTreeSet::new())).to_vec(),
        };
        IoMemory {
            knows,
            most: bytes / size_of::<FinishedIo>(),
            state: Mutex::new(state),
        }
    }

    /// Adds I/Os, the number of I/Os lost since the last call, and the watcher's report.
    pub fn add(&self, ios: impl IntoIterator<Item = FinishedIo>, lost: u64, told: Remembering) {
        let mut state = self.lock();
        for io in ios {
            state.add(io);
        }
        if lost > 0 {
            let second = told.clock.now_ns / SECOND_NS;
            state.lost.push_back((second, lost));
            while state.lost.len() > LOST_MAX {
                state.lost.pop_front();
            }
        }
        state.told = told;
        while state.kept > self.most && state.seconds.len() > 1 {
            state.forget();
        }
    }

    /// Notes that no more I/Os will come. `trouble` is the error that ended the source, if there was one.
    pub fn end(&self, trouble: Option<String>) {
        let mut state = self.lock();
        let now_ns = state.told.clock.now_ns;
        // Once the source has ended, the second of the last I/O is also over.
        state.told.clock.now_ns = now_ns.div_ceil(SECOND_NS) * SECOND_NS;
        state.told.source.ended_ns = Some(now_ns);
        state.told.source.trouble = trouble;
    }

    /// Locks the state. A panic of another thread does not damage the state.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn add(&mut self, io: FinishedIo) {
        for (dimension, names) in &mut self.seen {
            let name = match dimension.of(&io) {
                Some(Value::Name(name)) => name,
                _ => continue,
            };
            if names.len() < NAMES_MAX && !names.contains(name) {
                names.insert(name.to_owned());
            }
        }
        let number = io.ended_ns / SECOND_NS;
        if number < self.since {
            return;
        }
        let at = self.seconds.partition_point(|one| one.number < number);
        if self.seconds.get(at).is_none_or(|one| one.number != number) {
            let ios = Arc::default();
            self.seconds.insert(at, Second { number, ios });
        }
        if let Some(second) = self.seconds.get_mut(at) {
            Arc::make_mut(&mut second.ios).push(io);
            self.kept += 1;
        }
    }

    fn forget(&mut self) {
        if let Some(oldest) = self.seconds.pop_front() {
            self.kept -= oldest.ios.len();
            self.since = oldest.number + 1;
        }
    }
}

impl Memory for IoMemory {
    fn source(&self) -> Source {
        self.lock().told.source.clone()
    }

    fn knows(&self, layer: Layer) -> Option<Knows> {
        self.knows.on(layer)
    }

    fn clock(&self) -> Clock {
        self.lock().told.clock
    }

    fn values(&self, dimension: Dimension) -> Vec<String> {
        let state = self.lock();
        if dimension == Dimension::Device {
            let name = |device: &SourceDevice| device.name.clone();
            return state.told.source.devices.iter().map(name).collect();
        }
        let mut seen = state.seen.iter();
        let names = seen.find(|(one, _)| *one == dimension);
        names.map_or(Vec::new(), |(_, names)| names.iter().cloned().collect())
    }

    fn since(&self) -> u64 {
        self.lock().since
    }

    fn each(&self, wanted: &Wanted, look: &mut dyn FnMut(&FinishedIo)) -> anyhow::Result<u64> {
        let (since, seconds) = {
            let state = self.lock();
            let at = |number| state.seconds.partition_point(|one| one.number < number);
            let own = at(wanted.seconds.start)..at(wanted.seconds.end);
            let own = state.seconds.range(own);
            let seconds: Vec<_> = own.map(|one| Arc::clone(&one.ios)).collect();
            (state.since, seconds)
        };
        let ios = seconds.iter().flat_map(|ios| ios.iter());
        ios.filter(|io| io.layer == wanted.layer).for_each(look);
        Ok(since)
    }

    fn lost(&self, _: Layer, seconds: &Range<u64>) -> Vec<(u64, u64)> {
        let state = self.lock();
        let own = state.lost.iter();
        own.filter(|(second, _)| seconds.contains(second))
            .copied()
            .collect()
    }
}

/// The dimensions whose values are listed.
const LISTED: [Dimension; 6] = [
    Dimension::Op,
    Dimension::Client,
    Dimension::Process,
    Dimension::Thread,
    Dimension::Cgroup,
    Dimension::Error,
];
/// For each dimension, at most this many values are listed.
const NAMES_MAX: usize = 256;
/// At most this many reports of lost I/Os are kept.
const LOST_MAX: usize = 3_600;
const SECOND_NS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use dashpot_api::SourceKind;
    use dashpot_observe::{Kind, Layer};

    fn io(ended_ns: u64) -> FinishedIo {
        FinishedIo {
            begun_ns: ended_ns,
            ended_ns,
            ..FinishedIo::bare(Layer::Disk, "d".into(), Kind::of_word("read"))
        }
    }

    fn told(now_ns: u64) -> Remembering {
        Remembering {
            source: Source {
                kind: SourceKind::Kernel,
                name: String::new(),
                words: String::new(),
                devices: Vec::new(),
                gaps: Vec::new(),
                ended_ns: None,
                trouble: None,
            },
            clock: Clock {
                now_ns,
                started_ns: 0,
                unix_ns: 0,
            },
        }
    }

    fn counted(memory: &IoMemory, seconds: Range<u64>) -> (u64, u64) {
        let layer = Layer::Disk;
        let mut count = 0;
        let wanted = Wanted {
            layer,
            seconds,
            names_devices: true,
        };
        let since = memory.each(&wanted, &mut |_| count += 1);
        (count, since.expect("a memory"))
    }

    #[test]
    fn the_oldest_seconds_are_forgotten_whole_and_that_is_told() {
        let most = 100 * size_of::<FinishedIo>();
        let memory = IoMemory::new(Knows::Kernel, told(0), most);
        // Within a second the order is undefined, and an I/O may arrive late.
        for ns in [1_500_000_000, 500_000_000, 1_200_000_000] {
            memory.add([io(ns)], 0, told(2_000_000_000));
        }
        assert_eq!(counted(&memory, 0..1), (1, 0));
        assert_eq!(counted(&memory, 1..2), (2, 0));
        memory.add((0..98).map(|_| io(2_000_000_000)), 0, told(3_000_000_000));
        assert_eq!(counted(&memory, 0..3), (100, 1));
        // An I/O that ended in a forgotten second is not counted.
        memory.add([io(400_000_000)], 7, told(3_000_000_000));
        assert_eq!(counted(&memory, 0..3), (100, 1));
        assert_eq!(memory.lost(Layer::Disk, &(0..10)), [(3, 7)]);
    }

    #[test]
    fn the_second_in_which_a_source_ends_is_over() {
        let memory = IoMemory::new(Knows::Kernel, told(0), 1 << 20);
        memory.add([io(2_100_000_000)], 0, told(2_200_000_000));
        memory.end(Some("gone".to_owned()));
        assert_eq!(memory.clock().now_ns, 3_000_000_000);
        let source = memory.source();
        assert_eq!(source.ended_ns, Some(2_200_000_000));
        assert_eq!(source.trouble.as_deref(), Some("gone"));
    }
}
