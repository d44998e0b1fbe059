//! `clear`: removes rules by id, by name, by disk, or all.

use dashpot_api::{Cleared, Client, Method, segment};

use super::failed::check;
use super::output::{print, print_json};
use crate::cli::ClearArgs;

pub(crate) fn clear(client: &Client, args: &ClearArgs) -> anyhow::Result<()> {
    let path = path(client, &args.target, args.release)?;
    let done: Cleared = client.send(Method::DELETE, &path, &())?;
    if args.json {
        print_json(&done)?;
        return check(&done.failed);
    }
    print(&match done.cleared.as_slice() {
        [] if args.release => "no rule was armed; what cleared ones held is let go\n".to_owned(),
        [] => "no rule was armed\n".to_owned(),
        ids => format!("cleared {}\n", listed(ids)),
    })?;
    check(&done.failed)
}

/// `rule 3`, `rules 1, 2`.
pub(crate) fn listed(ids: &[u32]) -> String {
    let numbers: Vec<String> = ids.iter().map(u32::to_string).collect();
    let noun = if ids.len() == 1 { "rule" } else { "rules" };
    format!("{noun} {}", numbers.join(", "))
}

/// No rule has the name of a disk.
fn path(client: &Client, target: &str, release: bool) -> anyhow::Result<String> {
    if target == "all" {
        return Ok(format!("/v1/rules?release={release}"));
    }
    let segment = segment(target);
    Ok(if client.has_disk(target)? {
        format!("/v1/rules?disk={segment}&release={release}")
    } else {
        format!("/v1/rules/{segment}?release={release}")
    })
}
