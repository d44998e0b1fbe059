//! The links by which reports find the recording of a daemon or of `observe`. A killed process leaves its
//! link behind. The recording that the link names can still be read.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::Context;
use dashpot_api::kernel_recording_link;
use dashpot_daemon::http::make_private_dir;
use dashpot_sources::Target;
use dashpot_sys::Trusted;

/// A link to a recording. Dropping this value removes the link, unless another link has replaced it.
pub(super) struct Link {
    path: PathBuf,
    root: PathBuf,
}

impl Link {
    /// Makes a link to a recording, in place of an older link.
    pub(super) fn make(path: PathBuf, root: &Path) -> anyhow::Result<Link> {
        let root = fs::canonicalize(root).with_context(|| root.display().to_string())?;
        if let Some(directory) = path.parent().filter(|directory| !directory.exists()) {
            make_private_dir(directory)?;
        }
        let draft = path.with_extension(format!("{}.draft", std::process::id()));
        let made = symlink(&root, &draft).and_then(|()| fs::rename(&draft, &path));
        made.with_context(|| format!("--record: '{}' cannot be made", path.display()))?;
        Ok(Link { path, root })
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if fs::read_link(&self.path).is_ok_and(|root| root == self.root) {
            // If the link stays, it does no harm: the recording that it names can be read.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The link to the recording of a target.
fn link_of(target: &Target) -> PathBuf {
    match target {
        Target::Daemon { client, .. } | Target::Pools { client, .. } => client.recording_link(),
        Target::Kernel(..) => kernel_recording_link(),
    }
}

/// The recording that another process is making of a target, if there is one. A link that another user may
/// have made does not count.
pub fn found(target: &Target) -> Option<PathBuf> {
    let link = link_of(target);
    Trusted::owns(&link).then(|| fs::read_link(link).ok())?
}
