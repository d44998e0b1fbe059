//! The user who typed `sudo`. After the steps that need root, dashpot runs as that user, so that its sockets
//! and files belong to that user.

use std::ffi::CString;

use anyhow::{Context, bail};
use dashpot_export::reclaim;
use nix::unistd::{Gid, Uid, User, getgrouplist, setgid, setgroups, setuid};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_keep_capabilities};

/// A user who has become root with `sudo`.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    uid: Uid,
    gid: Gid,
    groups: Vec<Gid>,
}

impl Caller {
    /// The user who typed `sudo`; `None` if this process did not become root by `sudo`, or if that user
    /// was root.
    pub(crate) fn of_sudo() -> anyhow::Result<Option<Caller>> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let (Some(uid), Some(gid)) = (number("SUDO_UID")?, number("SUDO_GID")?) else {
            return Ok(None);
        };
        if uid == 0 {
            return Ok(None);
        }
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
        let user = User::from_uid(uid).context("the users of this host cannot be read")?;
        let groups = match user {
            Some(user) => getgrouplist(&CString::new(user.name)?, gid)?,
            None => vec![gid],
        };
        Ok(Some(Caller { uid, gid, groups }))
    }

    /// The ids of the user and of the group.
    pub(crate) fn owner(&self) -> (u32, u32) {
        (self.uid.as_raw(), self.gid.as_raw())
    }

    /// Gives up the rights of root for good. If the limit on locked memory is finite, keeps the right to lock
    /// memory.
    pub(crate) fn become_again(&self) -> anyhow::Result<()> {
        let keeps = !reclaim::is_unlimited() && reclaim::may_lock();
        set_keep_capabilities(keeps)?;
        setgroups(&self.groups).context("cannot take the groups of the user again")?;
        setgid(self.gid).context("cannot take the group of the user again")?;
        setuid(self.uid).context("cannot become the user again")?;
        if keeps {
            set_capabilities(None, ONLY_LOCK)?;
        }
        if setuid(Uid::from_raw(0)).is_ok() {
            bail!("the rights of root cannot be given up");
        }
        Ok(())
    }
}

const ONLY_LOCK: CapabilitySets = CapabilitySets {
    effective: CapabilitySet::IPC_LOCK,
    permitted: CapabilitySet::IPC_LOCK,
    inheritable: CapabilitySet::empty(),
};

/// The number that `sudo` has put into an environment variable.
fn number(variable: &str) -> anyhow::Result<Option<u32>> {
    let Ok(text) = std::env::var(variable) else {
        return Ok(None);
    };
    let number = text.parse().ok();
    let number =
        number.with_context(|| format!("{variable}={text}: not a number of a user; unset it"))?;
    Ok(Some(number))
}
