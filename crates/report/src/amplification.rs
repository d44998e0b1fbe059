//! `amplification`: how many operations and bytes a pool's clients sent, and how many operations and bytes
//! the queues and the disks had as a result.
//!
//! A volume reads and writes whole blocks even if its clients' writes are smaller, a mirror writes each block
//! to all of its sides, and data that is overwritten while it is dirty never reaches the disks. Each level
//! may therefore have more or fewer operations and bytes than the level above it. Flushes are not counted. The
//! overhead of txgs is in the figures of the pool, has a column of its own, and belongs to no volume.

use std::fmt;

use clap::Args;
use dashpot_api::TrafficSum;
use dashpot_cli::reports::PoolArgs;
use dashpot_engine::pool::{Traffic, VolumeTraffic};
use dashpot_observe::{PoolInterval, Question, Schedule, Seen, Subject};
use dashpot_rules::{ParseError, nice_number};
use dashpot_text::surface::Surface;
use dashpot_text::table::{Column, Room, prose_within, table_within};
use serde::Serialize;

use crate::asked::{Over, ReportRequest, Shared, since_start};
use crate::report::{Page, Pages, Report};

/// Show the I/O of pools at volumes, in queues and at disks
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
×r, ×rB, ×w and ×wB are reads, their bytes, writes and their bytes, divided by
those of the clients. The first lines cover the time since the start of the
daemon. Flushes do not count. Pools have no intent log: OpenZFS writes a sync
write twice (×wB above 2), dashpot once.

Examples: of a daemon's pools, every 5 s; of a simulated pool
  dashpot amplification 5
  dashpot sim labs/amplification.toml --report amplification")]
pub struct AmplificationArgs {
    /// The formats, the pools, and the pace.
    #[command(flatten)]
    pub pools: PoolArgs,
}

impl ReportRequest for AmplificationArgs {
    fn report(&self, _: &Over) -> Result<Box<dyn Report>, ParseError> {
        let (_, pace) = self.pools.and_pace()?;
        Ok(Box::new(AmplificationReport {
            schedule: since_start(&pace),
        }))
    }

    fn shared(&self) -> Shared<'_> {
        Shared::of_pools(&self.pools)
    }
}

/// The report: how many operations and bytes pools had at each level, once per interval.
#[derive(Clone, Copy, Debug)]
pub struct AmplificationReport {
    /// The intervals of the report.
    pub schedule: Schedule,
}

impl Report for AmplificationReport {
    fn question(&self) -> Question {
        Question::of(Subject::Pools)
    }

    fn schedule(&self) -> Schedule {
        self.schedule
    }

    fn take(&mut self, seen: &Seen, surface: &Surface) -> Pages {
        vec![Box::new(Amplification {
            pools: seen.pools.iter().map(PoolLevels::of).collect(),
            room: surface.room(false),
        })]
    }
}

/// The report of an interval. JSON: a list of pools: `{"pool": "tank", "elapsed_ns": …, "volumes": traffic,
/// "queued": traffic, "disks": traffic, "amplification_queued": ratios, "amplification": ratios, "by_volume":
/// [{"volume": "tank/db", "volumes": traffic, …}]}`.
#[derive(Clone, Debug)]
pub struct Amplification {
    /// The pools, in display order.
    pub pools: Vec<PoolLevels>,
    /// The width that the text may have.
    pub room: Room,
}

/// A pool in an interval.
#[derive(Clone, Debug, Serialize)]
pub struct PoolLevels {
    pool: String,
    elapsed_ns: u64,
    #[serde(flatten)]
    levels: Levels,
    overhead: Overhead,
    by_volume: Vec<VolumeLevels>,
}

/// The overhead of txgs: the zios that no client's operation caused.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Overhead {
    queued: TrafficSum,
    disks: TrafficSum,
}

impl Overhead {
    /// The overhead within the counts of a pool.
    pub fn of(counts: VolumeTraffic) -> Overhead {
        Overhead {
            queued: counts.queued.into(),
            disks: counts.disks.into(),
        }
    }

