//! Lines and tables about the daemon's health: its CPU time, its shards' load, its memory, and its promises
//! about time.

use dashpot_api::{CanHold, Host, Load, Memory, Promise, Shard};
use dashpot_rules::{cpus_of, nice_number, short_time, thousands};

use crate::table::{Column, Room, prose_within, table_within, time_or_dash};

const SHARDS: [Column; 9] = [
    Column::Figure("shard"),
    Column::Text("state"),
    Column::Figure("busy"),
    Column::Figure("loop gap p50"),
    Column::Figure("p99"),
    Column::Figure("max"),
    Column::Figure("probe p50"),
    Column::Figure("max"),
    Column::Figure("n"),
];

const PROMISES: [Column; 3] = [
    Column::Text("promise"),
    Column::Text("can hold"),
    Column::Text("why"),
];

/// The line about the CPU time that the host gives the daemon.
pub fn host_line(host: &Host) -> String {
    let cpus = host.cpus;
    let quota = match host.quota_millicpus {
        None => "no quota".to_owned(),
        Some(quota) => format!("a quota of {}", cpus_of(quota)),
    };
    let throttled = throttled(host).map_or_else(String::new, |what| format!(", {what}"));
    let steal = match host.steal_percent {
        Some(steal) => format!("{steal:.1} %"),
        None => "unknown".to_owned(),
    };
    format!("CPUs: {cpus}, {quota}{throttled}; steal since the start: {steal}\n")
}

/// A table of the shards' load: how busy they are, how long they left their sockets unread, the timing errors
/// that the daemon measured in the last minute ([`dashpot_api::Probe`]), and how the host stopped them.
pub fn shard_table(room: Room, shards: &[Shard]) -> String {
    let row = |shard: &Shard| {
        let (gap, probe) = (&shard.loop_gap, &shard.probe);
        vec![
            shard.shard.to_string(),
            state(shard),
            format!("{} %", shard.load.busy_percent),
            time_or_dash(gap.p50_ns),
            time_or_dash(gap.p99_ns),
            time_or_dash(gap.max_ns),
            time_or_dash(probe.p50_ns),
            time_or_dash(probe.max_ns),
            probe.n.to_string(),
        ]
    };
    let unread = shards.iter().all(|shard| shard.probe.n == 0);
    let note = "the probe is off: no client has asked for anything in the last minute\n";
    let stops = shards.iter().filter_map(stop_note).collect::<String>();
    let notes = if unread { note } else { "" }.to_owned() + &stops;
    table_within(room, &SHARDS, shards.iter().map(row)) + &prose_within(room, &notes)
}

fn stop_note(shard: &Shard) -> Option<String> {
    let (all, last) = (shard.stops.all, shard.stops.last_age_ns?);
    let times = if all.count == 1 { "time" } else { "times" };
    Some(format!(
        "the host stopped shard {}: {} {times}, {} in all, at most {}, last {} ago\n",
        shard.shard,
        all.count,
        short_time(all.total_ns),
        short_time(all.longest_ns),
        short_time(last),
    ))
}

fn state(shard: &Shard) -> String {
    let state = match (shard.load.overloaded, shard.spins) {
        (true, _) => "overloaded",
        (false, true) => "spins",
        (false, false) => "sleeps",
    };
    match shard.load.overloaded_seconds {
        0 => state.to_owned(),
        seconds => format!("{state} (overloaded for {seconds} s)"),
    }
}

/// Lines about the memory that the shards hold for their clients and that the API holds for its callers, each
/// with its bound.
pub fn memory_lines(room: Room, shards: &[Shard], memory: &Memory) -> String {
    let clients = |shard: &Shard| {
        let held = &shard.memory;
        format!(
            "shard {} holds: {} of {} zios, {} of {} payload, {} of {} buffers\n",
            shard.shard,
            thousands(held.zios.into()),
            thousands(held.zios_max.into()),
            nice_number(held.payload_bytes),
            nice_number(held.payload_max_bytes),
            nice_number(held.buffered_bytes),
            nice_number(held.buffered_max_bytes),
        )
    };
    let callers = format!(
        "the API holds: {} of {} answers, {} of {} rules, {} of {} lanes\n",
        nice_number(memory.answers_bytes),
        nice_number(memory.answers_max_bytes),
        thousands(memory.rules),
        thousands(memory.rules_max),
        thousands(memory.lanes),
        thousands(memory.lanes_max),
    );
    let lines: String = shards.iter().map(clients).chain([callers]).collect();
    prose_within(room, &lines)
}

/// A table of all promises about time.
pub fn promise_table(room: Room, promises: &[Promise]) -> String {
    table_within(room, &PROMISES, promises.iter().map(promise_row))
}

/// A table of the promises about time that do not certainly hold on this host. If there are none, a line says
/// so.
pub fn broken_promises(room: Room, promises: &[Promise]) -> String {
    let broken = promises.iter().filter(|one| one.can_hold != CanHold::Yes);
    let rows: Vec<Vec<String>> = broken.map(promise_row).collect();
    if rows.is_empty() {
        "every promise about time can hold here\n".to_owned()
    } else {
        table_within(room, &PROMISES, rows)
    }
}

fn promise_row(promise: &Promise) -> Vec<String> {
    let can_hold = match promise.can_hold {
        CanHold::Yes => "yes",
        CanHold::Doubtful => "doubtful",
        CanHold::No => "no",
    };
    vec![
        promise.promise.clone(),
        can_hold.to_owned(),
        promise.why.clone(),
    ]
}

