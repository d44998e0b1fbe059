use std::path::Path;

use dashpot_rules::{Listen, ParseError, StoreConfig, parse_disk, parse_disk_injection};

use crate::{Lab, file};

const WHOLE: &str = r#"
[disk.slow]
store = "ram"
size  = "2G"
block = "4K"
rules = ["-D 10ms:1 -T read", "-D 500ms -f 1% --name tail"]

[disk."a/b"]
store = "lossy:file:b.img"
read_only = true

[serve]
nbd = ["unix:-", "tcp:127.0.0.1:0"]
api = "unix:/run/dashpot/api.sock"
shards = 2
"#;

fn lab_of(file: Option<&Path>, disks: &[&str], rules: &[&str]) -> Result<Lab, ParseError> {
    let disks: Vec<_> = disks
        .iter()
        .map(|disk| parse_disk(disk).expect(disk))
        .collect();
    let rules: Vec<_> = rules
        .iter()
        .map(|rule| parse_disk_injection(rule).expect(rule))
        .collect();
    Lab::of(file, &disks, &rules)
}

fn refusal<T: std::fmt::Debug>(result: Result<T, ParseError>) -> String {
    result.expect_err("a refusal").to_string()
}

#[test]
fn a_whole_lab_file() {
    let lab = file::parse(WHOLE).expect("a lab");
    let [slow, other] = lab.disks.as_slice() else {
        panic!("two disks");
    };
    assert_eq!(
        (slow.config.name.as_str(), slow.config.size),
        ("slow", Some(2 << 30))
    );
    assert_eq!((slow.config.block, slow.config.read_only), (4_096, false));
    assert_eq!(slow.injections[0].rules[0].words, "-D 10ms:1 -T read");
    assert_eq!(slow.injections[1].name.as_deref(), Some("tail"));
    assert_eq!(
        (other.config.name.as_str(), other.config.size),
        ("a/b", None)
    );
    assert!(other.config.read_only);
    assert_eq!(
        (lab.nbd.len(), &lab.nbd[0], lab.shards),
        (2, &Listen::Private, Some(2))
    );
    assert!(lab.api.is_some());
}

#[test]
fn mistakes_name_their_line_place_and_remedy() {
    for (text, message) in [
        (
            "[disk.a]\nstore = \"ram\"\nsise = \"1G\"",
            "3: [disk.a] sise: unknown key; did you mean 'size'?",
        ),
        (
            "[disk.a]\nstore = \"ram\"\ncolour = 1",
            "3: [disk.a] colour: unknown key; known are store, size, offset, block, \
             read_only, rotational, rules, service, rate, lanes, bandwidth, flush",
        ),
        (
            "[server]\nnbd = []",
            "1: server: unknown key; did you mean 'serve'?",
        ),
        (
            "[serve]\nndb = []",
            "2: [serve] ndb: unknown key; did you mean 'nbd'?",
        ),
        (
            "[pool.tank]\ndisks = []",
            "1: [pool.tank]: a pool or a mirror without disks; add disks = [\"a\", \"b\"] or \
             [[\"a\", \"b\"], …]",
        ),
        (
            "\n[volume.\"tank/foo\"]\nsize = \"1G\"",
            "2: [volume.tank/foo]: there is no pool 'tank'; the lab has no pool at all",
        ),
        (
            "[disk.a]\nstore = \"ram\"\n[pool.tank]\ndisks = [\"a\"]\nfull_pipeline = \"1M\"\n\
             [volume.\"tank/foo\"]\nsize = \"1M\"\nwrite = \"legacy\"",
            "5: [pool.tank] full_pipeline: only a simulation begins like this: leave it out, or use \
             `dashpot sim`",
        ),
        (
            "[disk.a]\nstore = \"dev:/dev/vdb\"\n[pool.tank]\ndisks = [\"a\"]\nlayout = \"dynamic\"\n\
             [volume.\"tank/foo\"]\nsize = \"1M\"",
            "5: [pool.tank] layout: 'dynamic' keeps in memory where blocks are, and a disk of this pool has \
             store = \"dev:/dev/vdb\", whose bytes no daemon could find after a restart: give its disks \
             \"ram\" or \"lossy:ram\", or leave layout out",
        ),
        (
            "[disk.a]\nsize = \"1G\"",
            "1: [disk.a]: no store; add store = \"ram\"",
        ),
        (
            "[disk.a]\nstore = \"ram\"\nsize = \"1GB\"",
            "3: [disk.a] size: 'GB' in '1GB' is not a unit of size: those are K, M, G and T (powers \
             of 1024)",
        ),
        (
            "[disk.a]\nstore = \"ram\"\nrules = [\"-D 10:1\"]",
            "3: [disk.a] rules: invalid value '10:1' for '-D <SERVICE[:LANES]>': '10:1' has no \
             unit: did you mean 10ms:1?",
        ),
        (
            "[disk.a]\nstore = \"ram\"\nrules = \"-D 10ms\"",
            "3: [disk.a] rules: this is of type string; write a list of strings: [\"…\", \"…\"]",
        ),
        (
            "[disk.a]\nstore = \"ram\"\nread_only = \"yes\"",
            "3: [disk.a] read_only: this is of type string; write true or false",
        ),
        (
            "[disk.7]\nstore = \"ram\"",
            "1: [disk.7]: '7' is not a name: it has no letter, and numbers are the ids of rules",
        ),
        (
            "disk = 1",
            "1: disk: this is of type integer; write a table: [disk.NAME] or [serve]",
        ),
    ] {
        assert_eq!(refusal(file::parse(text)), message, "{text}");
    }
    let twice = "[disk.a]\nstore = \"ram\"\n[disk.a]\nstore = \"ram\"";
    assert!(refusal(file::parse(twice)).starts_with("3: duplicate"));
    assert!(refusal(file::parse("[disk.a]\nstore = ")).starts_with("2: "));
}

