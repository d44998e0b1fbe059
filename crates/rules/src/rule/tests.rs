use dashpot_engine::inject::{
    Count, Cycle, Damage, Delay, Effect, Mode, Ramp, RuleSpec, Service, When,
};
use dashpot_engine::{Duration, Errno, Op, OpSet, Ratio};
use proptest::prelude::*;

use super::{TypedRule, parse_disk_injection, parse_injection};
use crate::ParseError;
use crate::service::parse_delay;

fn words(text: &str) -> Result<Vec<String>, ParseError> {
    let rules = parse_injection(text)?.rules;
    Ok(rules.into_iter().map(|rule| rule.words).collect())
}

fn refusal(text: &str) -> String {
    parse_injection(text).unwrap_err().to_string()
}

#[test]
fn a_rule_is_answered_as_understood() {
    for (text, understood) in [
        ("-D 10ms:1", "-D 10ms:1 -T read,write,zero"),
        ("-D0.01s -Tall", "-D 10ms -T all"),
        ("-e eio -T write -f 1:200", "-e EIO -T write -f 0.5%"),
        (
            "-D 10ms..500ms:4 -T read --ramp 5m",
            "-D 10ms..500ms:4 --ramp 5m -T read",
        ),
        ("-e eio -T write -D 300ms:2", "-D 300ms:2 -e EIO -T write"),
        ("--drop", "--drop -T write,trim,zero"),
        ("--lie --first 1", "--lie -T flush,fua --first 1"),
        ("--torn 4k -T write", "--torn 4096 -T write"),
        ("--corrupt zero:512 -T read", "--corrupt zero -T read"),
        (
            "-e EIO --mode floor",
            "-e EIO --mode floor -T read,write,zero",
        ),
        (
            "--hang --first 1 -T fua,flush",
            "--hang -T flush,fua --first 1",
        ),
        (
            "--bandwidth 100MiB/s",
            "--bandwidth 100M -T read,write,zero",
        ),
        (
            "-D lognormal=10ms..30ms:4 --bandwidth 1M --range 0..1G --every 3 --client 'uid=0 *' \
             --mode add --for 60s --after 1500ms --name slow --with 3",
            "-D lognormal=10ms..30ms:4 --bandwidth 1M -T read,write,zero --every 3 --range 0..1G \
             --client 'uid=0 *' --mode add --for 1m --after 1500ms",
        ),
    ] {
        assert_eq!(words(text), Ok(vec![understood.to_owned()]), "{text}");
    }
}

#[test]
fn several_delays_are_rules_of_one_group() {
    let injection = parse_injection("-D 10ms:1 -D 25ms:2 -T read --name two").unwrap();
    let words: Vec<_> = injection
        .rules
        .iter()
        .map(|rule| rule.words.as_str())
        .collect();
    assert_eq!(words, ["-D 10ms:1 -T read", "-D 25ms:2 -T read"]);
    assert_eq!(injection.name.as_deref(), Some("two"));
}

#[test]
fn a_disk_comes_first_or_is_left_out() {
    let named = parse_disk_injection("c1t1d0 -D 10ms:1").unwrap();
    assert_eq!(named.disk.as_deref(), Some("c1t1d0"));
    assert_eq!(parse_disk_injection("-D 10ms:1").unwrap().disk, None);
    assert_eq!(
        refusal("c1t1d0 -D 10ms:1"),
        "'c1t1d0' in 'c1t1d0 -D 10ms:1' is not an option of a rule, and the disk is named already"
    );
}

