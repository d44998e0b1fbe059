use clap::{CommandFactory, Parser};

use super::{Cli, Command};

use dashpot_rules::RULE_OPTIONS;

const LINES_MAX: usize = 40;

/// The words that name each command.
fn every_level() -> Vec<String> {
    let root = Cli::command();
    let below = root
        .get_subcommands()
        .map(|command| format!("dashpot {}", command.get_name()));
    below
        .chain(["dashpot", "dashpot record cut", "dashpot scenario run"].map(str::to_owned))
        .collect()
}

#[test]
fn the_definitions_are_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn every_help_fits_a_screen_and_ends_with_an_example() {
    for words in every_level() {
        for flag in ["-h", "--help"] {
            check_help(&words, &help(&words, flag));
        }
    }
}

/// Each line has at most 80 columns, because clap would break a longer one at the wrong place.
#[test]
fn the_lines_below_the_options_are_as_they_were_written() {
    let root = Cli::command();
    let all = root.get_subcommands().chain([&root]);
    for command in all {
        let text = command.get_after_help().map(ToString::to_string);
        let text = text.unwrap_or_default();
        let wide = text.lines().find(|line| line.chars().count() > 80);
        assert_eq!(wide, None, "{}", command.get_name());
    }
}

/// The help text that a user sees for a command with a flag, `-h` or `--help`.
fn help(words: &str, flag: &str) -> String {
    // zinject prints its own help.
    if words == "dashpot zinject" {
        return dashpot_cli::zinject_help(Cli::command());
    }
    parse(&format!("{words} {flag}"))
        .expect_err(words)
        .to_string()
}

fn check_help(words: &str, text: &str) {
    let lines: Vec<_> = text.lines().collect();
    // The help of dashpot itself lists the commands, and that of a rule all that a rule can say. They may grow with
    // the number of these.
    let most = match words {
        "dashpot" => Cli::command().get_subcommands().count() + 20,
        "dashpot inject" | "dashpot update" => RULE_OPTIONS.len() + 20,
        _ => LINES_MAX,
    };
    assert!(
        lines.len() <= most,
        "{words}: {} lines\n{text}",
        lines.len()
    );
    let wide = lines.iter().find(|line| line.chars().count() > 80);
    assert_eq!(wide, None, "{words}");
    let example = lines.iter().rposition(|line| line.starts_with("Example"));
    let after = example.map(|at| &lines[at + 1..]).unwrap_or_default();
    assert!(
        after.iter().any(|line| line.contains("dashpot")),
        "{words}:\n{text}"
    );
}

/// Parses a command line that is split as a shell splits it.
fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(shlex::split(line).expect("words"))
}

#[test]
fn the_examples_in_help_are_commands() {
    for words in every_level() {
        let text = help(&words, "-h");
        let start = text.find("\nExample").expect("an example");
        for line in text[start..]
            .lines()
            .filter(|line| line.starts_with("  dashpot"))
        {
            let line = line.trim().trim_end_matches('&');
            assert!(
                parse(line).is_ok(),
                "{words}: {line}: {}",
                parse(line).unwrap_err()
            );
        }
    }
}

