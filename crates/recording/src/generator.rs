//! Invented I/Os for the tests, with arbitrary values.

use dashpot_engine::pool::Class;
use dashpot_engine::{Duration, Waits};
use dashpot_observe::{Facts, FinishedIo, IoWaits, Kind, Layer, Thread, Who};
use proptest::option::of;
use proptest::prelude::*;

prop_compose! {
    /// The waits of a zio, with arbitrary values.
    fn any_zio_waits()(ns in any::<[u64; 8]>(), is_call in any::<bool>()) -> IoWaits {
        let [recv, throttle, queue, suspend, store, hold, lateness, reply] = ns.map(Duration::from_nanos);
        let waits = Waits { recv, throttle, queue, suspend, store, hold, lateness, reply };
        if is_call {
IoWaits::Call(Waits { store: Duration::ZERO, ..waits })
} else {
IoWaits::Zio(waits)
}
    }
}

fn any_waits() -> impl Strategy<Value = IoWaits> {
    let kernel =
        (of(any::<u64>()), any::<u64>()).prop_map(|(queue_ns, device_ns)| IoWaits::Kernel {
            queue_ns,
            device_ns,
        });
    prop_oneof![any_zio_waits(), kernel]
}

fn any_who() -> impl Strategy<Value = Who> {
    prop_oneof![
        ".{0,8}".prop_map(|name| Who::Client(name.into())),
        any_thread().prop_map(Who::Thread),
    ]
}

prop_compose! {
    /// A thread. If no fact about it is known, its id is.
    fn any_thread()(
        (process, thread) in (of(".{0,8}"), of(".{0,8}")),
        (pid, tid) in any::<(Option<i32>, Option<i32>)>(),
        cgroup in of("[a-z/]{0,8}"),
    ) -> Thread {
        let thread = Thread {
            process: process.map(Into::into),
            pid,
            thread: thread.map(Into::into),
            tid,
            cgroup: cgroup.map(Into::into),
        };
        if thread == Thread::default() {
            Thread { tid: Some(7), ..thread }
        } else {
            thread
        }
    }
}

fn any_kind() -> impl Strategy<Value = Kind> {
    const WORDS: &[&str] = &["read", "write", "flush", "trim", "zero", "cache", "other"];
    prop::sample::select(WORDS).prop_map(Kind::of_word)
}

prop_compose! {
    /// An I/O with arbitrary values: every value of every field can occur.
    pub(crate) fn any_io()(
        (device, kind, fua, letters) in ("[a-z]{0,3}", any_kind(), any::<bool>(), of("[A-Z]{0,4}")),
        (offset_bytes, length_bytes) in any::<(u64, u64)>(),
        (begun_ns, ended_ns, at_ns) in any::<(u64, u64, u64)>(),
        (waits, who) in (any_waits(), of(any_who())),
        (is_volume, depth) in any::<(bool, Option<u32>)>(),
        (rule, lane, txg_syncing) in any::<(Option<u32>, Option<u32>, Option<bool>)>(),
        class in of(prop::sample::select(&Class::ALL[..])),
        (merged, requeued, inode) in any::<(u32, u32, Option<u64>)>(),
        error in of("E[A-Z]{1,8}"),
    ) -> FinishedIo {
        FinishedIo {
            layer: if is_volume { Layer::Volume } else { Layer::Disk },
            device: device.into(),
            letters: letters.map(Into::into),
            kind, fua, offset_bytes, length_bytes, depth, begun_ns, ended_ns, at_ns,
            waits, who, facts: Facts { rule, lane, class, txg_syncing }, inode, merged, requeued, error,
        }
    }
}
