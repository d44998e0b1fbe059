//! The driver's work for clients: moves each call from its thread to the lab and back.

use dashpot_engine::{DiskId, Duration, Input, Instant, Op, Outcome, VolumeId, Zio, ZioId};

use super::{CALLS_MAX, Simulation};
use crate::agenda::Happening;
use crate::calls::{Call, Request, Stage};
use crate::error::Violation;
use crate::scenario::Target;
use crate::workload::Turn;

/// Moves a call from the client to the lab.
impl Simulation {
    /// Gives a thread its turn.
    pub(super) fn turn(&mut self, workload: u32, thread: u32) -> Result<(), Violation> {
        while !self.closing {
            let client = &mut self.workloads[workload as usize];
            let waits_for_calls = client.think().is_some();
            match client.turn(thread, self.now) {
                Turn::Call(request, inside) => self.begin(workload, thread, request, inside)?,
                Turn::Wait(at) => {
                    let turn = Happening::Turn { workload, thread };
                    self.agenda.set(at, turn);
                    return Ok(());
                }
                Turn::End => return Ok(()),
            }
            if waits_for_calls {
                return Ok(());
            }
        }
        Ok(())
    }

    fn begin(
        &mut self,
        workload: u32,
        thread: u32,
        request: Request,
        inside: Duration,
    ) -> Result<(), Violation> {
        if self.calls.len() >= CALLS_MAX {
            let what = format!(
                "more than {CALLS_MAX} calls are in flight: the workloads begin them faster than the \
                 lab ends them; give an open loop a lower rate, or the lab less time"
            );
            return Err(self.violation(what));
        }
        let call = self.calls.insert(Call {
            workload,
            thread,
            request,
            began: self.now,
            submitted: None,
            failed: false,
            stage: Stage::Going,
            orphan: false,
        });
        if inside == Duration::ZERO {
            return self.link(call);
        }
        self.agenda.set(self.now + inside, Happening::Link(call));
        Ok(())
    }

    /// Puts a call on its link. If the call's connection is lost, the call's data does not pass the link.
    pub(super) fn link(&mut self, id: u32) -> Result<(), Violation> {
        let call = self.calls.get(id);
        let bytes = match call.request.op {
            Op::Write if !call.orphan => call.request.length,
            _ => 0,
        };
        let link = self.workloads[call.workload as usize].to_lab.as_mut();
        let arrives = link.map_or(self.now, |link| link.pass(self.now, bytes));
        if arrives == self.now {
            return self.submit(id);
        }
        self.agenda.set(arrives, Happening::Submit(id));
        Ok(())
    }

    /// Submits a call that has reached the lab.
    pub(super) fn submit(&mut self, id: u32) -> Result<(), Violation> {
        let call = self.calls.get_mut(id);
        if call.orphan {
            self.calls.remove(id);
            return Ok(());
        }
        (call.submitted, call.stage) = (Some(self.now), Stage::Lab);
        let call = *call;
        self.check(|checker, _| checker.submitted(ZioId(id), &call.request))?;
        match call.request.target {
            Target::Disk(disk) => {
                let zio = self.zio(ZioId(id), DiskId(disk as u32), &call);
                self.input(Input::Submit(zio));
            }
            Target::Volume(volume) => {
                let zio = self.zio(ZioId(id), VolumeId(volume as u32), &call);
                self.input(Input::SubmitToVolume(zio));
            }
        }
        Ok(())
    }

    pub(super) fn zio<D>(&self, id: ZioId, device: D, call: &Call) -> Zio<D> {
        Zio {
            id,
            device,
            client: self.workloads[call.workload as usize].client,
            op: call.request.op,
            fua: call.request.fua,
            call: None,
            offset: call.request.offset,
            length: call.request.length,
            arrived: call.submitted.unwrap_or(call.began),
        }
    }
}

/// Moves a call from the lab to the client.
impl Simulation {
    /// Puts the lab's reply on the link to the client.
    pub(super) fn complete(&mut self, zio: ZioId, outcome: Outcome) -> Result<(), Violation> {
        self.check(|checker, _| checker.completed(zio, outcome))?;
        let offered = self.now;
        self.input(Input::Replied { zio, offered });
        let call = self.calls.get_mut(zio.0);
        if call.stage != Stage::Lab || call.orphan {
            let what = format!("zio {} is completed, but no client waits for it", zio.0);
            return Err(self.violation(what));
        }
        call.failed = outcome.is_err();
        call.stage = Stage::Returning;
        let workload = &mut self.workloads[call.workload as usize];
        if call.began >= Instant::ZERO + self.scenario.warmup {
            workload.results.replied(call, self.now);
        }
        let bytes = match (call.request.op, outcome) {
            (Op::Read, Ok(())) => call.request.length,
            _ => 0,
        };
        let back = workload.to_client.as_mut();
        let arrives = back.map_or(self.now, |link| link.pass(self.now, bytes));
        if arrives == self.now {
            return self.end(zio.0);
        }
        self.agenda.set(arrives, Happening::Reply(zio.0));
        Ok(())
    }

    /// Forgets a call that the engine has dropped because the call's connection was lost.
    pub(super) fn dropped(&mut self, zio: ZioId) -> Result<(), Violation> {
        self.check(|checker, _| checker.dropped(zio))?;
        let call = self.calls.remove(zio.0);
        if call.stage != Stage::Lab || !call.orphan {
            let what = format!("zio {} is dropped, but its client waits for it", zio.0);
            return Err(self.violation(what));
        }
        Ok(())
    }

    /// Gives the client its reply, and lets the thread go on.
    pub(super) fn end(&mut self, id: u32) -> Result<(), Violation> {
        let call = self.calls.remove(id);
        if call.orphan {
            return Ok(());
        }
        self.ended.calls += 1;
        self.ended_now += 1;
        if !call.failed {
            self.ended.bytes += u64::from(call.request.length);
        }
        let workload = &mut self.workloads[call.workload as usize];
        if call.began >= Instant::ZERO + self.scenario.warmup {
            workload.results.ended(&call, self.now);
        }
        match workload.think() {
            None => Ok(()),
            Some(think) if think == Duration::ZERO => self.turn(call.workload, call.thread),
            Some(think) => {
                let (workload, thread) = (call.workload, call.thread);
                let turn = Happening::Turn { workload, thread };
                self.agenda.set(self.now + think, turn);
                Ok(())
            }
        }
    }

    /// Ends a connection. Its calls are lost, and the threads that waited for them continue.
    pub(super) fn disconnect(&mut self, workload: u32) -> Result<(), Violation> {
        let lost = self.calls.alive();
        let lost = lost.filter(|(_, call)| call.workload == workload);
        let lost: Vec<(u32, Call)> = lost.map(|(id, call)| (id, *call)).collect();
        let in_lab = lost.iter().filter(|(_, call)| call.stage == Stage::Lab);
        let in_lab: Vec<ZioId> = in_lab.map(|(id, _)| ZioId(*id)).collect();
        for (id, _) in &lost {
            self.calls.get_mut(*id).orphan = true;
        }
        let client = &mut self.workloads[workload as usize];
        client.results.aborted += lost.len() as u64;
        let waits_for_calls = client.think().is_some();
        self.input(Input::Abort(&in_lab));
        for (_, call) in lost.iter().filter(|_| waits_for_calls) {
            self.turn(workload, call.thread)?;
        }
        Ok(())
    }
}