    /// The writes at a level, by the level's name.
    fn writes(self, at: &str) -> Option<u64> {
        match at {
            "queues" => Some(self.queued.writes),
            "disks" => Some(self.disks.writes),
            _ => None,
        }
    }
}

/// The operations and bytes of a volume, and the operations and bytes that these caused in the queues and at
/// the disks.
#[derive(Clone, Debug, Serialize)]
struct VolumeLevels {
    volume: String,
    #[serde(flatten)]
    levels: Levels,
}

/// The operations and bytes of a pool or a volume at each level.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Levels {
    /// The operations that clients sent to the volumes.
    pub volumes: TrafficSum,
    /// The zios that the disks have done, counted before adjacent zios were joined.
    pub queued: TrafficSum,
    /// The zios that the disks have done without an error.
    pub disks: TrafficSum,
    /// Operations and bytes in the queues, divided by those at the volumes.
    pub amplification_queued: Ratios,
    /// Operations and bytes at the disks, divided by those at the volumes.
    pub amplification: Ratios,
}

/// Operations and bytes at a lower level, divided by those at the volumes; null if the volumes had none.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Ratios {
    reads: Option<f64>,
    read_bytes: Option<f64>,
    writes: Option<f64>,
    written_bytes: Option<f64>,
    /// Reads at the lower level for each write at the volumes, if clients only write. The pool reads because
    /// it can write a part of a block only together with the rest of the block.
    reads_per_write: Option<f64>,
    /// How many bytes the lower level read for each byte that clients wrote, if clients only write.
    read_bytes_per_written_byte: Option<f64>,
}

const COLUMNS: [Column; 11] = [
    Column::Text("pool"),
    Column::Text("at"),
    Column::Figure("r/s"),
    Column::Figure("rB/s"),
    Column::Figure("w/s"),
    Column::Figure("wB/s"),
    // The writes of w/s that are overhead.
    Column::Figure("overhead"),
    // The figures, divided by those of the volumes.
    Column::Figure("×r"),
    Column::Figure("×rB"),
    Column::Figure("×w"),
    Column::Figure("×wB"),
];

impl PoolLevels {
    pub fn of(interval: &PoolInterval) -> PoolLevels {
        PoolLevels {
            pool: interval.name.clone(),
            elapsed_ns: u64::try_from(interval.elapsed.as_nanos()).unwrap_or(u64::MAX),
            levels: Levels::of(interval.volumes, interval.queued, interval.traffic),
            overhead: Overhead::of(interval.overhead),
            by_volume: interval.by_volume.iter().map(VolumeLevels::of).collect(),
        }
    }

    /// The pool with its levels; then, if the pool has several volumes, each volume with its levels. A single
    /// volume is left out, because its figures would repeat the pool's.
    fn named(&self) -> impl Iterator<Item = (&str, &Levels)> {
        let volumes = self.by_volume.iter().filter(|_| self.by_volume.len() > 1);
        let volumes = volumes.map(|one| (one.volume.as_str(), &one.levels));
        std::iter::once((self.pool.as_str(), &self.levels)).chain(volumes)
    }

    fn rows(&self) -> impl Iterator<Item = Vec<String>> {
        (0..)
            .zip(self.named())
            .flat_map(move |(nth, (name, levels))| {
                let rows = levels.all().into_iter();
                rows.map(move |(at, traffic, ratios)| {
                    let overhead = self.overhead.writes(at).filter(|_| nth == 0);
                    self.row(&[name, at], traffic, overhead, ratios)
                })
            })
    }

    /// The notes on the reads that clients' writes have caused: one for each volume, or one for a pool with a
    /// single volume.
    fn notes(&self) -> String {
        let pool = usize::from(self.by_volume.len() > 1);
        let named = self.named().skip(pool);
        named
            .map(|(name, levels)| levels.reads_of_writes(name))
            .collect()
    }