#[test]
fn disks_keep_the_order_of_the_file() {
    let text = ["z", "a", "m"]
        .map(|name| format!("[disk.{name}]\nstore = \"null\"\n"))
        .concat();
    let lab = file::parse(&text).expect("a lab");
    assert_eq!(lab.names().collect::<Vec<_>>(), ["z", "a", "m"]);
}

#[test]
fn the_default_lab_is_two_disks_and_a_pool() {
    let lab = lab_of(None, &[], &["c1t2d0 -D 10ms"]).expect("a lab");
    let names = ["c1t1d0", "c1t2d0", "c2t1d0", "c2t2d0"];
    assert_eq!(lab.names().collect::<Vec<_>>(), names);
    let sizes = lab.disks.iter().map(|disk| disk.config.size);
    assert_eq!(sizes.flatten().sum::<u64>(), 5 << 29);
    let rules = lab.disks.iter().map(|disk| disk.injections.len());
    assert_eq!(rules.collect::<Vec<_>>(), [0, 1, 0, 0]);
    assert_eq!(lab.volumes[0].name, "tank/foo");
}

#[test]
fn disks_of_the_command_line_take_the_default_labs_place() {
    let lab = lab_of(None, &["d0=ram"], &["-D 2ms", "d0 -D 5ms"]).expect("a lab");
    assert_eq!(lab.names().collect::<Vec<_>>(), ["d0"]);
    assert_eq!(lab.disks[0].injections.len(), 2);
}

#[test]
fn disks_are_told_apart_and_rules_find_theirs() {
    assert_eq!(
        refusal(lab_of(None, &["d0=ram", "d0=null"], &[])),
        "-d d0: there is a disk with this name already; choose another"
    );
    assert_eq!(
        refusal(lab_of(None, &[], &["c1t1d1 -D 1ms"])),
        "-r c1t1d1: there is no such disk; did you mean 'c1t1d0'?"
    );
    assert_eq!(
        refusal(lab_of(None, &[], &["-D 1ms"])),
        "-r -D 1ms -T read,write,zero: the lab has several disks; put one's name first"
    );
}

#[test]
fn a_file_and_the_command_line_add_up() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("lab.toml");
    std::fs::write(&path, WHOLE).expect("a file");
    let lab = lab_of(Some(&path), &["more=null"], &[]).expect("a lab");
    assert_eq!(lab.names().collect::<Vec<_>>(), ["slow", "a/b", "more"]);
    assert_eq!(lab.shards, Some(2));
    let beside_the_lab = StoreConfig::File(dir.path().join("b.img"));
    assert_eq!(
        lab.disks[1].config.store,
        StoreConfig::Lossy(Box::new(beside_the_lab))
    );
    assert!(refusal(lab_of(Some(&path), &["slow=ram"], &[])).contains("already"));
}

#[test]
fn a_file_that_cannot_be_read_or_serves_nothing_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("lab.toml");
    let from_file = || lab_of(Some(&path), &[], &[]);
    assert!(refusal(from_file()).contains("cannot be read: No such file"));
    std::fs::write(&path, "[disk.a]\nstor = \"ram\"").expect("a file");
    let place = format!(
        "{}:2: [disk.a] stor: unknown key; did you mean 'store'?",
        path.display()
    );
    assert_eq!(refusal(from_file()), place);
    std::fs::write(&path, "").expect("a file");
    assert!(refusal(from_file()).contains("no disk"));
}

#[test]
fn a_range_beyond_the_disk_is_refused() {
    let lab = |disk, rule| lab_of(None, &[disk], &[rule]);
    let refused = refusal(lab("d=ram,size=1M", "-D 1ms --range 1M..2M"));
    assert!(refused.contains("--range begins at 1M"), "{refused}");
    assert!(refused.contains("disk d at 1M"), "{refused}");
    assert!(lab("d=ram,size=1M", "-D 1ms --range 1023K..2M").is_ok());
    assert!(lab("d=file:/a", "-D 1ms --range 1M..2M").is_ok());
}

#[test]
fn a_disk_of_a_file_ends_with_a_block() {
    let text = "[disk.d]\nstore = \"ram\"\nsize = \"1000\"\nblock = \"512\"\n";
    let refused = refusal(file::parse(text));
    assert!(
        refused.starts_with("1: [disk.d]: a size of 1000"),
        "{refused}"
    );
}