#[test]
fn what_is_refused_names_option_value_and_remedy() {
    for (text, message) in [
        (
            "-D 10",
            "invalid value '10' for '-D <SERVICE[:LANES]>': '10' has no unit: did you mean 10ms?",
        ),
        (
            "-D 10:1",
            "invalid value '10:1' for '-D <SERVICE[:LANES]>': '10:1' has no unit: did you mean \
             10ms:1?",
        ),
        (
            "-D -5ms",
            "invalid value '-5ms' for '-D <SERVICE[:LANES]>': '-5ms' is negative: a time is 0s or \
             more",
        ),
        (
            "-D 1ms -f 110%",
            "invalid value '110%' for '-f <PCT|1:N>': '110%' is above 100%: give at most 100% or \
             1:1",
        ),
        (
            "-D 1ms --first 0",
            "invalid value '0' for '--first <N>': '0' is not a number of zios: count from 1",
        ),
        (
            "-e EFOOBARS",
            "invalid value 'EFOOBARS' for '-e <ERROR>': 'EFOOBARS' is not an error of Linux: write a name, such as \
             EIO, or a number from 1 to 133",
        ),
        (
            "-T read",
            "the rule does nothing: give it -D SERVICE, -e ERROR, --hang, --bandwidth RATE, or damage: --drop",
        ),
        (
            "-D 1ms --frist 1",
            "unexpected argument '--frist' found tip: a similar argument exists: '--first'",
        ),
        ("-D '1ms", "'-D '1ms' has a quote that does not end"),
        (
            "-e EIO --mode add",
            "--mode add does not go with -e: for a zio that fails, the store does no work or, with \
             --mode floor, works first",
        ),
    ] {
        assert_eq!(refusal(text), message, "{text}");
    }
    for text in [
        "-D 1ms -D 2ms -e EIO",
        "-D 1ms..2ms",
        "-D 1ms --ramp 5m",
        "-D 1ms..2ms --ramp 5m,twice",
        "-D 1ms..2ms --ramp 0s",
        "--drop --ramp 5m",
        "-D 1ms --hang",
        "-e EIO --hang",
        "--drop --lie",
        "--drop -D 1ms",
        "--lie --mode floor",
        "--drop -T read",
        "--lie -T write",
        "--torn 513",
        "--corrupt flip:512",
        "--corrupt zero:513",
        "--corrupt random:2M",
        "--corrupt stale",
        "--hang --bandwidth 1M",
        "-D 1ms --nth 1 --every 2",
        "-D 1ms --skip 1 --nth 2",
        "-D 1ms --first -1",
        "-D 1ms --range 5..5",
        "-D 1ms --name 7",
        "-D 1ms --client ''",
        "-D 1ms -T",
        "",
    ] {
        assert!(parse_injection(text).is_err(), "{text}");
    }
}

#[test]
fn an_update_replaces_one_rule_and_nothing_else() {
    let replacement = |text: &str| {
        let rule = parse_injection(text)?.replacement()?;
        Ok::<_, ParseError>(rule.words)
    };
    assert_eq!(
        replacement("-D 20ms:1"),
        Ok("-D 20ms:1 -T read,write,zero".to_owned())
    );
    for text in [
        "-D 20ms -D 30ms",
        "-D 20ms --name a",
        "-D 20ms --with 1",
        "-D 20ms --lease 1m",
    ] {
        assert!(replacement(text).is_err(), "{text}");
    }
}

/// Delays of every kind of distribution, each with the words of its service time.
fn delays() -> impl Strategy<Value = (Delay, String)> {
    let span = || (1..1_u64 << 40).prop_map(Duration::from_nanos);
    let service = prop_oneof![
        span().prop_map(|a| a.to_string()),
        (span(), span()).prop_map(|(a, b)| format!("{}~{}", a.max(b), a.min(b))),
        (span(), span()).prop_map(|(a, b)| format!("uniform={a}..{}", a + b)),
        (span(), span()).prop_map(|(a, b)| format!("lognormal={a}..{}", a + b)),
        (span(), 0..99_u32, span()).prop_map(|(a, p, b)| format!("p{p}={a},p99.9={}", a + b)),
    ];
    (service, proptest::option::of(1..=65_534_u32)).prop_map(|(words, lanes)| {
        let service = parse_delay(&words).expect("a service time").delay.service;
        (Delay::new(service, lanes), words)
    })
}

fn effects() -> impl Strategy<Value = (Effect, String)> {
    let delay = proptest::option::of(prop_oneof![delays(), ramps()]);
    let fail = (0..8_usize, any::<bool>(), delay).prop_map(|(i, work, delay)| {
        let (delay, words) = delay.unzip();
        let errno = Errno::ALL[i];
        let fail = Effect::Fail { errno, work, delay };
        (fail, words.unwrap_or_default())
    });
    prop_oneof![
        prop_oneof![delays(), ramps()].prop_map(|(delay, words)| (Effect::Delay(delay), words)),
        fail,
        Just((Effect::Hang, String::new())),
        damages().prop_map(|damage| (Effect::Damage(damage), String::new())),
        Just((Effect::Pass, String::new()))
    ]
}