#[test]
fn usage_errors_exit_with_2_and_name_the_remedy() {
    for (line, remedy) in [
        ("dashpot inject d0 -D 10:1", "did you mean 10ms:1?"),
        ("dashpot inject d0 -D 10", "did you mean 10ms?"),
        ("dashpot inject d0 -D -5ms", "negative"),
        ("dashpot inject d0 -D 10ms:0", "1 to 65534"),
        ("dashpot inject d0 -D 1ms -f 10", "10%"),
        ("dashpot inject d0 -D 1ms -f 101%", "at most 100%"),
        ("dashpot inject d0 -D 999999999999s", "at most 584 years"),
        ("dashpot serve -d d0=rem", "file:PATH"),
        ("dashpot serve -d d0=ram,size=1GB", "K, M, G and T"),
        ("dashpot serve --nbd /run/sock", "unix:PATH"),
        ("dashpot serve --shards 0", "1 to 64"),
        ("dashpot serve --seed x", "give a whole number"),
        (
            "dashpot load nbd://127.0.0.1/d --seed 1.5",
            "give a whole number",
        ),
        ("dashpot suspend d0 --for -1s", "negative"),
        ("dashpot suspend d0 --for 0s", "more than 0s"),
        ("dashpot inject d0 -D 1ms --for 0s", "more than 0s"),
        (
            "dashpot serve -d d0=ram,size=1M,size=2M",
            "'size' is given twice",
        ),
        ("dashpot serve -d d0=ram,ro,ro", "'ro' is given twice"),
        ("dashpot quantize --op writes", "read, write"),
        ("dashpot iolatency -1", "negative"),
        ("dashpot iolatency 1 0", "give 1 or more"),
        ("dashpot heatmap 1 1.5", "give 1 or more"),
        ("dashpot top -1", "negative"),
        ("dashpot top --sim lab.toml -k", "cannot be used with"),
        ("dashpot top --sim lab.toml -d vda", "cannot be used with"),
        ("dashpot top --sim lab.toml --speed 0", "0.001 to 1000"),
        ("dashpot top --speed 2", "--sim"),
        ("dashpot iolatency -i ''", "'*R*'"),
        ("dashpot iolatency -i r", "'*R*'"),
        ("dashpot iolatency -i [RW]", "'*R*'"),
        (
            "dashpot iolatency --percentiles --compat iolatency",
            "cannot be used with",
        ),
        ("dashpot run -d d0=ram", "CMD"),
        ("dashpot --api nowhere list", "unix:PATH"),
        ("dashpot injct d0", "inject"),
    ] {
        let error = parse(line).expect_err(line);
        assert_eq!(error.exit_code(), 2, "{line}");
        assert!(error.to_string().contains(remedy), "{line}: {error}");
    }
}

#[test]
fn observe_takes_devices_as_other_reports_do() {
    for line in [
        "dashpot observe -d vda 2 5",
        "dashpot observe vda 2 5",
        "dashpot observe -d vda -d vdb 1",
    ] {
        assert!(parse(line).is_ok(), "{line}");
    }
}

#[test]
fn iostat_takes_what_sysstat_takes() {
    let split = |line: &str| match parse(line).expect(line).command {
        Command::Report(dashpot_report::ReportKind::Iostat(args)) => {
            let (device, pace) = args.split().expect(line);
            let interval = pace
                .interval
                .map(|interval| interval.as_nanos() / 1_000_000_000);
            (device.devices, interval, pace.count)
        }
        other => panic!("{other:?}"),
    };
    let disks = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    for (line, expected) in [
        ("dashpot iostat -d 1 5", (disks(&[]), Some(1), Some(5))),
        ("dashpot iostat -xd 2", (disks(&[]), Some(2), None)),
        (
            "dashpot iostat -d a b 1 5",
            (disks(&["a", "b"]), Some(1), Some(5)),
        ),
        (
            "dashpot iostat -d 253,0 1",
            (disks(&["253,0"]), Some(1), None),
        ),
        ("dashpot iostat -d 1e3 1", (disks(&["1e3"]), Some(1), None)),
        ("dashpot iostat -d a -d b", (disks(&["a", "b"]), None, None)),
    ] {
        assert_eq!(split(line), expected, "{line}");
    }
}

#[test]
fn zinject_keeps_its_flags_for_itself() {
    let words = |line: &str| match parse(line).expect(line).command {
        Command::Zinject(zinject) => zinject.words.join(" "),
        other => panic!("{other:?}"),
    };
    assert_eq!(words("dashpot zinject"), "");
    assert_eq!(
        words("dashpot zinject -d c1t1d0 -D 10:1 tank"),
        "-d c1t1d0 -D 10:1 tank"
    );
    assert_eq!(words("dashpot zinject --compat 2.3 -c all"), "-c all");
    assert_eq!(words("dashpot zinject -h"), "-h");
    assert_eq!(words("dashpot zinject --help"), "--help");
}
