//! Made I/Os for the tests: a mix like that of a busy server, and I/Os without any sense.

use dashpot_engine::{Duration, Op, Waits};
use dashpot_observe::{FinishedIo, IoWaits, Kind, Layer, Who};
use proptest::option::of;
use proptest::prelude::*;

/// Random numbers from a seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// In [0, 1).
    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn exponential(&mut self, mean: f64) -> u64 {
        (-mean * (1.0 - self.fraction()).ln()) as u64
    }

    fn log_normal(&mut self, median: f64, sigma: f64) -> u64 {
        let radius = (-2.0 * (1.0 - self.fraction()).ln()).sqrt();
        let normal = radius * (std::f64::consts::TAU * self.fraction()).cos();
        (median * (sigma * normal).exp()) as u64
    }
}

/// I/Os like those of a server at 4,950 IOPS, in the order of their ends: random gaps, log-normal latencies
/// with 3 % slow ones, half of the offsets random and half in sequence, eight processes.
pub(crate) fn server(count: usize, is_zio: bool) -> Vec<FinishedIo> {
    let mut random = Random(4_950);
    let (mut now_ns, mut next) = (3_600_000_000_000, 0);
    let mut ios: Vec<FinishedIo> = (0..count)
        .map(|_| {
            now_ns += random.exponential(202_020.0);
            let is_random = random.below(2) == 0;
            let offset_bytes = match is_random {
                true => random.below(1 << 27) * 4_096,
                false => next,
            };
            let length_bytes =
                [4_096, 4_096, 4_096, 8_192, 16_384, 65_536][random.below(6) as usize];
            if !is_random {
                next = (next + length_bytes) % (1 << 39);
            }
            served(&mut random, now_ns, offset_bytes, length_bytes, is_zio)
        })
        .collect();
    ios.sort_by_key(|io| io.ended_ns);
    ios
}

fn served(
    random: &mut Random,
    begun_ns: u64,
    offset_bytes: u64,
    length_bytes: u64,
    is_zio: bool,
) -> FinishedIo {
    let is_write = random.below(10) < 3;
    let device_ns = match random.below(100) {
        0..3 => random.log_normal(8e6, 0.5),
        _ => random.log_normal(180e3, 0.4),
    };
    let queue_ns = random.exponential(6_000.0);
    let (waits, total_ns) = match is_zio {
        true => zio_waits(random, is_write, device_ns),
        false => {
            let waits = IoWaits::Kernel {
                queue_ns: Some(queue_ns),
                device_ns,
            };
            (waits, queue_ns + device_ns)
        }
    };
    let process = random.below(8);
    FinishedIo {
        layer: Layer::Disk,
        device: "vda".into(),
        kind: Kind::Op(if is_write { Op::Write } else { Op::Read }),
        fua: false,
        letters: (!is_zio).then(|| if is_write { "WS" } else { "R" }.into()),
        offset_bytes,
        length_bytes,
        depth: is_zio.then(|| 1 + random.below(8) as u32),
        begun_ns,
        ended_ns: begun_ns + total_ns,
        at_ns: begun_ns + total_ns + 1_763_900_000_000_000_123,
        waits,
        who: Some(match is_zio {
            true => Who::Client(format!("uid=1000 pid={}", 4_711 + process).into()),
            false => Who::Thread {
                pid: 1_000 + 17 * process as i32,
                comm: ["postgres", "mysqld", "java", "kworker/1:2"][process as usize % 4].into(),
                cgroup: Some(["/system.slice/db.service", "/batch"][process as usize % 2].into()),
            },
        }),
        rule: is_zio.then_some(1),
        lane: is_zio.then(|| random.below(4) as u32),
        merged: 0,
        requeued: 0,
        error: None,
    }
}

/// A rule of 10 ms over a quick store.
fn zio_waits(random: &mut Random, is_write: bool, store_ns: u64) -> (IoWaits, u64) {
    let store_ns = store_ns / 16;
    let ns = Duration::from_nanos;
    let waits = Waits {
        recv: ns(if is_write {
            random.exponential(2_000.0)
        } else {
            0
        }),
        store: ns(store_ns),
        hold: ns(10_000_000_u64.saturating_sub(store_ns)),
        lateness: ns(random.log_normal(6_000.0, 0.5)),
        reply: ns(random.log_normal(4_000.0, 0.5)),
        ..Waits::default()
    };
    (IoWaits::Zio(waits), waits.total().as_nanos())
}

prop_compose! {
    /// The waits of a zio, without any sense.
    fn any_zio_waits()(ns in any::<[u64; 8]>()) -> IoWaits {
        let [recv, throttle, queue, suspend, store, hold, lateness, reply] = ns.map(Duration::from_nanos);
        IoWaits::Zio(Waits { recv, throttle, queue, suspend, store, hold, lateness, reply })
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
        (any::<i32>(), ".{0,8}", of("[a-z/]{0,8}")).prop_map(|(pid, comm, cgroup)| Who::Thread {
            pid,
            comm: comm.into(),
            cgroup: cgroup.map(Into::into),
        }),
    ]
}

fn any_kind() -> impl Strategy<Value = Kind> {
    const WORDS: &[&str] = &["read", "write", "flush", "trim", "zero", "cache", "other"];
    prop::sample::select(WORDS).prop_map(Kind::of_word)
}

prop_compose! {
    /// An I/O without any sense: all values of all fields occur.
    pub(crate) fn any_io()(
        (device, kind, fua, letters) in ("[a-z]{0,3}", any_kind(), any::<bool>(), of("[A-Z]{0,4}")),
        (offset_bytes, length_bytes) in any::<(u64, u64)>(),
        (begun_ns, ended_ns, at_ns) in any::<(u64, u64, u64)>(),
        (waits, who) in (any_waits(), of(any_who())),
        (is_volume, depth) in any::<(bool, Option<u32>)>(),
        (rule, lane, merged, requeued) in any::<(Option<u32>, Option<u32>, u32, u32)>(),
        error in of("E[A-Z]{1,8}"),
    ) -> FinishedIo {
        FinishedIo {
            layer: if is_volume { Layer::Volume } else { Layer::Disk },
            device: device.into(),
            letters: letters.map(Into::into),
            kind, fua, offset_bytes, length_bytes, depth, begun_ns, ended_ns, at_ns,
            waits, who, rule, lane, merged, requeued, error,
        }
    }
}
