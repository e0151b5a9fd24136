//! Members that are the same in the objects of many events: those of a task, those of a syscall, and the names of
//! arguments. Their text is put together once.

use super::write::Elements;
use crate::beauty::decode::Argument;
use crate::beauty::lookup;
use crate::beauty::row::{Arg, Syscall};
use crate::event::{Abi, Call, Comm, Event, TaskId};
use crate::session::Session;
use std::ptr;
use std::sync::Arc;

/// Number of tasks whose text is kept. Tasks that run at the same time often have consecutive tids, and these have
/// different places.
const TASKS: usize = 64;

/// The texts of tasks and of syscalls.
pub struct Heads {
    /// By the low bits of the tid.
    tasks: Vec<TaskHead>,
    /// By ABI and number. Only numbers that have a row are kept, so that there are not too many.
    calls: [Vec<CallHead>; Abi::ALL.len()],
}

/// The members of a syscall, and the beginnings of its arguments.
#[derive(Clone, Default)]
pub struct CallHead {
    /// Empty at first.
    text: Vec<u8>,
    /// The arguments of the row, without those of its variants.
    arguments: Vec<(&'static Arg, Vec<u8>)>,
}

/// The members of a task, and what they are made of.
#[derive(Clone, Default)]
struct TaskHead {
    task: TaskId,
    comm: Option<Comm>,
    cgroup: Option<Arc<[u8]>>,
    /// Empty at first.
    text: Vec<u8>,
}

impl Default for Heads {
    fn default() -> Heads {
        Heads { tasks: vec![TaskHead::default(); TASKS], calls: Default::default() }
    }
}

impl Heads {
    /// Writes the members of an event's task: ids, name and cgroup.
    pub fn task(&mut self, o: &mut Elements, event: &Event, cgroup: Option<Arc<[u8]>>) {
        let head = &mut self.tasks[event.task.tid as usize % TASKS];
        if head.text.is_empty() || head.task != event.task || head.comm != event.comm || head.cgroup != cgroup {
            head.text.clear();
            let o = &mut Elements::further(&mut head.text);
            o.int("pid", i64::from(event.task.pid));
            o.int("tid", i64::from(event.task.tid));
            event.comm.iter().for_each(|comm| o.bytes("comm", comm));
            cgroup.iter().for_each(|cgroup| o.bytes("cgroup", cgroup));
            (head.task, head.comm, head.cgroup) = (event.task, event.comm.clone(), cgroup);
        }
        o.members(&head.text);
    }

    /// Writes the members of a call's syscall: ABI, number and names. Returns the texts of the syscall, if they are
    /// kept.
    pub fn call(&mut self, o: &mut Elements, call: &Call, row: Option<&'static Syscall>, session: &Session) -> Option<&CallHead> {
        let number = usize::try_from(call.nr).ok().filter(|_| lookup::requests::opcode(call.nr).is_none());
        let Some((row, number)) = row.zip(number) else {
            syscall(o, call, row, session);
            return None;
        };
        let heads = &mut self.calls[call.abi as usize];
        if heads.len() <= number {
            heads.resize(number + 1, CallHead::default());
        }
        let head = &mut heads[number];
        if head.text.is_empty() {
            syscall(&mut Elements::further(&mut head.text), call, Some(row), session);
            for arg in row.args {
                let mut text = Vec::new();
                begin_argument(&mut text, arg.name);
                head.arguments.push((arg, text));
            }
        }
        o.members(&head.text);
        Some(head)
    }
}

impl CallHead {
    /// Returns the beginning of an argument's object, if it is kept: the name, up to the bracket before the registers.
    #[inline]
    pub fn argument(&self, argument: &Argument) -> Option<&[u8]> {
        let (arg, text) = self.arguments.get(argument.index())?;
        argument.row().is_some_and(|row| ptr::eq(row, *arg)).then_some(text)
    }
}

/// Writes the beginning of the object of an argument, up to the bracket before its registers. The name is empty if it
/// is not known; it needs no escapes.
pub fn begin_argument(out: &mut Vec<u8>, name: &str) {
    out.push(b'{');
    if !name.is_empty() {
        out.extend_from_slice(b"\"name\":\"");
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\",");
    }
    out.extend_from_slice(b"\"registers\":[");
}