    fn row(
        &self,
        names: &[&str],
        traffic: TrafficSum,
        overhead: Option<u64>,
        ratios: Option<Ratios>,
    ) -> Vec<String> {
        let counts = [
            traffic.reads,
            traffic.read_bytes,
            traffic.writes,
            traffic.written_bytes,
        ];
        let seconds = self.elapsed_ns.max(1) as f64 / 1e9;
        let rate = |count: u64| nice_number((count as f64 / seconds).round() as u64);
        let overhead = overhead.map_or("-".to_owned(), rate);
        let rates = counts.map(rate).into_iter().chain([overhead]);
        let ratios = ratios.map_or_else(|| ["-"; 4].map(str::to_owned), |ratios| ratios.cells());
        let names = names.iter().map(|name| (*name).to_owned());
        names.chain(rates).chain(ratios).collect()
    }
}

impl VolumeLevels {
    fn of((volume, counts): &(String, VolumeTraffic)) -> VolumeLevels {
        VolumeLevels {
            volume: volume.clone(),
            levels: Levels::of(counts.asked, counts.queued, counts.disks),
        }
    }
}

impl Levels {
    /// The counts at the volumes, in the queues and at the disks.
    pub fn of(volumes: Traffic, queued: Traffic, disks: Traffic) -> Levels {
        Levels {
            volumes: volumes.into(),
            queued: queued.into(),
            disks: disks.into(),
            amplification_queued: Ratios::of(queued, volumes),
            amplification: Ratios::of(disks, volumes),
        }
    }

    /// The levels, the highest level first, with their names.
    pub fn all(&self) -> [(&'static str, TrafficSum, Option<Ratios>); 3] {
        [
            ("volumes", self.volumes, None),
            ("queues", self.queued, Some(self.amplification_queued)),
            ("disks", self.disks, Some(self.amplification)),
        ]
    }

    /// A note about the reads that writes to a pool or a volume have caused; empty if they caused no reads.
    pub fn reads_of_writes(&self, name: &str) -> String {
        let times = self.amplification;
        match (times.reads_per_write, times.read_bytes_per_written_byte) {
            (Some(reads), Some(bytes)) if reads > 0.0 => format!(
                "The clients of {name} only write. For each of their writes the disks did {reads:.2} \
                 reads, and for each written byte they read {bytes:.2} bytes (read-modify-write).\n"
            ),
            _ => String::new(),
        }
    }
}

impl Ratios {
    fn of(below: Traffic, above: Traffic) -> Ratios {
        let ratio = |below: u64, above: u64| (above > 0).then(|| below as f64 / above as f64);
        let only_writes = |ratio: Option<f64>| ratio.filter(|_| above.reads == 0);
        Ratios {
            reads: ratio(below.reads, above.reads),
            read_bytes: ratio(below.bytes_read, above.bytes_read),
            writes: ratio(below.writes, above.writes),
            written_bytes: ratio(below.bytes_written, above.bytes_written),
            reads_per_write: only_writes(ratio(below.reads, above.writes)),
            read_bytes_per_written_byte: only_writes(ratio(below.bytes_read, above.bytes_written)),
        }
    }

    /// The ratios of reads, of read bytes, of writes, and of written bytes.
    pub fn cells(self) -> [String; 4] {
        let all = [self.reads, self.read_bytes, self.writes, self.written_bytes];
        all.map(|ratio| ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}")))
    }
}

impl Page for Amplification {
    fn json(&self) -> Option<&dyn erased_serde::Serialize> {
        Some(&self.pools)
    }
}

impl fmt::Display for Amplification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.pools.iter().flat_map(PoolLevels::rows);
        f.write_str(&table_within(self.room, &COLUMNS, rows))?;
        for pool in &self.pools {
            f.write_str(&prose_within(self.room, &pool.notes()))?;
        }
        writeln!(f)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use dashpot_engine::pool::{Class, Traffic, VolumeTraffic};
    use dashpot_observe::{ClassInterval, PoolInterval};
    use dashpot_text::table::{Room, assert_fits};
    use expect_test::expect;

    use super::{Amplification, PoolLevels};

