//! Scenarios last as long as the connection of their client, because a client that is killed stops nothing.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame};

use crate::Daemon;
use crate::runs::Run;
use crate::wire::scenario;

/// A run of a scenario. Dropping it stops the run.
pub(super) struct Held {
    daemon: Arc<Daemon>,
    run: Arc<Run>,
}

/// A body that sends one line, waits until the run has ended, and sends another. The server drops the body when the
/// connection ends.
pub(super) struct HeldBody {
    line: Option<Bytes>,
    end: Option<Pin<Box<dyn Future<Output = Bytes> + Send>>>,
    _held: Held,
}

impl Held {
    pub(super) fn new(daemon: Arc<Daemon>, run: Arc<Run>) -> Held {
        Held { daemon, run }
    }

    /// A body that begins with this line.
    pub(super) fn body(self, line: Bytes) -> HeldBody {
        let (daemon, run) = (Arc::clone(&self.daemon), Arc::clone(&self.run));
        let end = async move {
            run.ended().await;
            // No run fails to become JSON.
            let line = serde_json::to_vec(&scenario(&daemon, &run)).unwrap_or_default();
            ended_line(&line)
        };
        HeldBody {
            line: Some(ended_line(&line)),
            end: Some(Box::pin(end)),
            _held: self,
        }
    }
}

fn ended_line(line: &[u8]) -> Bytes {
    [line, b"\n"].concat().into()
}

impl Drop for Held {
    fn drop(&mut self) {
        self.run.stop();
    }
}

impl Body for HeldBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(line) = self.line.take() {
            return Poll::Ready(Some(Ok(Frame::data(line))));
        }
        let Some(end) = &mut self.end else {
            return Poll::Ready(None);
        };
        end.as_mut().poll(context).map(|line| {
            self.end = None;
            Some(Ok(Frame::data(line)))
        })
    }
}
