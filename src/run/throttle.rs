//! Starts the delay of the command (`--lossless`) when the rings exist, and reports when it fails.

use super::{Notices, Run};
use crate::arm::Armed;
use crate::event::NoticeCode;
use crate::plan::Plan;
use crate::throttle::Throttle;

/// Lets the rings be watched from now on.
///
/// # Errors
/// The process that watches them cannot be started, or cannot map them.
pub(super) fn start(mut throttle: Throttle, plan: &Plan, armed: &Armed, notices: &mut Notices) -> anyhow::Result<Throttle> {
    let rings = armed.rings_of_calls(plan.buffers.ended_tasks);
    if let Some(why) = throttle.watch(&rings, &plan.cpus, plan.buffers.fill_rate)? {
        let text = format!("the rings are watched without real-time priority ({why}): calls may be lost while all CPUs are busy");
        notices.say(NoticeCode::NoRealtimePriority, text);
    }
    Ok(throttle)
}

impl Run<'_> {
    /// Reports that the command is not delayed as it should be, if it is so.
    pub(super) fn report_not_delayed(&mut self) {
        if let Some(problem) = self.throttle.as_mut().and_then(Throttle::problem) {
            self.drain.notice(NoticeCode::NotDelayed, problem);
        }
    }
}