    fn traffic(reads: u64, writes: u64, block: u64) -> Traffic {
        Traffic {
            reads,
            bytes_read: reads * block,
            writes,
            bytes_written: writes * block,
        }
    }

    /// Two seconds in which clients wrote 8 KiB at a time into blocks of 128 KiB.
    fn interval() -> PoolInterval {
        PoolInterval {
            name: "tank".to_owned(),
            elapsed: Duration::from_secs(2),
            allocated: 0,
            free: 0,
            volumes: traffic(0, 400, 8 << 10),
            queued: traffic(400, 400, 128 << 10),
            traffic: traffic(400, 400, 128 << 10),
            overhead: VolumeTraffic::default(),
            by_volume: Vec::new(),
            classes: Box::new(Class::ALL.map(ClassInterval::empty)),
            txgs: Vec::new(),
        }
    }

    #[test]
    fn records_under_smaller_writes_show_their_cost() {
        let page = |room| Amplification {
            pools: vec![PoolLevels::of(&interval())],
            room,
        };
        expect![[r#"
            pool  at       r/s  rB/s  w/s   wB/s  overhead  ×r  ×rB    ×w    ×wB
            tank  volumes    0     0  200  1.56M         -   -    -     -      -
            tank  queues   200   25M  200    25M         0   -    -  1.00  16.00
            tank  disks    200   25M  200    25M         0   -    -  1.00  16.00
            The clients of tank only write. For each of their writes the disks did 1.00 reads, and for each written byte they read 16.00 bytes (read-modify-write).

        "#]].assert_eq(&page(Room::UNBOUNDED).to_string());
        let narrow = Room(Some(80));
        assert_fits(narrow, &page(narrow).to_string());
    }

    #[test]
    fn several_volumes_have_lines_and_notes_of_their_own() {
        let volume = |reads, block| VolumeTraffic {
            asked: traffic(0, 200, 8 << 10),
            queued: traffic(reads, 200, block),
            disks: traffic(reads, 200, block),
        };
        let by_volume = vec![
            ("tank/db".to_owned(), volume(200, 128 << 10)),
            ("tank/log".to_owned(), volume(0, 8 << 10)),
        ];
        let page = Amplification {
            pools: vec![PoolLevels::of(&PoolInterval {
                by_volume,
                ..interval()
            })],
            room: Room(Some(80)),
        };
        assert_fits(Room(Some(80)), &page.to_string());
        expect![[r#"
            pool      at       r/s   rB/s  w/s   wB/s  overhead  ×r  ×rB    ×w    ×wB
            tank      volumes    0      0  200  1.56M         -   -    -     -      -
            tank      queues   200    25M  200    25M         0   -    -  1.00  16.00
            tank      disks    200    25M  200    25M         0   -    -  1.00  16.00
            tank/db   volumes    0      0  100   800K         -   -    -     -      -
            tank/db   queues   100  12.5M  100  12.5M         -   -    -  1.00  16.00
            tank/db   disks    100  12.5M  100  12.5M         -   -    -  1.00  16.00
            tank/log  volumes    0      0  100   800K         -   -    -     -      -
            tank/log  queues     0      0  100   800K         -   -    -  1.00   1.00
            tank/log  disks      0      0  100   800K         -   -    -  1.00   1.00
            The clients of tank/db only write. For each of their writes the disks did 1.00
            reads, and for each written byte they read 16.00 bytes (read-modify-write).

        "#]]
        .assert_eq(&page.to_string());
        let json = serde_json::to_value(&page.pools).unwrap();
        let log = &json[0]["by_volume"][1];
        assert_eq!(log["volume"], "tank/log");
        assert_eq!(log["amplification"]["written_bytes"], 1.0);
    }

    #[test]
    fn without_clients_there_is_no_ratio() {
        let idle = PoolInterval {
            volumes: Traffic::default(),
            ..interval()
        };
        let levels = serde_json::to_value(PoolLevels::of(&idle)).unwrap();
        assert!(levels["amplification"]["written_bytes"].is_null());
        assert_eq!(levels["disks"]["writes"], 400);
    }
}
