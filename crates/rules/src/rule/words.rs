//! Turns a rule back into words, in canonical form. Parsing these words gives the same rule.

use dashpot_engine::inject::{Count, Delay, Effect, Mode, Ramp, RuleSpec};
use dashpot_engine::{Duration, Ratio};

use super::damage::damage_words;
use crate::ops::format_ops;
use crate::probability::format_probability;
use crate::size::{format_bandwidth, format_size};

/// The words of a rule. `service` has the words of the delay's service time, if the rule delays.
pub(super) fn words(spec: &RuleSpec, service: &str) -> String {
    let when = spec.when;
    let words = [
        effect_words(spec, service),
        ramp_words(spec),
        spec.bandwidth
            .map(|rate| format!("--bandwidth {}", format_bandwidth(rate))),
        Some(format!("-T {}", format_ops(spec.ops))),
        spec.chance
            .map(|ratio: Ratio| format!("-f {}", format_probability(ratio))),
        count_words(spec.count),
        spec.range
            .map(|(a, b)| format!("--range {}..{}", format_size(a), format_size(b))),
        spec.client.as_deref().map(client_words),
        (spec.mode == Mode::Add).then(|| "--mode add".to_owned()),
        when.lasts.map(|span| format!("--for {span}")),
        (when.after != Duration::ZERO).then(|| format!("--after {}", when.after)),
        when.cycle
            .map(|cycle| format!("--cycle {}/{}", cycle.on, cycle.period)),
        when.cycle
            .filter(|cycle| cycle.jitter != Duration::ZERO)
            .map(|cycle| format!("--jitter {}", cycle.jitter)),
    ];
    words.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn effect_words(spec: &RuleSpec, service: &str) -> Option<String> {
    match &spec.effect {
        Effect::Delay(delay) => Some(delay_words(delay, service)),
        Effect::Fail { errno, work, delay } => {
            let delay = delay
                .as_ref()
                .map(|delay| delay_words(delay, service) + " ");
            let mode = if *work { " --mode floor" } else { "" };
            Some(format!(
                "{}-e {}{mode}",
                delay.unwrap_or_default(),
                errno.name()
            ))
        }
        Effect::Hang => Some("--hang".to_owned()),
        Effect::Damage(damage) => Some(damage_words(*damage)),
        Effect::Pass => None,
    }
}

fn delay_words(delay: &Delay, service: &str) -> String {
    match delay.lanes {
        Some(lanes) => format!("-D {service}:{lanes}"),
        None => format!("-D {service}"),
    }
}

fn ramp_words(spec: &RuleSpec) -> Option<String> {
    let Ramp { lasts, repeats, .. } = spec.effect.delay()?.ramp?;
    let repeat = if repeats { ",repeat" } else { "" };
    Some(format!("--ramp {lasts}{repeat}"))
}

fn count_words(Count { skip, every, first }: Count) -> Option<String> {
    let words = [
        (skip > 0).then(|| format!("--skip {skip}")),
        (every > 1).then(|| format!("--every {every}")),
        first.map(|first| format!("--first {first}")),
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    (!words.is_empty()).then(|| words.join(" "))
}

fn client_words(glob: &str) -> String {
    // Quoting fails only on NUL characters, which the parser of globs refuses.
    let quoted = shlex::try_quote(glob).unwrap_or_default();
    format!("--client {quoted}")
}