fn syscall(o: &mut Elements, call: &Call, row: Option<&Syscall>, session: &Session) {
    let opcode = lookup::requests::opcode(call.nr);
    o.word("abi", if opcode.is_some() { "io_uring" } else { call.abi.name() });
    o.int("number", opcode.map_or(call.nr, i64::from));
    // Names of syscalls need no escapes.
    let name = o.member("name");
    name.push(b'"');
    lookup::write_name(name, row, call.abi, call.nr);
    name.push(b'"');
    if let Some(name) = lookup::user_name(&session.names, call.abi, call.nr) {
        o.bytes("called", name.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beauty::samples;
    use crate::event::{EventKind, TaskEnd, Time};

    /// Tasks share places, and the text of a place is kept, so the result must not depend on the events before.
    #[test]
    fn members_of_a_task_are_those_of_the_event() {
        let of = |tid: i32, comm: Option<&str>| Event {
            task: TaskId { pid: 7, tid },
            comm: comm.map(|comm| comm.as_bytes().into()),
            ..samples::event(Time(0), EventKind::Exit(TaskEnd::Unknown))
        };
        let mut heads = Heads::default();
        let mut members = |event: &Event, cgroup: Option<&str>| {
            let mut text = Vec::new();
            heads.task(&mut Elements::further(&mut text), event, cgroup.map(|cgroup| cgroup.as_bytes().into()));
            String::from_utf8(text).unwrap()
        };
        for _ in 0..2 {
            assert_eq!(members(&of(0, None), None), r#","pid":7,"tid":0"#);
            assert_eq!(members(&of(7, Some("sh")), None), r#","pid":7,"tid":7,"comm":"sh""#);
            assert_eq!(members(&of(7, Some("cat")), None), r#","pid":7,"tid":7,"comm":"cat""#);
            assert_eq!(members(&of(7, Some("cat")), Some("/a\"b")), r#","pid":7,"tid":7,"comm":"cat","cgroup":"/a\"b""#);
            assert_eq!(members(&of(7 + TASKS as i32, Some("cat")), Some("/a")), r#","pid":7,"tid":71,"comm":"cat","cgroup":"/a""#);
            assert_eq!(members(&of(-1, Some("cat")), None), r#","pid":7,"tid":-1,"comm":"cat""#);
        }
    }

    #[test]
    fn members_of_a_syscall_are_those_of_its_number_and_abi() {
        let mut session = Session::default();
        session.names.insert("read".to_owned(), "get".to_owned());
        let mut heads = Heads::default();
        let mut members = |abi, nr| {
            let (mut text, call) = (Vec::new(), Call { abi, nr, ..samples::call([0; 6], 0) });
            heads.call(&mut Elements::further(&mut text), &call, lookup::row(abi, nr), &session);
            String::from_utf8(text).unwrap()
        };
        for _ in 0..2 {
            assert_eq!(members(Abi::X86_64, 0), r#","abi":"x86_64","number":0,"name":"read","called":"get""#);
            assert_eq!(members(Abi::X86_64, 1), r#","abi":"x86_64","number":1,"name":"write""#);
            assert_eq!(members(Abi::I386, 1), r#","abi":"i386","number":1,"name":"exit""#);
            assert_eq!(members(Abi::Aarch64, 63), r#","abi":"aarch64","number":63,"name":"read","called":"get""#);
            assert_eq!(members(Abi::X86_64, -1), r#","abi":"x86_64","number":-1,"name":"syscall_-1""#);
            assert_eq!(members(Abi::X32, i64::MAX), r#","abi":"x32","number":"9223372036854775807","name":"syscall_9223372036854775807""#);
        }
    }
}
