//! `[pool.NAME]`: disks joined by a layout, and the tunables of their throttle.

use std::collections::BTreeMap;
use std::path::PathBuf;

use dashpot_engine::pool::{Layout, LegacyConfig, ThrottleConfig, Tunables};
use dashpot_rules::{
    ParseError, PoolSpec, StoreConfig, format_size, parse_bandwidth, parse_name, parse_size,
    pool_capacity,
};

use crate::key::{Key, names};
use crate::place::place_of;
use crate::section::Section;
use crate::tunable::{self, read_tunables};

pub(crate) const POOL_KEYS: [Key; 4] = [
    Key {
        name: "disks",
        kind: "list of disks, or of lists of disks",
        example: "[[\"a\", \"b\"], [\"c\", \"d\"]]",
        default: "none: it must be given",
        meaning: "The members, over which `layout` spreads the blocks; a list within the list is a mirror, whose disks have one size. A disk is in one pool at most.",
    },
    Key {
        name: "layout",
        kind: "`static` or `dynamic`",
        example: "\"dynamic\"",
        default: "\"static\"",
        meaning: "How the pool chooses the member of a block. `static`: in turn, by the block's number. `dynamic`: when the block is first written, the member with the least queued; only over `ram`, `null` and `lossy:` before one of them, and all volumes have one `block_size` ([which layout to choose](write-throttle.md#disks-that-differ)).",
    },
    Key {
        name: "bitmap",
        kind: "path",
        example: "\"tank.bitmap\"",
        default: "none",
        meaning: "A file, relative to the lab file, in which the daemon notes where the sides of mirrors on `dev:` stores may differ. Without this file, every start copies one side of such a mirror to the others. For a `file:` store, the daemon keeps these notes in an attribute of the store's file ([mirrors](power-cuts.md#mirrors)).",
    },
    Key {
        name: "ram",
        kind: "size",
        example: "\"16G\"",
        default: "\"8G\"",
        meaning: "The memory of the host, from which ZFS derives the defaults of tunables.",
    },
];
pub(crate) const LEGACY_KEYS: [Key; 2] = [
    Key {
        name: "delay_slots",
        kind: "number, 1 or more, or `independent`",
        example: "1",
        default: "\"independent\"",
        meaning: "How many writers the legacy throttle delays at a time. With `1`, the delayed writer holds a lock, and other writers wait for it. Only with `write = \"legacy\"`.",
    },
    Key {
        name: "full_pipeline",
        kind: "rate of bytes",
        example: "\"100M\"",
        default: "none: the pool begins empty",
        meaning: "The simulation begins with one full transaction group that syncs at this rate, and one that waits. Only with `write = \"legacy\"`.",
    },
];

/// A pool that is being read. The throttle of the pool is known only after the pool's volumes are
/// read.
pub(crate) struct PoolDraft<'a> {
    section: Section<'a>,
    pub(crate) name: String,
    members: Vec<Vec<usize>>,
    pub(crate) layout: Layout,
    tunables: Tunables,
    bitmap: Option<PathBuf>,
    legacy: LegacyConfig,
    /// How many bytes the pool has for volumes.
    pub(crate) capacity: u64,
    /// How many bytes volumes have taken.
    pub(crate) allocated: u64,
    /// The block size of the first volume.
    pub(crate) block_size: Option<u32>,
    /// The throttle of the pool's write-back volumes, and the first volume that named it.
    pub(crate) throttle: Option<(Throttle, String)>,
}

/// The disks of the lab, and the pool of each.
pub(crate) struct Disks<'a> {
    pub(crate) names: Vec<&'a str>,
    pub(crate) sizes: Vec<u64>,
    pub(crate) pools: BTreeMap<usize, String>,
}

impl<'a> Disks<'a> {
    /// The disks with these names and sizes. None of these disks belongs to a pool yet.
    pub(crate) fn new(disks: impl Iterator<Item = (&'a str, u64)>) -> Disks<'a> {
        let (names, sizes) = disks.unzip();
        let pools = BTreeMap::new();
        Disks {
            names,
            sizes,
            pools,
        }
    }

    /// Gives a disk to a pool.
    fn take(&mut self, name: &str, pool: &str) -> Result<usize, ParseError> {
        let at = place_of("disk", name, &self.names)?;
        match self.pools.insert(at, pool.to_owned()) {
            None => Ok(at),
            Some(other) => Err(ParseError::new(format!(
                "disk '{name}' is in pool '{other}' already; leave it out of one place"
            ))),
        }
    }
}

/// Reads a pool, and takes its disks.
pub(crate) fn read_pool<'a>(
    section: Section<'a>,
    name: &str,
    disks: &mut Disks<'_>,
) -> Result<PoolDraft<'a>, ParseError> {
    let misplaced = |why: &str| section.error(section.start(), "", why);
    let name = parse_name(name).map_err(|error| misplaced(&error.to_string()))?;
    if name.contains('/') {
        return Err(misplaced(
            "the name of a pool has no '/': a '/' separates the names of a pool and a volume",
        ));
    }
    let known = names(&[&POOL_KEYS, &LEGACY_KEYS]);
    section.refuse_unknown(&[known, tunable::names()].concat())?;
    let members = section.nested_list("disks", |word| disks.take(word, &name))?;
    if members.is_empty() || members.iter().any(Vec::is_empty) {
        return Err(misplaced(
            "a pool or a mirror without disks; add disks = [\"a\", \"b\"] or [[\"a\", \"b\"], …]",
        ));
    }
    check_sides(&members, disks).or_else(|why| section.refuse("disks", &why))?;
    let layout = section.value("layout", parse_layout)?.unwrap_or_default();
    let capacity = pool_capacity(&members, layout, |disk| disks.sizes[disk]);
    let ram = section.value("ram", parse_size)?.unwrap_or(DEFAULT_RAM);
    Ok(PoolDraft {
        name,
        members,
        layout,
        tunables: read_tunables(&section, ram)?,
        bitmap: section.value("bitmap", |path| Ok(PathBuf::from(path)))?,
        legacy: read_legacy(&section)?,
        capacity,
        allocated: 0,
        block_size: None,
        throttle: None,
        section,
    })
}

