//! The text about data that a power cut destroyed.

use dashpot_api::{ClientLoss, Crashed, KeepWord, LostWrite, PoolCrashed, ThenWord};
use dashpot_rules::{nice_number, short_time};

use crate::table::{Column, Room, prose_within, table_within};

const CLIENTS: [Column; 3] = [
    Column::Text("client"),
    Column::Figure("lost writes"),
    Column::Figure("bytes"),
];

const WRITES: [Column; 5] = [
    Column::Figure("age"),
    Column::Figure("offset"),
    Column::Figure("length"),
    Column::Figure("missing"),
    Column::Text("client"),
];

/// The text about the power cut of a disk. The text lists at most `top` of the lost writes, and fits the
/// screen.
pub fn text(room: Room, crashed: &Crashed, top: usize) -> String {
    prose_within(room, &sentences(crashed)) + &lists(room, crashed, top)
}

/// The text about a disk of a pool.
fn of_disk(room: Room, crashed: &Crashed, top: usize) -> String {
    let line = format!("the cache of disk {}: {}\n", crashed.disk, sum(crashed));
    prose_within(room, &line) + &lists(room, crashed, top)
}

/// The lists of the writes that a disk lost and of the clients that sent them.
fn lists(room: Room, crashed: &Crashed, top: usize) -> String {
    let mut text = String::new();
    if crashed.clients.len() > 1 && !crashed.was_off {
        let clients = crashed.clients.iter().map(client_row);
        text += &format!("\n{}", table_within(room, &CLIENTS, clients));
    }
    let shown = crashed.writes.iter().take(top);
    if shown.len() > 0 {
        let hidden = crashed.lost.writes - shown.len() as u64;
        let writes = shown.map(write_row);
        text += &format!("\n{}", table_within(room, &WRITES, writes));
        if hidden > 0 {
            text += &format!("{hidden} younger ones are not shown; --top shows more\n");
        }
    }
    text
}

/// The text about the power cut of a pool. The text lists at most `top` of the lost writes of each disk.
pub fn pool_text(room: Room, crashed: &PoolCrashed, top: usize) -> String {
    let PoolCrashed { pool, then, .. } = crashed;
    if crashed.was_off {
        return prose_within(room, &was_off(pool));
    }
    let how = kept(crashed.keep, crashed.tear_bytes, crashed.seed);
    let lines = format!(
        "{}\n{}\n{}",
        headline(pool, &how, *then),
        txgs(crashed),
        to_restart(pool, *then)
    );
    let disks = crashed.disks.iter();
    let disks = disks.map(|disk| format!("\n{}", of_disk(room, disk, top)));
    prose_within(room, &lines) + &disks.collect::<String>()
}

fn txgs(crashed: &PoolCrashed) -> String {
    let lost = crashed.txgs.iter();
    let lost = lost.filter(|txg| txg.dirty_bytes > 0);
    let words = lost.map(|txg| format!("txg {} with {}", txg.txg, nice_number(txg.dirty_bytes)));
    let words: Vec<String> = words.collect();
    match (&words[..], crashed.then) {
        (_, ThenWord::GoOn) => "its host kept its memory, so no txg is lost".to_owned(),
        ([], _) => "its memory had nothing to lose".to_owned(),
        (words, _) => format!(
            "lost from memory: {}; clients had been told that these writes were done",
            words.join(", ")
        ),
    }
}

fn sentences(crashed: &Crashed) -> String {
    let disk = &crashed.disk;
    if crashed.was_off {
        return was_off(disk);
    }
    let how = kept(crashed.keep, crashed.tear_bytes, crashed.seed);
    let mut text = format!(
        "{}\n{}\n{}",
        headline(disk, &how, crashed.then),
        sum(crashed),
        to_restart(disk, crashed.then)
    );
    if crashed.unacknowledged > 0 {
        text += &unacknowledged(crashed);
    }
    if crashed.early_bytes > 0 {
        text += &format!(
            "{} had reached the medium before the cut without a flush: the cache of 64M\n\
             was full\n",
            nice_number(crashed.early_bytes)
        );
    }
    text
}

fn was_off(name: &str) -> String {
    format!("{name} was off, and is served again as the power cut left it\n")
}

fn to_restart(name: &str, then: ThenWord) -> String {
    match then {
        ThenWord::Off => {
            format!("it is off; to serve what survived: dashpot crash {name} --restart\n")
        }
        _ => String::new(),
    }
}

/// Says how the surviving writes were chosen, so that the user can choose the same writes again.
fn kept(keep: KeepWord, tear_bytes: Option<u64>, seed: u64) -> String {
    match (keep, tear_bytes) {
        (KeepWord::None, _) => "keep none".to_owned(),
        (KeepWord::All, _) => "keep all".to_owned(),
        (KeepWord::Random, None) => format!("keep random, seed {seed}"),
        (KeepWord::Random, Some(unit)) => format!("keep random, torn at {unit}, seed {seed}"),
    }
}

fn headline(name: &str, kept: &str, then: ThenWord) -> String {
    format!("{name}: power cut ({kept}); {}", state(then))
}

/// The state after a power cut.
fn state(then: ThenWord) -> &'static str {
    match then {
        ThenWord::GoOn => "it keeps serving",
        ThenWord::Off => "no client can connect",
        ThenWord::Restart => "it is served again",
    }
}

