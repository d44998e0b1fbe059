//! Checks that docs/lab.md has the tables of this build, and that its examples are valid labs.

use std::path::{Path, PathBuf};

use dashpot_rules::format_size;
use dashpot_sim::CALLS_MAX;

use crate::change::{ACTION_KEYS, TIME_KEYS};
use crate::file::{DISK_KEYS, SERVE_KEYS};
use crate::key::Key;
use crate::model::MODEL_KEYS;
use crate::pool::{LEGACY_KEYS, POOL_KEYS};
use crate::simulation::SIM_KEYS;
use crate::volume::VOLUME_KEYS;
use crate::workload::{CALL_KEYS, CLOSED_KEYS, COMMON_KEYS, OPEN_KEYS};
use crate::{LAB_BYTES_MAX, file, section, simulation, trace, workload};

/// The tables of keys, with the names that mark their places in the page.
const TABLES: [(&str, &[Key]); 13] = [
    ("disk", &DISK_KEYS),
    ("model", &MODEL_KEYS),
    ("serve", &SERVE_KEYS),
    ("pool", &POOL_KEYS),
    ("legacy", &LEGACY_KEYS),
    ("volume", &VOLUME_KEYS),
    ("workload", &COMMON_KEYS),
    ("calls", &CALL_KEYS),
    ("closed", &CLOSED_KEYS),
    ("open", &OPEN_KEYS),
    ("time", &TIME_KEYS),
    ("action", &ACTION_KEYS),
    ("sim", &SIM_KEYS),
];

/// The limits of a lab.
fn limits() -> [(&'static str, String); 11] {
    let count = |number: u64| number.to_string();
    [
        ("bytes of a lab file", format_size(LAB_BYTES_MAX)),
        ("bytes of a trace", format_size(trace::BYTES_MAX)),
        (
            "bytes of one I/O of a trace",
            format_size(trace::LENGTH_MAX),
        ),
        ("`block` of a workload", format_size(workload::BLOCK_MAX)),
        ("`rate` of a workload", count(workload::RATE_MAX)),
        (
            "`threads` of a workload",
            count(workload::THREADS_MAX.into()),
        ),
        ("`threads` of all workloads", count(simulation::THREADS_MAX)),
        ("tables of a kind", count(section::TABLES_MAX as u64)),
        ("calls in flight", count(CALLS_MAX as u64)),
        ("samples of a run", count(simulation::SAMPLES_MAX)),
        (
            "samples, multiplied by the number of disks and pools",
            count(simulation::SAMPLED_FIGURES_MAX),
        ),
    ]
}

fn table_of_keys(keys: &[Key]) -> String {
    let mut text = "| example | value | default | meaning |\n|---|---|---|---|\n".to_owned();
    for key in keys {
        text += &format!(
            "| `{} = {}` | {} | {} | {} |\n",
            key.name,
            key.example,
            key.kind,
            default_in_markdown(key),
            key.meaning
        );
    }
    text
}

fn default_in_markdown(key: &Key) -> String {
    if is_toml(key.default) {
        format!("`{}`", key.default)
    } else {
        key.default.to_owned()
    }
}

fn is_toml(value: &str) -> bool {
    file::parse_toml(&format!("key = {value}")).is_ok()
}

fn table_of_limits() -> String {
    let rows = limits().map(|(what, most)| format!("| {what} | {most} |\n"));
    format!("| | at most |\n|---|---|\n{}", rows.concat())
}

/// The page with the tables of this build in place of its own tables.
fn with_tables(page: &str) -> String {
    let keys = TABLES.map(|(name, keys)| (name, table_of_keys(keys)));
    let limits = [("limits", table_of_limits())];
    keys.into_iter()
        .chain(limits)
        .fold(page.to_owned(), |page, (name, table)| {
            let (start, end) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
            let (before, rest) = page.split_once(&start).expect(&start);
            let (_, after) = rest.split_once(&end).expect(&end);
            format!("{before}{start}{table}{end}{after}")
        })
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lab.md")
}

/// The blocks of the page that are labs.
fn examples() -> Vec<String> {
    let page = std::fs::read_to_string(path()).expect("the page");
    let blocks = page.split("```toml\n").skip(1);
    let blocks = blocks.filter_map(|rest| rest.split_once("```"));
    blocks.map(|(block, _)| block.to_owned()).collect()
}

#[test]
fn the_page_has_the_tables_of_this_build() {
    let page = std::fs::read_to_string(path()).expect("the page");
    let current = with_tables(&page);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path(), &current).expect("the page");
        return;
    }
    assert!(
        page == current,
        "docs/lab.md is not what a lab can have: run `UPDATE=1 cargo test -p dashpot-lab page`"
    );
}

#[test]
fn the_examples_of_the_page_are_labs() {
    let [serve, sim] = &examples()[..] else {
        panic!("one example for serve and one for sim");
    };
    let served = file::parse(serve).expect("a lab for serve");
    assert_eq!((served.disks.len(), served.nbd.len()), (4, 1));
    assert_eq!((served.pools.len(), served.volumes.len()), (1, 1));
    let simulated = simulation::parse(sim, Path::new("")).expect("a lab for sim");
    let scenario = simulated.scenario;
    assert_eq!((scenario.pools.len(), scenario.volumes.len()), (1, 2));
    assert_eq!((scenario.workloads.len(), scenario.commands.len()), (3, 3));
}

#[test]
fn every_table_of_a_lab_has_its_heading() {
    let page = std::fs::read_to_string(path()).expect("the page");
    for table in file::FILE_KEYS {
        let headed = [format!("\n## `[{table}"), format!("\n## `[[{table}")];
        assert!(
            headed.iter().any(|heading| page.contains(heading)),
            "{table}"
        );
    }
}

#[test]
fn examples_of_keys_are_toml() {
    for key in TABLES.into_iter().flat_map(|(_, keys)| keys) {
        assert!(is_toml(key.example), "{} = {}", key.name, key.example);
    }
}

/// A small lab that has this line in this table.
fn lab_with(table: &str, line: &str) -> String {
    let tables = [
        ("pool", "[pool.p]\ndisks = [\"a\"]\n"),
        ("volume", "[volume.\"p/v\"]\nsize = \"1M\"\n"),
        ("closed", "[workload.w]\ntarget = \"p/v\"\n"),
        ("open", "[workload.o]\ntarget = \"b\"\nrate = 10\n"),
        ("sim", "[sim]\n"),
        ("", "[disk.b]\nstore = \"null\"\n"),
        ("disk", "[disk.a]\nstore = \"ram\"\n"),
    ];
    let texts = tables.map(|(name, text)| {
        if name == table {
            format!("{text}{line}\n")
        } else {
            text.to_owned()
        }
    });
    texts.concat()
}

/// For each key that a simulation reads, checks that a lab which states the key's default equals a lab
/// without the key. Leaves out the keys of the legacy throttle, because they need a volume with that
/// throttle.
#[test]
fn defaults_are_what_a_lab_without_the_key_has() {
    let read = |text: &str| {
        let lab = simulation::parse(text, Path::new(""));
        format!("{:?}", lab.expect(text).scenario)
    };
    let without = read(&lab_with("none", ""));
    for (table, keys) in TABLES {
        let table = match table {
            "model" => "disk",
            "calls" | "workload" => "closed",
            other => other,
        };
        for key in keys.iter().filter(|key| is_toml(key.default)) {
            let line = format!("{} = {}", key.name, key.default);
            assert_eq!(read(&lab_with(table, &line)), without, "{line}");
        }
    }
}
