//! The output of zinject: tables of handlers, and the answers to adding and removing them.

use dashpot_engine::Errno;
use dashpot_engine::inject::{Count, Damage, Delay, Effect, Mode, RuleSpec, Service, When};
use serde::Serialize;

use super::options::IoType;
use super::{Add, Cancel, Compat, Guid};

const NANOS_PER_MS: u64 = 1_000_000;

/// A handler as the tables show it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Handler {
    /// The id of the handler's rule.
    pub id: u32,
    /// The name of the pool, or `-`.
    pub pool: String,
    /// The GUID of the handler's disk.
    pub guid: Guid,
    /// The handler's effect.
    #[serde(flatten)]
    pub fault: Fault,
    /// The percentage of I/Os that the handler affects; 100 without `-f`.
    pub frequency: f64,
    /// How many I/Os matched the handler.
    #[serde(rename = "match")]
    pub matched: u64,
    /// How many I/Os the handler has changed.
    #[serde(rename = "inject")]
    pub injected: u64,
}

/// The effect of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Fault {
    Delay {
        #[serde(rename = "delay_ms")]
        ms: u64,
        lanes: u32,
    },
    Device {
        #[serde(rename = "type")]
        iotype: &'static str,
        error: &'static str,
    },
}

impl Handler {
    /// Turns a rule into a handler whose counts are 0. Returns `None` if zinject has no words for the rule's
    /// effect.
    pub fn of(id: u32, pool: &str, disk: &str, spec: &RuleSpec) -> Option<Handler> {
        let percent = |hits: u64, cases: u64| hits as f64 / cases as f64 * 100.0;
        let chance = spec
            .chance
            .map(|ratio| percent(ratio.numerator(), ratio.denominator()));
        Some(Handler {
            id,
            pool: pool.to_owned(),
            guid: Guid::of(disk),
            fault: Fault::of(spec)?,
            frequency: chance.unwrap_or(100.0),
            matched: 0,
            injected: 0,
        })
    }
}

impl Fault {
    fn of(spec: &RuleSpec) -> Option<Fault> {
        let plain = RuleSpec::new(spec.effect.clone());
        let limited = (spec.count, spec.when) != (Count::ALL, When::default())
            || spec.bandwidth.is_some()
            || spec.range.is_some()
            || spec.client.is_some();
        if limited || spec.mode != Mode::Floor {
            return None;
        }
        match plain.effect {
            Effect::Delay(Delay {
                service: Service::Constant(latency),
                lanes: Some(lanes),
                ramp: None,
            }) if latency.as_nanos().is_multiple_of(NANOS_PER_MS) => Some(Fault::Delay {
                ms: latency.as_nanos() / NANOS_PER_MS,
                lanes,
            }),
            Effect::Fail {
                errno: Errno::Io,
                work,
                delay: None,
            } => {
                let error = if work { "io" } else { "io-prefail" };
                IoType::of_ops(spec.ops).map(|t| Fault::Device {
                    iotype: t.name(),
                    error,
                })
            }
            Effect::Damage(damage) => {
                let error = match damage {
                    Damage::Drop => "noop",
                    Damage::Flip => "corrupt",
                    _ => return None,
                };
                let of_type = |t: &IoType| t.damaged_ops(damage) == Some(spec.ops);
                IoType::EVERY
                    .into_iter()
                    .rfind(of_type)
                    .map(|t| Fault::Device {
                        iotype: t.name(),
                        error,
                    })
            }
            _ => None,
        }
    }
}

/// The text that zinject prints after it has added a handler.
pub fn added(id: u32, disk: &str, add: &Add, compat: Compat) -> String {
    if add.quiet {
        return format!("{id}\n");
    }
    let mut text = format!("Added handler {id} with the following properties:\n");
    text += &format!("  pool: {}\n  vdev: {}\n", add.pool, Guid::of(disk));
    if compat == Compat::V2_4 {
        text += &format!("iotype: {}\n", add.iotype.name());
    }
    text
}

