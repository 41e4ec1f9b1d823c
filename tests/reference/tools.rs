//! A turn's tools: batches, segments, the looks at A and C, and the injection when all results are in.

use super::model::*;
use super::result::*;
use super::simulate::World;
use super::state::*;

/// Starved turns after which the next one is protected (semantics.md section 3).
const GUARD: u32 = 2;

/// Cuts a turn's calls into segments: a whole concurrent batch, or one call of a serial batch.
pub fn segments(calls: &[Call], settings: &Effective) -> Vec<Segment> {
    if settings.concurrency_all {
        return vec![Segment { jobs: (0..calls.len()).collect(), glued: false }];
    }
    let mut out: Vec<Segment> = Vec::new();
    for (i, call) in calls.iter().enumerate() {
        let previous = i.checked_sub(1).map(|p| &calls[p]);
        let joins = call.is_safe() && previous.is_some_and(Call::is_safe);
        if let (true, Some(last)) = (joins, out.last_mut()) {
            last.jobs.push(i);
            continue;
        }
        // Only consecutive edits of one serial batch are a unit.
        let glued = settings.keep_edits_together
            && !call.is_safe()
            && call.is_edit()
            && previous.is_some_and(|p| !p.is_safe() && p.is_edit());
        out.push(Segment { jobs: vec![i], glued });
    }
    out
}

