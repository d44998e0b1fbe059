//! Invented I/Os, in a mix like a busy server's, for the tests and for the example that measures queries.

use dashpot_engine::{Duration, Op, Waits};
use dashpot_observe::{Facts, FinishedIo, IoWaits, Kind, Layer, Thread, Who};

/// How far the time since 1970 is ahead of the server's clock.
pub(crate) const AHEAD_NS: u64 = 1_763_900_000_000_000_123;

/// Random numbers from a seed.
struct Random(u64);

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

    /// A random number in [0, 1).
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

/// A server at 4,950 IOPS from eight processes. The gaps between I/Os are random; latencies are log-normal,
/// and 3 % of them are long; half of the offsets are random, and half are in sequence.
pub(crate) struct Server {
    random: Random,
    now_ns: u64,
    next: u64,
    is_zio: bool,
}

impl Server {
    pub(crate) fn new(is_zio: bool) -> Server {
        Server {
            random: Random(4_950),
            now_ns: 3_600_000_000_000,
            next: 0,
            is_zio,
        }
    }

    /// The server's next I/Os, in the order of their ends.
    pub(crate) fn ios(&mut self, count: usize) -> Vec<FinishedIo> {
        let mut ios: Vec<FinishedIo> = (0..count).map(|_| self.io()).collect();
        ios.sort_by_key(|io| io.ended_ns);
        ios
    }

    fn io(&mut self) -> FinishedIo {
        let random = &mut self.random;
        self.now_ns += random.exponential(202_020.0);
        let is_random = random.below(2) == 0;
        let offset_bytes = if is_random {
            random.below(1 << 27) * 4_096
        } else {
            self.next
        };
        let length_bytes = [4_096, 4_096, 4_096, 8_192, 16_384, 65_536][random.below(6) as usize];
        if !is_random {
            self.next = (self.next + length_bytes) % (1 << 39);
        }
        served(random, self.now_ns, offset_bytes, length_bytes, self.is_zio)
    }
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
    let (waits, total_ns) = if is_zio {
        zio_waits(random, is_write, device_ns)
    } else {
        let waits = IoWaits::Kernel {
            queue_ns: Some(queue_ns),
            device_ns,
        };
        (waits, queue_ns + device_ns)
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
        at_ns: begun_ns + total_ns + AHEAD_NS,
        waits,
        who: Some(if is_zio {
            Who::Client(format!("uid=1000 pid={}", 4_711 + process).into())
        } else {
            // Each process has two threads that do I/O.
            let (process, own) = (process as usize / 2, process as usize % 2);
            let name = ["postgres", "mysqld", "java", "kworker/1:2"][process];
            let pid = 1_000 + 17 * process as i32;
            Who::Thread(Thread {
                process: Some(name.into()),
                pid: Some(pid),
                thread: Some([name, "io-1"][own].into()),
                tid: Some(pid + own as i32),
                cgroup: Some(["/system.slice/db.service", "/batch"][process % 2].into()),
            })
        }),
        facts: Facts {
            rule: is_zio.then_some(1),
            lane: is_zio.then(|| random.below(4) as u32),
            ..Facts::default()
        },
        inode: None,
        merged: 0,
        requeued: 0,
        error: None,
    }
}

/// The waits of a zio on a fast store. A rule holds the zio until 10 ms after its arrival.
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
