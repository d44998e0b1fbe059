//! The options of a rule: one table for the command line, lab files and the API.

use dashpot_engine::inject::{Count, Damage};
use dashpot_engine::{Op, OpSet};

use super::damage::{parse_corrupt, parse_torn};
use super::draft::{ModeWord, RuleDraft, parse_client, parse_count, parse_cycle, parse_ramp};
use crate::ParseError;
use crate::duration::{parse_span, parse_wait};
use crate::errno::parse_errno;
use crate::name::parse_name;
use crate::ops::parse_ops_and_calls;
use crate::probability::parse_probability;
use crate::service::parse_delay;
use crate::size::{parse_bandwidth, parse_range};

#[derive(Clone, Copy, Debug)]
pub struct RuleOption {
    /// The option's id, by which other options exclude it.
    pub id: &'static str,
    /// The option's letter, as in `-D`.
    pub short: Option<char>,
    /// The option's word, as in `--range`.
    pub long: Option<&'static str>,
    /// The name of the option's value in help; `None` for a switch.
    pub value_name: Option<&'static str>,
    /// A line of help.
    pub help: &'static str,
    /// All possible values, if there are only a few.
    pub choices: &'static [&'static str],
    /// Whether the command line lets through a value that begins with a hyphen, so that the option's own
    /// parser refuses it with a better message.
    pub takes_hyphens: bool,
    /// Whether the option may be given several times.
    pub repeats: bool,
    /// The ids of the options that cannot be combined with this option.
    pub excludes: &'static [&'static str],
    set: fn(&mut RuleDraft, &str) -> Result<(), ParseError>,
}

impl RuleOption {
    /// Reads the option's value into a draft. A switch ignores the value.
    pub fn read(&self, value: &str, draft: &mut RuleDraft) -> Result<(), ParseError> {
        (self.set)(draft, value)
    }

    /// The option as messages show it: `-D <SERVICE[:LANES]>`, `--hang`.
    pub(super) fn shown(&self) -> String {
        let flag = match (self.long, self.short) {
            (Some(long), _) => format!("--{long}"),
            (None, Some(short)) => format!("-{short}"),
            (None, None) => self.id.to_owned(),
        };
        match self.value_name {
            Some(value) => format!("{flag} <{value}>"),
            None => flag,
        }
    }
}

const PLAIN: RuleOption = RuleOption {
    id: "",
    short: None,
    long: None,
    value_name: None,
    help: "",
    choices: &[],
    takes_hyphens: true,
    repeats: false,
    excludes: &[],
    set: |_, _| Ok(()),
};

/// The options for effects. Damage goes with none of them, and neither with a choice of when the store works.
const EFFECTS: &[&str] = &["delays", "ramp", "error", "hang", "bandwidth", "mode"];

/// Sets the kind of damage. A rule has one.
fn set_damage(draft: &mut RuleDraft, damage: Damage) -> Result<(), ParseError> {
    if draft.damage.replace(damage).is_some() {
        return Err(ParseError::new(
            "a rule has one kind of damage: arm another rule for the other",
        ));
    }
    Ok(())
}