impl World<'_> {
    /// Point A: the reply is recorded and has calls.
    pub fn begin_tools(&mut self, agent: usize, tools: &[Call]) {
        let calls: Vec<Call> = tools.iter().filter(|c| !c.provider).cloned().collect();
        let segments = segments(&calls, &self.agents[agent].settings);
        let all: Vec<usize> = (0..calls.len()).collect();
        let jobs = calls.into_iter().map(|call| Job { call, phase: Phase::Waiting }).collect();
        self.agents[agent].unanswered = true;
        let Some(run) = self.agents[agent].run.as_mut() else {
            return;
        };
        let protected = run.starved >= GUARD;
        run.step = Step::Tools(Turn { jobs, segments, at: 0, cut: None, protected });
        if run.stop.is_some() {
            self.pass_tools(agent);
            return;
        }
        let acting = self.acting(agent, protected);
        if acting.is_empty() {
            if let Some(run) = self.agents[agent].run.as_mut() {
                // A turn in which a tool starts sets the count to 0, and so does the end of a protected one.
                run.starved = 0;
            }
            self.pass_tools(agent);
            return;
        }
        let by_urgent = self.emptied_by_urgent(agent, &acting);
        let keeps = self.reading.emptied_protected_keeps_count;
        if let Some(run) = self.agents[agent].run.as_mut() {
            match (by_urgent, protected) {
                (true, true) if !keeps => run.starved = 0,
                (true, _) => {}
                (false, _) => run.starved += 1,
            }
        }
        self.skip_for_mail(agent, &all, &acting);
        self.finish_turn(agent);
    }

    /// Whether the calls of this turn are skipped at A by urgent mail rather than by next_boundary mail.
    fn emptied_by_urgent(&self, agent: usize, acting: &[usize]) -> bool {
        let urgent = |i: &usize| self.agents[agent].mailbox[*i].urgency == Urgency::Urgent;
        if self.reading.mixed_skip_is_urgents {
            acting.iter().any(urgent)
        } else {
            acting.first().is_some_and(urgent)
        }
    }

    /// Skips calls for the mail that acts, which is committed by that.
    fn skip_for_mail(&mut self, agent: usize, jobs: &[usize], acting: &[usize]) {
        let Some(first) = acting.first() else { return };
        let name = self.sender_name(self.agents[agent].mailbox[*first].from);
        for i in acting {
            let mail = &mut self.agents[agent].mailbox[*i];
            mail.committed = true;
            mail.cost = true;
        }
        self.skip_waiting(agent, jobs, &name, false);
    }

    /// Goes on with the turn's tools as far as this instant allows.
    pub fn pass_tools(&mut self, agent: usize) {
        self.record_lost(agent);
        let stop = self.agents[agent].run.as_ref().and_then(|r| r.stop.clone());
        if let Some(stop) = stop {
            // A call keeps the first cause: what an urgent message cut before the stop was skipped by it.
            self.skip_cut_waiters(agent);
            let jobs = self.turn(agent).map_or(0, |t| t.jobs.len());
            let all: Vec<usize> = (0..jobs).collect();
            self.skip_waiting(agent, &all, &stop.name, true);
            if self.turn(agent).is_some_and(|t| t.jobs.iter().all(Job::done)) {
                self.end_stopped(agent);
            }
            return;
        }
        loop {
            self.skip_cut_waiters(agent);
            self.start_jobs(agent);
            let Some(turn) = self.turn(agent) else { return };
            let current = turn.segments[turn.at].jobs.clone();
            if current.iter().any(|j| turn.jobs[*j].busy() || turn.jobs[*j].waiting()) {
                return;
            }
            if turn.at + 1 == turn.segments.len() {
                break;
            }
            if !self.look_between(agent) {
                break;
            }
        }
        self.finish_turn(agent);
    }

    /// Calls of the running segment that wait for a slot when its token is cancelled never start.
    fn skip_cut_waiters(&mut self, agent: usize) {
        let Some(turn) = self.turn(agent) else { return };
        let Some((by, uid)) = turn.cut.clone() else { return };
        let current = turn.segments[turn.at].jobs.clone();
        if current.iter().any(|j| turn.jobs[*j].waiting()) {
            self.note_cost(agent, |m| m.uid == uid);
        }
        self.skip_waiting(agent, &current, &by, false);
    }

    /// Mail of which a result is recorded that it cost is committed after a crash too.
    pub fn note_cost(&mut self, agent: usize, which: impl Fn(&Mail) -> bool) {
        for mail in self.agents[agent].mailbox.iter_mut().filter(|m| which(m)) {
            mail.cost = true;
        }
    }

    /// Gives the calls that a crash took their results.
    fn record_lost(&mut self, agent: usize) {
        let jobs = self.turn(agent).map_or(0, |t| t.jobs.len());
        for job in 0..jobs {
            let Some(turn) = self.turn(agent) else { return };
            let Phase::Lost(started) = turn.jobs[job].phase else {
                continue;
            };
            // "Started, lost in a crash" and "never started, crash".
            let status = if started.is_some() { Status::Unknown } else { Status::Skipped };
            self.finish_job(agent, job, status, Cause::Crash, None);
        }
    }

    /// The look at C before the next segment; whether that segment may start.
    fn look_between(&mut self, agent: usize) -> bool {
        let Some(turn) = self.turn(agent) else {
            return false;
        };
        let only_urgent = turn.protected || turn.segments[turn.at + 1].glued;
        let rest: Vec<usize> = turn.segments[turn.at + 1..].iter().flat_map(|s| s.jobs.clone()).collect();
        let already_skipped = rest.iter().all(|j| turn.jobs[*j].done());
        if already_skipped {
            return false;
        }
        let acting = self.acting(agent, only_urgent);
        if acting.is_empty() {
            if let Some(turn) = self.turn(agent) {
                turn.at += 1;
            }
            return true;
        }
        self.skip_for_mail(agent, &rest, &acting);
        false
    }

    /// Starts the calls of the current segment that have a slot.
    fn start_jobs(&mut self, agent: usize) {
        let s = &self.agents[agent].settings;
        let slots =
            if s.concurrency_all && !self.reading.all_uses_slots { usize::MAX } else { s.max_parallel };
        let Some(turn) = self.turn(agent) else { return };
        for job in turn.segments[turn.at].jobs.clone() {
            let Some(turn) = self.turn(agent) else { return };
            let busy = turn.jobs.iter().filter(|j| j.busy()).count();
            if turn.jobs[job].waiting() && busy < slots && !same_file_before(turn, job) {
                self.start_job(agent, job);
            }
        }
    }

    fn start_job(&mut self, agent: usize, job: usize) {
        let (now, round) = (self.now, self.round);
        let Some(run) = self.agents[agent].run.as_ref() else {
            return;
        };
        let (run_id, turn_id) = (run.id, run.turn);
        let Some(call) = self.turn(agent).map(|t| t.jobs[job].call.clone()) else {
            return;
        };
        let (duty, failed) = if call.is_coordinators() {
            let at = CallRef { agent, run: run_id, turn: turn_id, job };
            self.take_up(at, &call)
        } else {
            (Duty::Timed, false)
        };
        let Some(turn) = self.turn(agent) else { return };
        turn.jobs[job].phase =
            Phase::Running { started: now, round, duty, failed, returned: false, abort: None };
        self.emit(agent, "tool_started", &call.id);
    }

    /// All results are in (or only continuations are out): inject at A, C or D and go on.
    fn finish_turn(&mut self, agent: usize) {
        let Some(turn) = self.turn(agent) else { return };
        if !turn.jobs.iter().all(Job::done) {
            return;
        }
        // What mail skipped and what it cut; what a crash took counts for nothing.
        let cost = |skipped: bool| -> Vec<String> {
            let of_mail = |j: &&Job| match &j.phase {
                Phase::Done(status, Cause::Mail) => (*status == Status::Skipped) == skipped,
                _ => false,
            };
            turn.jobs.iter().filter(of_mail).map(|j| j.call.id.clone()).collect()
        };
        let (skipped, interrupted) = (cost(true), cost(false));
        let point = if skipped.len() == turn.jobs.len() {
            Point::A
        } else if !skipped.is_empty() || !interrupted.is_empty() {
            Point::C
        } else {
            Point::D
        };
        let limited = self.reading.limit_before_injection && self.at_limit(agent).is_some();
        if !limited {
            self.inject(agent, point, &skipped, &interrupted);
        }
        self.next_turn(agent);
    }
}

/// With `concurrency: all`, whether an earlier edit of the same file has not ended.
fn same_file_before(turn: &Turn, job: usize) -> bool {
    let segment = &turn.segments[turn.at].jobs;
    let Some(path) = turn.jobs[job].call.edited_path().filter(|_| segment.len() > 1) else {
        return false;
    };
    segment.iter().take_while(|j| **j < job).any(|j| {
        turn.jobs[*j].call.edited_path() == Some(path) && (turn.jobs[*j].busy() || turn.jobs[*j].waiting())
    })
}
