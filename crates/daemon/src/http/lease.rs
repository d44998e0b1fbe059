//! Leased rules end when their client's connection ends, because a client that is killed clears nothing. The
//! I/Os that such rules hang end with them, because nobody is left who could release them.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use dashpot_engine::Release;
use dashpot_engine::inject::RuleId;
use hyper::body::{Body, Bytes, Frame};

use crate::{Daemon, Scope};

/// Some rules. Dropping the lease clears those of the rules that are still armed, and completes the zios that
/// they hang.
pub(super) struct Lease {
    daemon: Arc<Daemon>,
    rules: Vec<RuleId>,
}

/// A body that sends one line and then stays open. The server drops the body when the connection ends.
pub(super) struct Leased {
    line: Option<Bytes>,
    end: Option<Bytes>,
    _lease: Lease,
}

impl Lease {
    pub(super) fn new(daemon: Arc<Daemon>, rules: Vec<RuleId>) -> Lease {
        Lease { daemon, rules }
    }

    /// A body that begins with this line, and keeps the lease until the body is dropped.
    pub(super) fn body(self, line: Bytes) -> Leased {
        Leased {
            line: Some(line),
            end: Some(Bytes::from_static(b"\n")),
            _lease: self,
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let (daemon, rules) = (Arc::clone(&self.daemon), std::mem::take(&mut self.rules));
        // If there is no runtime, the daemon is ending anyway.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            for rule in rules {
                // This fails if the rule is already gone: a client that ends normally clears its rules
                // itself.
                let scope = Scope::Rule(rule.0.to_string());
                let _ = daemon.clear(&scope, Release::Hung).await;
            }
        });
    }
}

impl Body for Leased {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = self.line.take().or_else(|| self.end.take());
        match next {
            Some(line) => Poll::Ready(Some(Ok(Frame::data(line)))),
            None => Poll::Pending,
        }
    }
}