/// The text that zinject prints after it has removed handlers.
pub fn removed(cancel: Cancel) -> String {
    match cancel {
        Cancel::All => "removed all registered handlers\n".to_owned(),
        Cancel::One(id) => format!("removed handler {id}\n"),
    }
}

/// The list of all handlers: first device faults, then delays, with an empty line after each section.
pub fn list(handlers: &[Handler], compat: Compat) -> String {
    if handlers.is_empty() {
        return "No handlers registered.\nSee 'dashpot zinject -h' for how to add one.\n"
            .to_owned();
    }
    let is_device = |handler: &&Handler| matches!(handler.fault, Fault::Device { .. });
    let (devices, delays): (Vec<_>, Vec<_>) = handlers.iter().partition(is_device);
    let (device_head, delay_head) = match compat {
        Compat::V2_3 => (DEVICES_2_3, DELAYS_2_3),
        Compat::V2_4 => (DEVICES_2_4, DELAYS_2_4),
    };
    section(device_head, &devices, compat) + &section(delay_head, &delays, compat)
}

fn section(head: &str, handlers: &[&Handler], compat: Compat) -> String {
    if handlers.is_empty() {
        return String::new();
    }
    let rows = handlers.iter().map(|handler| row(handler, compat) + "\n");
    format!("{head}\n{}\n", rows.collect::<String>())
}

const DEVICES_2_3: &str = " ID  POOL             GUID
---  ---------------  ----------------";

const DEVICES_2_4: &str =
    " ID  POOL             GUID              TYPE   ERROR       FREQ       MATCH   INJECT
---  ---------------  ----------------  -----  ----------  ---------  ------  ------";

const DELAYS_2_3: &str = " ID  POOL             DELAY (ms)       LANES            GUID
---  ---------------  ---------------  ---------------  ----------------";

const DELAYS_2_4: &str =
    " ID  POOL             GUID              DELAY (ms)  LANES  FREQ       MATCH   INJECT
---  ---------------  ----------------  ----------  -----  ---------  ------  ------";