/// A note on a shard that was overloaded at some time since the start. An overloaded shard makes all rules on
/// its disks late.
pub fn overload_note(shard: &Shard) -> Option<String> {
    let Load {
        busy_percent,
        overloaded_seconds,
        ..
    } = shard.load;
    (overloaded_seconds > 0).then(|| {
        format!(
            "shard {} (disks {}): busy for {busy_percent} % of its time, overloaded for \
             {overloaded_seconds} s since the start: accuracy is not promised then",
            shard.shard,
            shard.disks.join(", "),
        )
    })
}

/// A note on how often and for how long the kernel stopped the daemon to enforce its CPU quota.
pub fn quota_note(host: &Host) -> Option<String> {
    let what = throttled(host)?;
    let quota = host
        .quota_millicpus
        .map_or_else(String::new, |quota| format!(" of {}", cpus_of(quota)));
    Some(format!(
        "the CPU quota{quota}: {what}; latencies are distorted"
    ))
}

fn throttled(host: &Host) -> Option<String> {
    let (stopped, periods) = (host.throttled_periods, host.quota_periods);
    let lasted = short_time(host.throttled_ns);
    (stopped > 0).then(|| {
        format!("stopped in {stopped} of {periods} periods since the start, {lasted} in all")
    })
}

#[cfg(test)]
mod tests {
    use dashpot_api::{ClientMemory, Host, Load, Memory, Probe, Shard, StopTotals, Stops};

    use super::{Room, host_line, memory_lines, overload_note, quota_note, shard_table};
    use expect_test::expect;

    fn host(quota: Option<u64>, stopped: u64) -> Host {
        Host {
            cpus: 2,
            quota_millicpus: quota,
            quota_periods: 21,
            throttled_periods: stopped,
            throttled_ns: 1_080_000_000,
            steal_percent: Some(12.34),
        }
    }

    #[test]
    fn what_a_quota_has_stopped_is_said() {
        assert_eq!(
            host_line(&host(Some(200), 20)),
            "CPUs: 2, a quota of 0.20 CPUs, stopped in 20 of 21 periods since the start, 1.08s in \
             all; steal since the start: 12.3 %\n"
        );
        assert!(
            quota_note(&host(Some(200), 20))
                .unwrap()
                .contains("20 of 21")
        );
    }

    #[test]
    fn a_quota_that_has_stopped_nothing_is_no_news() {
        assert_eq!(quota_note(&host(Some(200), 0)), None);
        assert_eq!(
            host_line(&host(None, 0)),
            "CPUs: 2, no quota; steal since the start: 12.3 %\n"
        );
    }

    fn shard(shard: usize, busy_percent: u32, overloaded_seconds: u64, n: u64) -> Shard {
        Shard {
            shard,
            disks: vec!["a".to_owned(), "b".to_owned()],
            spins: true,
            load: Load {
                busy_percent,
                overloaded: busy_percent > 50,
                overloaded_seconds,
            },
            memory: ClientMemory {
                zios: 12,
                zios_max: 262_144,
                payload_bytes: 1_572_864,
                payload_max_bytes: 352 << 20,
                buffered_bytes: 0,
                buffered_max_bytes: 64 << 20,
                connections: 3,
            },
            loop_gap: Default::default(),
            stops: Stops::default(),
            probe: Probe {
                n,
                ..Probe::default()
            },
        }
    }

    #[test]
    fn shards_show_whether_they_keep_up() {
        expect![[r#"
            shard  state                             busy  loop gap p50  p99  max  probe p50  max   n
                0  overloaded (overloaded for 12 s)  83 %             -    -    -          -    -  40
                1  spins (overloaded for 7 s)         3 %             -    -    -          -    -   0
        "#]]
        .assert_eq(&shard_table(Room::UNBOUNDED, &[shard(0, 83, 12, 40), shard(1, 3, 7, 0)]));
        expect![[r#"
            shard  state  busy  loop gap p50  p99  max  probe p50  max  n
                0  spins   0 %             -    -    -          -    -  0
            the probe is off: no client has asked for anything in the last minute
        "#]]
        .assert_eq(&shard_table(Room::UNBOUNDED, &[shard(0, 0, 0, 0)]));
    }

    #[test]
    fn what_is_held_is_said_beside_the_most_that_may_be() {
        let memory = Memory {
            answers_bytes: 3 << 20,
            answers_max_bytes: 256 << 20,
            rules: 3,
            rules_max: 4_096,
            rules_forgotten: 0,
            lanes: 70,
            lanes_max: 1 << 20,
        };
        let text = memory_lines(Room::UNBOUNDED, &[shard(0, 3, 0, 0)], &memory);
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        expect![[r#"
            shard 0 holds: 12 of 262,144 zios, 1.50M of 352M payload, 0 of 64M buffers
            the API holds: 3M of 256M answers, 3 of 4,096 rules, 70 of 1,048,576 lanes
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn what_the_host_has_stopped_is_said_below_the_shards() {
        let mut stopped = shard(1, 3, 0, 40);
        stopped.stops = Stops {
            all: StopTotals {
                count: 3,
                total_ns: 5_100_000_000,
                longest_ns: 4_980_000_000,
            },
            last_age_ns: Some(12_000_000_000),
            ..Stops::default()
        };
        let text = shard_table(Room::UNBOUNDED, &[shard(0, 3, 0, 40), stopped]);
        let last = text.lines().last();
        expect!["the host stopped shard 1: 3 times, 5.10s in all, at most 4.98s, last 12.0s ago"]
            .assert_eq(last.unwrap_or_default());
    }

    #[test]
    fn an_overload_is_noted_with_the_disks_that_it_makes_late() {
        assert_eq!(overload_note(&shard(0, 3, 0, 0)), None);
        let note = overload_note(&shard(0, 83, 12, 0));
        expect!["shard 0 (disks a, b): busy for 83 % of its time, overloaded for 12 s since the start: accuracy is not promised then"]
        .assert_eq(&note.unwrap());
    }
}
