//! Reads from a lab file what a daemon needs: the disks, pools and volumes, and `[serve]`.

use dashpot_rules::{
    DEFAULT_BLOCK, DEFAULT_SIZE, DiskConfig, ParseError, PoolSpec, block_size, check_blocks,
    check_offset, disk_offset, disk_size, needs_size, parse_injection, parse_listen, parse_name,
    parse_shards, parse_size, parse_store,
};
use toml::Spanned;
use toml::de::DeTable;

use crate::joined::read_joined;
use crate::key::{Key, names};
use crate::model::MODEL_KEYS;
use crate::pool::Disks;
use crate::section::{Section, line_of};
use crate::served::{Lab, LabDisk};

/// The tables of a lab. A daemon ignores workloads, and the changes and settings of simulations. A
/// simulation ignores addresses.
pub(crate) const FILE_KEYS: [&str; 7] =
    ["disk", "pool", "volume", "serve", "workload", "at", "sim"];
pub(crate) const DISK_KEYS: [Key; 7] = [
    Key {
        name: "store",
        kind: "store",
        example: "\"lossy:file:db.img\"",
        default: "none: it must be given",
        meaning: "Where the bytes are: `ram`, `null` (writes vanish, reads are zeroes), `file:PATH` (relative to the lab file), `dev:PATH` (a block device, such as `dev:/dev/vdb`, for this daemon alone), or `lossy:` before one of them ([a cache that a power cut empties](power-cuts.md)); for `run` also `path:DIR` ([the files of a program](path.md)). A simulation keeps no bytes; write `null` there.",
    },
    Key {
        name: "size",
        kind: "size",
        example: "\"2G\"",
        default: "1G for `ram` and `null`; that of the file",
        meaning: "The size of the disk, a multiple of `block`. A simulation opens no file, so a disk on a `file:` needs this key there.",
    },
    Key {
        name: "offset",
        kind: "size",
        example: "\"1M\"",
        default: "0",
        meaning: "Where the disk begins in its file or on its block device, in whole blocks of the device. The bytes before it stay as they are. A simulation does not use it.",
    },
    Key {
        name: "block",
        kind: "size",
        example: "\"4K\"",
        default: "1",
        meaning: "The smallest read or write that the daemon serves: a power of two up to 64K. A simulation does not use it.",
    },
    Key {
        name: "read_only",
        kind: "true or false",
        example: "true",
        default: "false",
        meaning: "Whether the daemon refuses writes. A simulation does not use it.",
    },
    Key {
        name: "rotational",
        kind: "true or false",
        example: "true",
        default: "false",
        meaning: "Whether the disk has a head that moves: a pool joins more I/Os for it.",
    },
    Key {
        name: "rules",
        kind: "list of rules",
        example: "[\"-D 10ms:1 -T read --name slow\"]",
        default: "[]",
        meaning: "Rules that are armed at the start, each in the words of `dashpot inject` without the disk.",
    },
];
pub(crate) const SERVE_KEYS: [Key; 5] = [
    Key {
        name: "nbd",
        kind: "list of addresses",
        example: "[\"tcp:127.0.0.1:10809\"]",
        default: "`nbd.sock` in the runtime directory",
        meaning: "Where NBD clients connect; `--nbd` overrides it.",
    },
    Key {
        name: "api",
        kind: "address",
        example: "\"unix:/run/dashpot/api.sock\"",
        default: "`api.sock` in the runtime directory",
        meaning: "Where the API listens; `--api` or `DASHPOT_API` overrides it.",
    },
    Key {
        name: "metrics",
        kind: "address",
        example: "\"tcp:127.0.0.1:9100\"",
        default: "none",
        meaning: "Where Prometheus scrapes `/metrics`; `--metrics` overrides it.",
    },
    Key {
        name: "shards",
        kind: "number, 1 to 64",
        example: "2",
        default: "one per CPU, at most 2",
        meaning: "Threads that serve disks; `--shards` overrides it.",
    },
    Key {
        name: "events",
        kind: "size",
        example: "\"256M\"",
        default: "\"64M\"",
        meaning: "Memory for the I/Os that finished last, which `snoop --last` and `heatmap --last` show; 0 for none. `--events` overrides it.",
    },
];