fn row(handler: &Handler, compat: Compat) -> String {
    let Handler {
        id,
        pool,
        guid,
        frequency,
        matched,
        injected,
        ..
    } = handler;
    let counts = format!("{frequency:8.4}%  {matched:6}  {injected:6}");
    match (handler.fault, compat) {
        (Fault::Device { .. }, Compat::V2_3) => format!("{id:3}  {pool:<15}  {guid}"),
        (Fault::Device { iotype, error }, Compat::V2_4) => {
            format!("{id:3}  {pool:<15}  {guid}  {iotype:<5}  {error:<10}  {counts}")
        }
        (Fault::Delay { ms, lanes }, Compat::V2_3) => {
            format!("{id:3}  {pool:<15}  {ms:<15}  {lanes:<15}  {guid}")
        }
        (Fault::Delay { ms, lanes }, Compat::V2_4) => {
            format!("{id:3}  {pool:<15}  {guid}  {ms:10}  {lanes:5}  {counts}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Fault, Handler, added, list, removed};
    use crate::parse_injection;
    use crate::zinject::{Cancel, Compat, Guid, Request, parse};
    use expect_test::expect;

    fn handler(id: u32, guid: u64, fault: Fault, frequency: f64, counts: (u64, u64)) -> Handler {
        let (matched, injected) = counts;
        Handler {
            id,
            pool: "tank".into(),
            guid: Guid(guid),
            fault,
            frequency,
            matched,
            injected,
        }
    }

    fn delay(ms: u64, lanes: u32) -> Fault {
        Fault::Delay { ms, lanes }
    }

    #[test]
    fn the_tables_of_2_4() {
        let guid = 0x1a2b_3c4d_5e6f_7081;
        let io = Fault::Device {
            iotype: "write",
            error: "io",
        };
        let handlers = [
            handler(1, guid, delay(10, 1), 100.0, (1_042, 1_042)),
            handler(2, guid, delay(25, 2), 50.0, (1_042, 211)),
            handler(3, guid, io, 0.5, (7, 1)),
        ];
        expect![[r#"
             ID  POOL             GUID              TYPE   ERROR       FREQ       MATCH   INJECT
            ---  ---------------  ----------------  -----  ----------  ---------  ------  ------
              3  tank             1a2b3c4d5e6f7081  write  io            0.5000%       7       1

             ID  POOL             GUID              DELAY (ms)  LANES  FREQ       MATCH   INJECT
            ---  ---------------  ----------------  ----------  -----  ---------  ------  ------
              1  tank             1a2b3c4d5e6f7081          10      1  100.0000%    1042    1042
              2  tank             1a2b3c4d5e6f7081          25      2   50.0000%    1042     211

        "#]]
        .assert_eq(&list(&handlers, Compat::V2_4));
    }

    #[test]
    fn the_table_of_the_2015_article() {
        let handlers = [
            handler(3, 0xf4eb_4119_d717_0682, delay(16, 16), 100.0, (0, 0)),
            handler(4, 0xf1d3_2d9b_9514_d7a3, delay(32, 16), 100.0, (0, 0)),
        ];
        expect![[r#"
             ID  POOL             DELAY (ms)       LANES            GUID
            ---  ---------------  ---------------  ---------------  ----------------
              3  tank             16               16               f4eb4119d7170682
              4  tank             32               16               f1d32d9b9514d7a3

        "#]]
        .assert_eq(&list(&handlers, Compat::V2_3));
    }

    #[test]
    fn answers() {
        let words = ["-d", "c1t1d0", "-D", "10:1", "-T", "write", "tank"].map(str::to_owned);
        let Ok(Request::Add(mut add)) = parse(&words) else {
            panic!("no handler to add");
        };
        expect![[r#"
            Added handler 1 with the following properties:
              pool: tank
              vdev: ca6d5e4e118590d6
            iotype: write
        "#]]
        .assert_eq(&added(1, "c1t1d0", &add, Compat::V2_4));
        expect![[r#"
            Added handler 1 with the following properties:
              pool: tank
              vdev: ca6d5e4e118590d6
        "#]]
        .assert_eq(&added(1, "c1t1d0", &add, Compat::V2_3));
        add.quiet = true;
        assert_eq!(added(12, "c1t1d0", &add, Compat::V2_4), "12\n");
        assert_eq!(removed(Cancel::One(3)), "removed handler 3\n");
        assert_eq!(removed(Cancel::All), "removed all registered handlers\n");
        expect![[r#"
            No handlers registered.
            See 'dashpot zinject -h' for how to add one.
        "#]]
        .assert_eq(&list(&[], Compat::V2_4));
    }

    #[test]
    fn rules_that_zinject_could_have_made_are_handlers() {
        let of = |words: &str| {
            let rule = parse_injection(words).expect(words).rules.remove(0);
            Handler::of(1, "tank", "c1t1d0", &rule.spec).map(|handler| handler.fault)
        };
        assert_eq!(of("-D 10ms:1"), Some(delay(10, 1)));
        assert_eq!(
            of("-e EIO -T write --mode floor -f 1%"),
            Some(Fault::Device {
                iotype: "write",
                error: "io"
            })
        );
        for words in [
            "-D 10ms",
            "-D 1500us:1",
            "-D 10ms~1ms:1",
            "-D 10ms:1 --mode add",
            "--hang",
            "-D 10ms:1 --first 3",
            "-D 10ms:1 --bandwidth 1M",
            "-e ENOSPC",
            "-e EIO -T fua",
            "-D 10ms:1 --for 1s",
            "-D 10ms:1 --range 0..1",
        ] {
            assert_eq!(of(words), None, "{words}");
        }
    }

    #[test]
    fn json_is_a_flat_object() {
        let json = serde_json::to_value(handler(1, 0xab, delay(10, 1), 50.0, (2, 1)));
        let expected = serde_json::json!({
            "id": 1, "pool": "tank", "guid": "ab", "kind": "delay", "delay_ms": 10, "lanes": 1,
            "frequency": 50.0, "match": 2, "inject": 1,
        });
        assert_eq!(json.ok(), Some(expected));
    }
}
