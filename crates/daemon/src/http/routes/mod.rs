//! The handlers of requests.

mod device;
pub(super) mod disks;
pub(super) mod events;
pub(super) mod expect;
pub(super) mod meta;
pub(super) mod pools;
pub(super) mod rules;
pub(super) mod scenarios;
pub(super) mod seconds;
pub(super) mod statistics;
pub(super) mod status;
pub(super) mod volumes;

use std::future::Future;

use crate::Refusal;
use crate::http::statistics::panicked;

/// Completes a change even if the caller hangs up in the middle of it, because the daemon must record every
/// change that the engine has made.
async fn to_the_end<T: Send + 'static>(
    change: impl Future<Output = Result<T, Refusal>> + Send + 'static,
) -> Result<T, Refusal> {
    tokio::spawn(change).await.map_err(panicked)?
}
