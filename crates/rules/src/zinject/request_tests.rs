use super::{Add, Cancel, Refusal, Request, parse};
use crate::parse_injection;

fn request(line: &str) -> Result<Request, Refusal> {
    parse(&shlex::split(line).expect("words"))
}

fn add(line: &str) -> Add {
    match request(line) {
        Ok(Request::Add(add)) => *add,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn requests_that_add_nothing() {
    assert_eq!(request(""), Ok(Request::List));
    assert_eq!(request("-h"), Ok(Request::Help));
    assert_eq!(request("--help"), Ok(Request::Help));
    assert_eq!(request("-c all"), Ok(Request::Cancel(Cancel::All)));
    assert_eq!(request("-c7"), Ok(Request::Cancel(Cancel::One(7))));
}

#[test]
fn handlers_are_rules() {
    for (line, words) in [
        ("-d c1t1d0 -D 10:1 tank", "-D 10ms:1 -T read,write"),
        ("-d c1t1d0 -D 25:2 -T WRITE tank", "-D 25ms:2 -T write"),
        (
            "-D 16:16 -T read -f 0.5 -q -d c1t1d0 tank",
            "-D 16ms:16 -T read -f 0.5%",
        ),
        (
            "-d c1t1d0 -D 1:65534 -e io tank",
            "-D 1ms:65534 -T read,write",
        ),
        (
            "-d c1t1d0 -e io tank",
            "-e EIO --mode floor -T read,write,flush,trim",
        ),
        (
            "-d c1t1d0 -F -e io-prefail -T flush tank",
            "-e EIO -T flush",
        ),
        ("-d c1t1d0 -e noop tank", "--drop -T write,trim"),
        ("-d c1t1d0 -e noop -T write tank", "--drop -T write"),
        (
            "-d c1t1d0 -e corrupt -T read tank",
            "--corrupt flip -T read",
        ),
    ] {
        let add = add(line);
        assert_eq!(add.rule.words, words, "{line}");
        assert_eq!(
            (add.pool.as_str(), add.device.to_string().as_str()),
            ("tank", "c1t1d0")
        );
        let mut spec = add.rule.spec.clone();
        let typed = parse_injection(words).expect(words).rules.remove(0).spec;
        spec.chance = typed.chance;
        assert_eq!(spec, typed, "{line}");
    }
    assert!(add("-qd a -D 1:1 tank").quiet);
}

#[test]
fn frequencies_are_the_shares_that_zinject_stores() {
    for (percent, stored) in [
        ("0.0001", 4_294),
        ("0.5", 21_474_836),
        ("50", 2_147_483_647),
    ] {
        let chance = add(&format!("-d a -D 1:1 -f {percent} tank"))
            .rule
            .spec
            .chance
            .unwrap();
        assert_eq!(
            (chance.numerator(), chance.denominator()),
            (stored, 4_294_967_295)
        );
    }
    let always = add("-d a -D 1:1 -f 100 tank").rule.spec.chance.unwrap();
    assert_eq!(always.numerator(), always.denominator());
}

#[test]
fn refusals_have_zinjects_exit_codes() {
    for (line, code, usage, gist) in [
        ("-d a -D 10 tank", 1, true, "invalid i/o delay value '10'"),
        ("-d a -D 0:1 tank", 1, true, "invalid i/o delay value '0:1'"),
        (
            "-d a -D 10ms:1 tank",
            1,
            true,
            "invalid i/o delay value '10ms:1'",
        ),
        (
            "-d a -D -1:1 tank",
            1,
            true,
            "invalid i/o delay value '-1:1'",
        ),
        (
            "-d a -D 18446744073709551615:1 tank",
            1,
            true,
            "invalid i/o delay value",
        ),
        (
            "-d a -D 10:0 tank",
            1,
            false,
            "failed to add handler: 0 lanes",
        ),
        (
            "-d a -D 10:65535 tank",
            1,
            false,
            "failed to add handler: 65535 lanes",
        ),
        (
            "-d a -D 10:1 -T flush tank",
            1,
            true,
            "must be read, write or all",
        ),
        ("-d a -D 10:1 -T probe tank", 1, true, "I/O type 'probe'"),
        (
            "-d a -D 10:1 -T sync tank",
            1,
            true,
            "invalid I/O type 'sync'",
        ),
        ("-d a -e ouch tank", 1, true, "invalid error type 'ouch'"),
        ("-d a -e nxio tank", 1, false, "error 'nxio'"),
        (
            "-d a -e corrupt -T flush tank",
            1,
            false,
            "cannot hit I/O of type 'flush'",
        ),
        (
            "-d a -e noop -T read tank",
            1,
            false,
            "cannot hit I/O of type 'read'",
        ),
        ("-d a -e checksum tank", 1, false, "error 'checksum'"),
        ("-d a -e dtl tank", 1, false, "error 'dtl'"),
        ("-d a tank", 1, false, "error 'nxio'"),
        (
            "-d a -D 1:1 -f ten tank",
            1,
            false,
            "invalid frequency value 'ten'",
        ),
        ("-d a -D 1:1 -f 0 tank", 1, false, "out of range"),
        ("-d a -D 1:1 -f 0.00009 tank", 1, false, "out of range"),
        (
            "-d a -D 1:1 -f 100.1 tank",
            1,
            false,
            "out of range: give 0.0001 to 100.0",
        ),
        ("-c nine", 1, true, "invalid handler id 'nine'"),
        ("-c 1 -q", 2, true, "no other option"),
        ("-c 1 tank", 2, true, "no pool"),
        ("-D 10:1 tank", 2, true, "nothing to do"),
        ("-q", 2, true, "nothing to do"),
        ("tank", 2, true, "nothing to do"),
        ("-d a -D 10:1", 2, true, "one pool name"),
        ("-d a -D 10:1 tank dozer", 2, true, "one pool name"),
        ("-x", 2, true, "invalid option '-x'"),
        (
            "-d a --compat=2.3 tank",
            2,
            true,
            "long options come before",
        ),
        ("-d", 1, true, "option '-d' needs a value"),
    ] {
        let refusal = request(line).expect_err(line);
        assert!(refusal.message.contains(gist), "{line}: {refusal}");
        assert_eq!(
            (refusal.code, refusal.usage),
            (code, usage),
            "{line}: {refusal}"
        );
    }
}

#[test]
fn options_that_only_zfs_has_are_refused_by_name() {
    for flag in [
        "-A fault",
        "-b 0:1:2:3",
        "-C 0,1",
        "-E 10",
        "-g 3",
        "-I",
        "-L uber",
        "-l 1",
        "-m",
        "-p spa_open",
        "-P import",
        "-s 30",
        "-t data",
        "-r 0,1",
        "-a",
        "-u",
    ] {
        let refusal = request(&format!("-d a {flag} tank")).expect_err(flag);
        let reason = format!("option '{}' ", &flag[..2]);
        assert!(refusal.message.starts_with(&reason), "{refusal}");
        assert!(!refusal.message.contains("not known"), "{refusal}");
        assert_eq!(refusal.code, 1);
    }
}

#[test]
fn what_is_not_served_is_named() {
    let refusal = Refusal::unknown_device("c9", "tank");
    assert_eq!(refusal.message, "cannot find device 'c9' in pool 'tank'");
    let refusal = Refusal::unknown_handler(9, false);
    assert_eq!(
        refusal.message,
        "failed to remove handler 9: no such handler"
    );
}