/// All options, in the order in which help lists them.
pub static RULE_OPTIONS: [RuleOption; 26] = [
    RuleOption {
        id: "delays",
        short: Some('D'),
        value_name: Some("SERVICE[:LANES]"),
        help: "Delay: 20ms, 20ms~5ms, lognormal=10ms..30ms; repeat for more lanes",
        repeats: true,
        excludes: &["hang"],
        set: |draft, value| parse_delay(value).map(|delay| draft.delays.push(delay)),
        ..PLAIN
    },
    RuleOption {
        id: "ramp",
        long: Some("ramp"),
        value_name: Some("TIME"),
        help: "How long -D 10ms..500ms takes from end to end",
        set: |draft, value| parse_ramp(value).map(|ramp| draft.ramp = Some(ramp)),
        ..PLAIN
    },
    RuleOption {
        id: "error",
        short: Some('e'),
        value_name: Some("ERROR"),
        help: "Fail, after any -D: EIO, ENOSPC, or any errno",
        takes_hyphens: false,
        excludes: &["hang", "bandwidth"],
        set: |draft, value| parse_errno(value).map(|errno| draft.error = Some(errno)),
        ..PLAIN
    },
    RuleOption {
        id: "hang",
        long: Some("hang"),
        help: "Hold until the rule ends, or clear --release",
        excludes: &["bandwidth"],
        set: |draft, _| {
            draft.hang = true;
            Ok(())
        },
        ..PLAIN
    },
    RuleOption {
        id: "bandwidth",
        long: Some("bandwidth"),
        value_name: Some("RATE"),
        help: "Bytes per second, shared: 100M",
        set: |draft, value| parse_bandwidth(value).map(|rate| draft.bandwidth = Some(rate)),
        ..PLAIN
    },
    RuleOption {
        id: "drop",
        long: Some("drop"),
        help: "Acknowledge writes, and store nothing",
        excludes: EFFECTS,
        set: |draft, _| set_damage(draft, Damage::Drop),
        ..PLAIN
    },
    RuleOption {
        id: "lie",
        long: Some("lie"),
        help: "Acknowledge flushes, keep nothing durable (lossy:)",
        excludes: EFFECTS,
        set: |draft, _| set_damage(draft, Damage::Lie),
        ..PLAIN
    },
    RuleOption {
        id: "torn",
        long: Some("torn"),
        value_name: Some("512|4096"),
        help: "Store only the first or the last units of a write",
        excludes: EFFECTS,
        set: |draft, value| set_damage(draft, parse_torn(value)?),
        ..PLAIN
    },
    RuleOption {
        id: "corrupt",
        long: Some("corrupt"),
        value_name: Some("KIND"),
        help: "Change bytes: flip, zero:4k, random:4k, misdirect",
        excludes: EFFECTS,
        set: |draft, value| set_damage(draft, parse_corrupt(value)?),
        ..PLAIN
    },
    RuleOption {
        id: "short",
        long: Some("short"),
        help: "Read or write fewer bytes, no error (path: disks)",
        excludes: EFFECTS,
        set: |draft, _| set_damage(draft, Damage::Short),
        ..PLAIN
    },
    RuleOption {
        id: "ops",
        short: Some('T'),
        value_name: Some("OPS"),
        help: "read,write,flush,fua,trim,zero,cache,all [read,write,zero]; \
               flush holds FUA writes, too",
        takes_hyphens: false,
        set: |draft, value| parse_ops_and_calls(value).map(|ops| draft.ops = Some(of_blocks(ops))),
        ..PLAIN
    },
    RuleOption {
        id: "chance",
        short: Some('f'),
        value_name: Some("PCT|1:N"),
        help: "Inject into a random share: 0.5% or 1:200",
        set: |draft, value| parse_probability(value).map(|ratio| draft.chance = Some(ratio)),
        ..PLAIN
    },
    RuleOption {
        id: "skip",
        long: Some("skip"),
        value_name: Some("K"),
        help: "Spare the first K that match",
        set: |draft, value| parse_count(value).map(|count| draft.count.skip = count),
        ..PLAIN
    },
    RuleOption {
        id: "every",
        long: Some("every"),
        value_name: Some("N"),
        help: "Inject into every Nth of the others",
        set: |draft, value| parse_count(value).map(|count| draft.count.every = count),
        ..PLAIN
    },
    RuleOption {
        id: "first",
        long: Some("first"),
        value_name: Some("N"),
        help: "Inject into the first N of these",
        set: |draft, value| parse_count(value).map(|count| draft.count.first = Some(count)),
        ..PLAIN
    },
    RuleOption {
        id: "nth",
        long: Some("nth"),
        value_name: Some("N"),
        help: "Inject into the Nth that matches only",
        excludes: &["skip", "every", "first"],
        set: |draft, value| {
            let nth = parse_count(value)?;
            draft.count = Count {
                skip: nth - 1,
                ..Count::first(1)
            };
            Ok(())
        },
        ..PLAIN
    },
    RuleOption {
        id: "range",
        long: Some("range"),
        value_name: Some("A..B"),
        help: "Only I/O that touches these bytes: 0..1G",
        set: |draft, value| parse_range(value).map(|range| draft.range = Some(range)),
        ..PLAIN
    },
    RuleOption {
        id: "client",
        long: Some("client"),
        value_name: Some("GLOB"),
        help: "Only clients so named: 'uid=1000 *', 'exe=pg*'",
        set: |draft, value| parse_client(value).map(|glob| draft.client = Some(glob)),
        ..PLAIN
    },
    RuleOption {
        id: "mode",
        long: Some("mode"),
        value_name: Some("floor|add"),
        help: "The store works before (floor) or after (add)",
        choices: &["floor", "add"],
        takes_hyphens: false,
        set: |draft, value| ModeWord::parse(value).map(|mode| draft.mode = Some(mode)),
        ..PLAIN
    },
    RuleOption {
        id: "with",
        long: Some("with"),
        value_name: Some("ID|NAME"),
        help: "Share the lanes of this rule",
        takes_hyphens: false,
        set: |draft, value| {
            draft.with = Some(value.to_owned());
            Ok(())
        },
        ..PLAIN
    },
    RuleOption {
        id: "name",
        long: Some("name"),
        value_name: Some("NAME"),
        help: "Name the rule",
        takes_hyphens: false,
        set: |draft, value| parse_name(value).map(|name| draft.name = Some(name)),
        ..PLAIN
    },
    RuleOption {
        id: "lasts",
        long: Some("for"),
        value_name: Some("TIME"),
        help: "End by itself after this time",
        set: |draft, value| parse_span(value).map(|span| draft.lasts = Some(span)),
        ..PLAIN
    },
    RuleOption {
        id: "after",
        long: Some("after"),
        value_name: Some("TIME"),
        help: "Begin after this time",
        set: |draft, value| parse_wait(value).map(|wait| draft.after = Some(wait)),
        ..PLAIN
    },
    RuleOption {
        id: "cycle",
        long: Some("cycle"),
        value_name: Some("ON/PERIOD"),
        help: "Apply for a part of each period: 5s/30s",
        set: |draft, value| parse_cycle(value).map(|cycle| draft.cycle = Some(cycle)),
        ..PLAIN
    },
    RuleOption {
        id: "jitter",
        long: Some("jitter"),
        value_name: Some("TIME"),
        help: "Begin each turn of a cycle up to this much later",
        set: |draft, value| parse_span(value).map(|span| draft.jitter = Some(span)),
        ..PLAIN
    },
    RuleOption {
        id: "lease",
        long: Some("lease"),
        value_name: Some("TIME"),
        help: "Clear it after this time, unless 'renew' comes",
        set: |draft, value| parse_span(value).map(|span| draft.lease = Some(span)),
        ..PLAIN
    },
];

/// The operations of a rule whose disk is not known yet. A sync counts as a flush until the disk turns out to
/// be a path disk.
fn of_blocks(ops: OpSet) -> OpSet {
    let [sync, flush] = [Op::Sync, Op::Flush].map(OpSet::of);
    if ops.meets(sync) {
        ops.without(sync).union(flush)
    } else {
        ops
    }
}