/// Refuses a mirror whose sides are known to have different sizes.
fn check_sides(members: &[Vec<usize>], disks: &Disks<'_>) -> Result<(), String> {
    let size = |disk: usize| disks.sizes[disk];
    let is_known = |disk: &usize| size(*disk) != u64::MAX;
    for sides in members {
        let mut known = sides.iter().copied().filter(is_known);
        let Some(first) = known.next() else { continue };
        if let Some(other) = known.find(|disk| size(*disk) != size(first)) {
            let [first, other] =
                [first, other].map(|disk| (disks.names[disk], format_size(size(disk))));
            return Err(format!(
                "the sides of a mirror have one size, and '{}' has {}, '{}' {}: give both the same size",
                first.0, first.1, other.0, other.1
            ));
        }
    }
    Ok(())
}

fn parse_layout(text: &str) -> Result<Layout, ParseError> {
    match text {
        "static" => Ok(Layout::Static),
        "dynamic" => Ok(Layout::Dynamic),
        _ => Err(ParseError::new(format!(
            "'{text}' is not a layout: those are static and dynamic"
        ))),
    }
}

fn read_legacy(section: &Section<'_>) -> Result<LegacyConfig, ParseError> {
    let per_millisecond = |word: &str| parse_bandwidth(word).map(|rate| rate / 1_000);
    Ok(LegacyConfig {
        delay_slots: section.value("delay_slots", parse_slots)?.flatten(),
        full_pipeline: section.value("full_pipeline", per_millisecond)?,
    })
}

fn parse_slots(text: &str) -> Result<Option<u32>, ParseError> {
    if text == "independent" {
        return Ok(None);
    }
    let slots = text.parse().ok().filter(|slots| *slots > 0);
    slots.map(Some).ok_or_else(|| {
        ParseError::new(format!(
            "'{text}' slots are not possible: give 1 or more, or \"independent\""
        ))
    })
}

impl PoolDraft<'_> {
    /// Refuses the dynamic layout over disks whose bytes outlive the daemon, because the daemon keeps the
    /// table of places in memory, and would lose it. `stores` has the stores of the lab's disks.
    pub(crate) fn check_stores(&self, stores: &[StoreConfig]) -> Result<(), ParseError> {
        let stores = self.members.iter().flatten().map(|disk| &stores[*disk]);
        let Some(store) = stores.clone().find(|store| store.outlives_daemon()) else {
            return Ok(());
        };
        if self.layout == Layout::Static {
            return Ok(());
        }
        let why = format!(
            "'dynamic' keeps in memory where blocks are, and a disk of this pool has store = \"{store}\", \
             whose bytes no daemon could find after a restart: give its disks \"ram\" or \"lossy:ram\", or \
             leave layout out"
        );
        self.section.refuse("layout", &why)
    }

    /// Notes the block size of one more volume. Under the dynamic layout, all volumes have the same block
    /// size.
    pub(crate) fn take_block_size(&mut self, block_size: u32) -> Result<(), String> {
        let first = *self.block_size.get_or_insert(block_size);
        if self.layout == Layout::Static || first == block_size {
            return Ok(());
        }
        let [block_size, first] = [block_size, first].map(|size| format_size(size.into()));
        Err(format!(
            "blocks of {block_size}, and another volume of pool '{}' has blocks of {first}: under \
             layout = \"dynamic\" all have the same; give {first}, or make the layout static",
            self.name
        ))
    }

    /// The pool. Call this function after reading all volumes of the pool.
    pub(crate) fn finish(self) -> Result<PoolSpec, ParseError> {
        let throttle = self.throttle.map(|(throttle, _)| throttle);
        if throttle != Some(Throttle::Legacy)
            && let Some(key) = names(&[&LEGACY_KEYS])
                .into_iter()
                .find(|key| self.section.has(key))
        {
            return self.section.refuse(
                key,
                "only the legacy throttle has this; set write = \"legacy\" in a volume",
            );
        }
        Ok(PoolSpec {
            name: self.name,
            members: self.members,
            layout: self.layout,
            throttle: match throttle {
                Some(Throttle::OpenZfs) => ThrottleConfig::OpenZfs,
                Some(Throttle::Legacy) => ThrottleConfig::Legacy(self.legacy),
                Some(Throttle::None) | None => ThrottleConfig::None,
            },
            tunables: self.tunables,
            bitmap: self.bitmap,
        })
    }
}

/// The default memory of a modelled host. ZFS derives defaults of tunables from the memory of its
/// machine.
pub const DEFAULT_RAM: u64 = 8 << 30;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Throttle {
    None,
    OpenZfs,
    Legacy,
}

impl Throttle {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Throttle::None => "none",
            Throttle::OpenZfs => "openzfs",
            Throttle::Legacy => "legacy",
        }
    }
}