/// Reads a lab for a daemon. An error begins with the number of its line.
pub(crate) fn parse(text: &str) -> Result<Lab, ParseError> {
    let table = parse_toml(text)?;
    let file = Section::of_file(text, table.get_ref());
    file.refuse_unknown(&FILE_KEYS)?;
    let mut lab = Lab::default();
    for (name, section) in file.named("disk")? {
        lab.disks.push(read_disk(&section, name)?);
    }
    read_pools(&file, &mut lab)?;
    if let Some(table) = file.table("serve")? {
        let start = file.span_of("serve").unwrap_or_default();
        read_serve(&file.below("[serve]", start, table), &mut lab)?;
    }
    Ok(lab)
}

pub(crate) fn parse_toml(text: &str) -> Result<Spanned<DeTable<'_>>, ParseError> {
    DeTable::parse(text).map_err(|error| {
        let line = line_of(text, error.span().map_or(0, |span| span.start));
        ParseError::new(format!("{line}: {}", error.message()))
    })
}

pub(crate) fn read_disk(section: &Section<'_>, name: &str) -> Result<LabDisk, ParseError> {
    let misplaced = |why: &str| section.error(section.start(), "", why);
    let name = parse_name(name).map_err(|error| misplaced(&error.to_string()))?;
    // This check comes before the check for a missing store, because a store is most often missing when its
    // key has a typo.
    section.refuse_unknown(&names(&[&DISK_KEYS, &MODEL_KEYS]))?;
    let store = section.value("store", parse_store)?;
    let store = store.ok_or_else(|| misplaced("no store; add store = \"ram\""))?;
    let default_size = needs_size(&store).then_some(DEFAULT_SIZE);
    let config = DiskConfig {
        name,
        store,
        size: section.value("size", disk_size)?.or(default_size),
        offset: section.value("offset", disk_offset)?.unwrap_or(0),
        block: section.value("block", block_size)?.unwrap_or(DEFAULT_BLOCK),
        read_only: section.flag("read_only")?.unwrap_or(false),
        rotational: section.flag("rotational")?.unwrap_or(false),
    };
    check_offset(&config)
        .and_then(|()| check_blocks(&config))
        .map_err(|error| misplaced(&error.to_string()))?;
    let injections = section.list("rules", |words| parse_injection(words)?.unleased())?;
    Ok(LabDisk { config, injections })
}

/// Reads the pools and volumes. dashpot knows the size of a disk on a file only when it opens the file, so
/// the shard checks such a disk.
fn read_pools(file: &Section<'_>, lab: &mut Lab) -> Result<(), ParseError> {
    let disks = lab.disks.iter().map(|disk| {
        let size = disk.config.size.unwrap_or(u64::MAX);
        (disk.config.name.as_str(), size)
    });
    let joined = read_joined(file, &mut Disks::new(disks))?;
    let pooled = joined.pools.iter().flat_map(PoolSpec::disks).count();
    let reaches_nothing = joined.volumes.is_empty() && pooled == lab.disks.len();
    for (name, section) in file.named("pool")? {
        if reaches_nothing {
            let why = format!("clients reach only volumes: add [volume.\"{name}/NAME\"]");
            return Err(section.error(section.start(), "", &why));
        }
        if section.has("full_pipeline") {
            let why = "only a simulation begins like this: leave it out, or use `dashpot sim`";
            return section.refuse("full_pipeline", why);
        }
    }
    (lab.pools, lab.volumes) = (joined.pools, joined.volumes);
    Ok(())
}

fn read_serve(section: &Section<'_>, lab: &mut Lab) -> Result<(), ParseError> {
    section.refuse_unknown(&names(&[&SERVE_KEYS]))?;
    lab.nbd = section.list("nbd", parse_listen)?;
    lab.api = section.value("api", parse_listen)?;
    lab.metrics = section.value("metrics", parse_listen)?;
    lab.shards = section.value("shards", parse_shards)?;
    lab.events = section.value("events", parse_size)?;
    Ok(())
}
