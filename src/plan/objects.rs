//! `--by`: checks that some traced call has the object by which the summary's rows are distinguished.

use crate::beauty::row::{Arg, ArgumentKind, Return, Syscall};
use crate::show::SummaryObject;
use crate::text::near;
use anyhow::bail;
use std::collections::BTreeSet;

/// Checks that some traced call has the object. `everything` says that calls without a row are traced as well.
///
/// # Errors
/// No traced call has the object; the error suggests similar names.
pub fn check(object: Option<&SummaryObject>, calls: &[&'static Syscall], everything: bool) -> anyhow::Result<()> {
    let Some(object) = object else { return Ok(()) };
    let any = |has: &dyn Fn(&Arg) -> bool| calls.iter().any(|call| args(call).any(has));
    let has_fd = any(&|arg| matches!(arg.kind, ArgumentKind::Fd | ArgumentKind::DirFd))
        || calls.iter().any(|call| matches!(call.returns, Return::Fd));
    match object {
        SummaryObject::Comm | SummaryObject::Errno => Ok(()),
        SummaryObject::Path if has_fd || any(&|arg| matches!(arg.kind, ArgumentKind::Path)) => Ok(()),
        SummaryObject::Fd | SummaryObject::Peer if has_fd => Ok(()),
        SummaryObject::Path => bail!("--by path: none of the syscalls that are traced has a path or a descriptor"),
        SummaryObject::Fd | SummaryObject::Peer => {
            bail!("--by {}: none of the syscalls that are traced has a descriptor", object.name())
        }
        SummaryObject::Arg(name) if any(&|arg| arg.name == name) => Ok(()),
        SummaryObject::Arg(name) => {
            let names: BTreeSet<&str> = calls.iter().flat_map(|call| args(call)).map(|arg| arg.name).collect();
            let near = near::nearest(name, names.iter().copied(), 3);
            let whose = if everything { "no syscall" } else { "none of the syscalls that are traced" };
            let hint = if near.is_empty() && names.len() <= 12 && !names.is_empty() {
                format!(" (there are: {})", names.into_iter().collect::<Vec<_>>().join(", "))
            } else {
                near::hint(&near)
            };
            bail!("--by arg:{name}: {whose} has an argument of this name{hint}")
        }
    }
}

/// Returns the arguments of all variants of a call.
fn args(call: &'static Syscall) -> impl Iterator<Item = &'static Arg> {
    call.signatures().flat_map(|signature| signature.args)
}