/// Delays that change with time.
fn ramps() -> impl Strategy<Value = (Delay, String)> {
    let span = || (1..1_u64 << 40).prop_map(Duration::from_nanos);
    let lanes = proptest::option::of(1..=65_534_u32);
    (span(), span(), span(), any::<bool>(), lanes).prop_map(|(from, to, lasts, repeats, lanes)| {
        let ramp = Some(Ramp {
            from,
            lasts,
            repeats,
        });
        let service = Service::Constant(to);
        let delay = Delay {
            service,
            lanes,
            ramp,
        };
        (delay, format!("{from}..{to}"))
    })
}

fn damages() -> impl Strategy<Value = Damage> {
    let unit = (0..=20_u32).prop_map(|log| 1 << log);
    let kinds = [
        Damage::Drop,
        Damage::Lie,
        Damage::Flip,
        Damage::Misdirect,
        Damage::Short,
    ];
    prop_oneof![
        proptest::sample::select(kinds.to_vec()),
        proptest::sample::select(vec![512, 4_096]).prop_map(Damage::Torn),
        unit.clone().prop_map(Damage::Zero),
        unit.prop_map(Damage::Random),
    ]
}

fn op_sets() -> impl Strategy<Value = OpSet> {
    (1..1_u32 << Op::ALL.len()).prop_map(|bits| {
        // The parser turns syncs into flushes, because it does not know the rule's disk.
        let members = Op::ALL
            .into_iter()
            .filter(|op| *op != Op::Sync)
            .map(OpSet::of)
            .chain([OpSet::FUA])
            .enumerate();
        members
            .filter(|(i, _)| bits & (1 << i) != 0)
            .fold(OpSet::EMPTY, |set, (_, one)| set.union(one))
    })
}

fn chances() -> impl Strategy<Value = Ratio> {
    prop_oneof![
        (1..=100_u64).prop_map(|percent| crate::parse_probability(&format!("{percent}%"))),
        (1..1_000_u64, 1_000..9_999_u64)
            .prop_map(|(hits, cases)| crate::parse_probability(&format!("{hits}:{cases}"))),
    ]
    .prop_map(|ratio| ratio.expect("a probability"))
}

fn counts() -> impl Strategy<Value = Count> {
    let first = proptest::option::of(1_u64..);
    (any::<u64>(), 1_u64.., first).prop_map(|(skip, every, first)| Count { skip, every, first })
}

prop_compose! {
    fn rules()(
        (effect, service) in effects(),
        rate in 1_u64.., with_rate: bool,
        ops in op_sets(), count in counts(),
        chance in proptest::option::of(chances()),
        range in proptest::option::of((0..1_u64 << 50, 1..1_u64 << 50)),
        client in proptest::option::of(r"\PC{1,12}"),
        (after, lasts) in (any::<u64>(), proptest::option::of(any::<u64>())),
        cycle in proptest::option::of((1..1_u64 << 62, 1..1_u64 << 62, 0..=1_u64)),
        add: bool,
    ) -> (RuleSpec, String) {
        let holds = matches!(effect, Effect::Delay(_) | Effect::Pass);
        let must_pass = effect == Effect::Pass;
        let has_mode = !matches!(effect, Effect::Fail { .. } | Effect::Damage(_));
        let ops = match effect {
            Effect::Damage(damage) => damage.ops(),
            _ => ops,
        };
        let spec = RuleSpec {
            bandwidth: (holds && (with_rate || must_pass)).then_some(rate),
            ops, chance, count, client,
            range: range.map(|(start, length)| (start, start + length)),
            when: When {
                after: Duration::from_nanos(after),
                lasts: lasts.map(Duration::from_nanos),
                cycle: cycle.map(|(on, off, jitter)| Cycle {
                    on: Duration::from_nanos(on),
                    period: Duration::from_nanos(on + off),
                    jitter: Duration::from_nanos(jitter * off),
                }),
            },
            mode: if add && has_mode { Mode::Add } else { Mode::Floor },
            ..RuleSpec::new(effect)
        };
        (spec, service)
    }
}

proptest! {
    #[test]
    fn the_words_of_a_rule_parse_back_to_it((spec, service) in rules()) {
        let rule = TypedRule::new(spec, &service);
        let parsed = parse_injection(&rule.words).map(|injection| injection.rules);
        prop_assert_eq!(parsed.map(|rules| rules[0].spec.clone()), Ok(rule.spec), "{}", rule.words);
    }
}
