//! `load`: requests to look at, for demonstrations.

use std::net::ToSocketAddrs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};
use dashpot_engine::{Op, Ratio};
use dashpot_export::Address;
use dashpot_export::load::{LoadConfig, LoadReport, Pace, run};

use super::output::{Column, print, table, time_or_dash};
use crate::cli::LoadArgs;

/// NBD's port (IANA).
const PORT: u16 = 10_809;

const COLUMNS: [Column; 7] = [
    Column::Text("op"),
    Column::Figure("n"),
    Column::Figure("per second"),
    Column::Figure("errors"),
    Column::Figure("p50"),
    Column::Figure("p99"),
    Column::Figure("max"),
];

pub(crate) fn load(args: &LoadArgs) -> anyhow::Result<()> {
    let (address, export) = parse_uri(&args.uri)?;
    let config = LoadConfig {
        address,
        export,
        connections: 1,
        depth: args.depth,
        block: args.block,
        writes_ppm: args.write.map_or(0, millionths),
        flushes_ppm: 0,
        sequential: false,
        pace: pace(args),
        lasts: args.time,
        busy: false,
        verify: false,
        seed: 0,
    };
    let interrupted = interrupted()?;
    let report = run(&config, |_| interrupted.load(Ordering::Relaxed))?;
    print(&text(&report))
}

fn pace(args: &LoadArgs) -> Pace {
    match (args.rate, args.burst) {
        (Some(rate), burst) => Pace::Open {
            rate,
            burst: burst.unwrap_or((1, 1)),
        },
        (None, Some(burst)) => Pace::ClosedBursts { burst },
        (None, None) => Pace::Closed,
    }
}

fn text(report: &LoadReport) -> String {
    let seconds = report.elapsed.as_nanos() as f64 / 1e9;
    let asked = [Op::Read, Op::Write, Op::Flush].into_iter();
    let rows = asked.filter_map(|op| {
        let one = report.op(op).filter(|one| one.latency.count() > 0)?;
        Some(vec![
            op.name().to_owned(),
            one.latency.count().to_string(),
            format!("{:.1}", one.latency.count() as f64 / seconds),
            one.errors.to_string(),
            time_or_dash(one.latency.quantile(500_000)),
            time_or_dash(one.latency.quantile(990_000)),
            time_or_dash(one.latency.max()),
        ])
    });
    table(&COLUMNS, rows)
}

fn millionths(ratio: Ratio) -> u32 {
    let share = u128::from(ratio.numerator()) * 1_000_000 / u128::from(ratio.denominator());
    u32::try_from(share).unwrap_or(1_000_000)
}

/// Becomes true at Ctrl-C, so that the load ends with its report.
fn interrupted() -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&flag);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    std::thread::spawn(move || {
        if runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
            raised.store(true, Ordering::Relaxed);
        }
    });
    Ok(flag)
}

fn parse_uri(uri: &str) -> anyhow::Result<(Address, String)> {
    if let Some(rest) = uri.strip_prefix("nbd+unix:///") {
        let (export, socket) = rest
            .split_once("?socket=")
            .with_context(|| format!("'{uri}' names no socket: nbd+unix:///DISK?socket=PATH"))?;
        let path = PathBuf::from(percent_decoded(socket));
        return Ok((Address::Unix(path), percent_decoded(export)));
    }
    let Some((host, export)) = uri
        .strip_prefix("nbd://")
        .and_then(|rest| rest.split_once('/'))
    else {
        bail!(
            "'{uri}' is no URI of a disk: nbd://HOST[:PORT]/DISK or nbd+unix:///DISK?socket=PATH"
        );
    };
    let has_port = host
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let host = if has_port {
        host.to_owned()
    } else {
        format!("{host}:{PORT}")
    };
    let mut found = host
        .to_socket_addrs()
        .with_context(|| format!("'{host}' is not known"))?;
    let socket = found
        .next()
        .with_context(|| format!("'{host}' has no address"))?;
    Ok((Address::Tcp(socket), percent_decoded(export)))
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).filter(|_| *first == b'%');
        let byte = hex.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::parse_uri;
    use dashpot_export::Address;

    #[test]
    fn uris_as_serve_prints_them() {
        let (address, export) = parse_uri("nbd+unix:///tank/foo?socket=/run/a%20b/s").unwrap();
        assert_eq!(
            (address, export.as_str()),
            (Address::Unix("/run/a b/s".into()), "tank/foo")
        );
        let tcp = |uri| parse_uri(uri).map(|(address, _)| address.to_string()).ok();
        assert_eq!(
            tcp("nbd://127.0.0.1:7/d").as_deref(),
            Some("tcp:127.0.0.1:7")
        );
        assert_eq!(
            tcp("nbd://127.0.0.1/d").as_deref(),
            Some("tcp:127.0.0.1:10809")
        );
        assert_eq!(tcp("nbd://[::1]/d").as_deref(), Some("tcp:[::1]:10809"));
        for uri in ["nbd+unix:///d", "http://a/d", "nbd://a", "d"] {
            assert!(parse_uri(uri).is_err(), "{uri}");
        }
    }
}