fn sum(crashed: &Crashed) -> String {
    let (lost, of) = (&crashed.lost, &crashed.unflushed);
    if of.writes == 0 {
        return "nothing to lose: a flush had covered every acknowledged write".to_owned();
    }
    let torn = match crashed.torn {
        0 => String::new(),
        torn => format!("\n{torn} of them are torn: a part of each has survived"),
    };
    format!(
        "lost {} of {} acknowledged writes that no flush had covered, {} of {}{torn}",
        lost.writes,
        of.writes,
        nice_number(lost.bytes),
        nice_number(of.bytes)
    )
}

fn unacknowledged(crashed: &Crashed) -> String {
    let count = crashed.unacknowledged;
    match crashed.then {
        ThenWord::GoOn => format!("{count} more were in flight, and are not affected\n"),
        _ => format!("{count} more are gone, but no client was told that they were done\n"),
    }
}

fn client_row(client: &ClientLoss) -> Vec<String> {
    vec![
        client.client.clone(),
        client.lost.writes.to_string(),
        nice_number(client.lost.bytes),
    ]
}

fn write_row(write: &LostWrite) -> Vec<String> {
    vec![
        short_time(write.age_ns),
        write.offset_bytes.to_string(),
        write.length_bytes.to_string(),
        write.missing_bytes.to_string(),
        write.client.clone(),
    ]
}

#[cfg(test)]
mod tests {
    use dashpot_api::{ClientLoss, Crashed, KeepWord, LostWrite, ThenWord, WriteSum};

    use super::text;
    use crate::table::{Room, assert_fits};
    use expect_test::expect;

    fn sum(writes: u64, bytes: u64) -> WriteSum {
        WriteSum { writes, bytes }
    }

    fn crashed() -> Crashed {
        let client = |pid: u32| format!("uid=1000 pid={pid}");
        let write = |pid, offset_bytes, missing_bytes| LostWrite {
            client: client(pid),
            offset_bytes,
            length_bytes: 8192,
            missing_bytes,
            age_ns: 1_250_000_000,
        };
        let of = |pid, writes| ClientLoss {
            client: client(pid),
            lost: sum(writes, 8192),
        };
        Crashed {
            disk: "d".to_owned(),
            keep: KeepWord::Random,
            tear_bytes: Some(512),
            seed: 4_294_967_295,
            then: ThenWord::Off,
            was_off: false,
            unflushed: sum(40, 327_680),
            lost: sum(12, 90_112),
            torn: 3,
            unacknowledged: 2,
            early_bytes: 1 << 20,
            clients: vec![of(4711, 11), of(4712, 1)],
            writes: vec![
                write(4711, (1 << 40) - 8192, 512),
                write(4712, 0, 8192),
                write(4711, 8192, 8192),
            ],
        }
    }

    #[test]
    fn it_says_what_was_lost_in_80_columns() {
        let said = text(Room::UNBOUNDED, &crashed(), 2);
        assert_fits(Room(Some(80)), &said);
        expect![[r#"
            d: power cut (keep random, torn at 512, seed 4294967295); no client can connect
            lost 12 of 40 acknowledged writes that no flush had covered, 88K of 320K
            3 of them are torn: a part of each has survived
            it is off; to serve what survived: dashpot crash d --restart
            2 more are gone, but no client was told that they were done
            1M had reached the medium before the cut without a flush: the cache of 64M
            was full

            client             lost writes  bytes
            uid=1000 pid=4711           11     8K
            uid=1000 pid=4712            1     8K

              age         offset  length  missing  client
            1.25s  1099511619584    8192      512  uid=1000 pid=4711
            1.25s              0    8192     8192  uid=1000 pid=4712
            10 younger ones are not shown; --top shows more
        "#]]
        .assert_eq(&said);
    }

    #[test]
    fn it_fits_the_screen_whatever_the_names() {
        let long = "a-disk-of-a-name-that-nobody-would-type-twice-0".repeat(2);
        let client = "uid=4294967295 pid=2147483647".to_owned();
        let mut named = Crashed {
            disk: long,
            ..crashed()
        };
        named.clients[0].client.clone_from(&client);
        named.writes[0].client = client;
        for columns in [60, 80, 100] {
            let room = Room(Some(columns));
            assert_fits(room, &text(room, &named, 2));
        }
    }

    #[test]
    fn nothing_lost_is_said() {
        let clean = Crashed {
            keep: KeepWord::None,
            then: ThenWord::Restart,
            unflushed: sum(0, 0),
            lost: sum(0, 0),
            unacknowledged: 0,
            early_bytes: 0,
            clients: Vec::new(),
            writes: Vec::new(),
            ..crashed()
        };
        expect![[r#"
            d: power cut (keep none); it is served again
            nothing to lose: a flush had covered every acknowledged write
        "#]]
        .assert_eq(&text(Room::UNBOUNDED, &clean, 10));
        let restarted = Crashed {
            was_off: true,
            ..clean
        };
        expect![[r#"
            d was off, and is served again as the power cut left it
        "#]]
        .assert_eq(&text(Room::UNBOUNDED, &restarted, 10));
    }
}
