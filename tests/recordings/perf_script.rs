//! Compares the calls that rtrace shows of a recording with the records that perf shows of it:
//! `perf script --ns -F comm,pid,tid,cpu,time,event,trace`.

use regex::Regex;
use serde_json::Value;
use std::collections::BTreeMap;

/// A record of `raw_syscalls`, as perf printed it.
#[derive(Clone, Debug)]
pub struct Record {
    pub comm: String,
    /// Process and thread.
    pub task: [i64; 2],
    pub cpu: i64,
    /// The number of the call.
    pub number: i64,
    /// The registers of an entry.
    pub registers: Vec<u64>,
    /// The result of an exit.
    pub result: i64,
}

/// The records by thread and time in nanoseconds. perf's default clock does not run backwards, but it may stand still.
pub type Records = BTreeMap<(i64, u64), Vec<Record>>;

/// Entries and exits. What a comparison leaves of them was in no call that rtrace showed.
#[derive(Clone, Debug, Default)]
pub struct Script {
    pub entries: Records,
    pub exits: Records,
}

/// Parses a hexadecimal number with or without `0x`.
pub fn register(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("it is a hexadecimal number")
}

/// Returns a moment in nanoseconds.
pub fn time(moment: &Value) -> u64 {
    moment["monotonic"].as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no time: {moment}"))
}

/// Takes out the first record of a thread at this time.
fn remove(all: &mut Records, key: (i64, u64)) -> Option<Record> {
    let found = all.get_mut(&key)?;
    let first = found.remove(0);
    if found.is_empty() {
        all.remove(&key);
    }
    Some(first)
}

impl Script {
    /// Parses the output of perf.
    pub fn of(text: &str) -> Script {
        let line = Regex::new(
            r"^ *(.+?) +(\d+)/(\d+) +\[(\d+)\] +(\d+)\.(\d{9}): +raw_syscalls:sys_(enter|exit): NR (-?\d+) (?:\((.*)\)|= (-?\d+))",
        )
        .expect("the pattern is right");
        let mut script = Script::default();
        for found in text.lines().filter_map(|text| line.captures(text)) {
            let number = |at: usize| found.get(at).map_or(0, |text| text.as_str().parse::<i64>().expect("it is a number"));
            let record = Record {
                comm: found[1].to_owned(),
                task: [number(2), number(3)],
                cpu: number(4),
                number: number(8),
                registers: found.get(9).map(|text| text.as_str().split(", ").map(register).collect()).unwrap_or_default(),
                result: number(10),
            };
            let all = if &found[7] == "enter" { &mut script.entries } else { &mut script.exits };
            all.entry((record.task[1], number(5) as u64 * 1_000_000_000 + number(6) as u64)).or_default().push(record);
        }
        script
    }

    /// Checks each call that rtrace shows: entry and exit are records that perf shows, with these fields. The records
    /// are taken out. Returns how many calls were compared.
    pub fn take(&mut self, name: &str, objects: &[Value]) -> usize {
        let calls = objects.iter().filter(|object| object["type"] == "call");
        calls.inspect(|call| self.take_call(name, call)).count()
    }

    /// Keeps only these records.
    pub fn retain(&mut self, is_entry: impl Fn(&Record) -> bool, is_exit: impl Fn(&Record) -> bool) {
        self.entries.values_mut().for_each(|records| records.retain(&is_entry));
        self.exits.values_mut().for_each(|records| records.retain(&is_exit));
        [&mut self.entries, &mut self.exits].into_iter().for_each(|all| all.retain(|_, records| !records.is_empty()));
    }

    fn take_call(&mut self, name: &str, call: &Value) {
        let number = |member: &str| call[member].as_i64().unwrap_or_else(|| panic!("{name}: no {member} in {call}"));
        let task = [number("pid"), number("tid")];
        if call["entry"] == "seen" {
            let entry = remove(&mut self.entries, (task[1], time(&call["start"])));
            let entry = entry.unwrap_or_else(|| panic!("{name}: perf shows no entry of {call}"));
            assert_eq!((entry.task, entry.number), (task, number("number")), "{name}: {call}");
            // rt_sigreturn(2) takes no arguments. rtrace shows the frame that it finds on the stack.
            let is_sigreturn = call["name"] == "rt_sigreturn";
            for argument in call["arguments"].as_array().expect("a call has arguments") {
                let shown = argument["registers"].as_array().and_then(|all| all[0].as_str().map(register)).expect("it has one");
                assert!(is_sigreturn || entry.registers.contains(&shown), "{name}: {shown:#x} of {call}: {entry:?}");
            }
        }
        if call["exit"] == "returned" {
            // The CPUs' clocks of perf differ a little. A record that is older than one that was shown before has its
            // own time in the duration, and that of the stream in `time`.
            let end = call["duration"].as_u64().map_or_else(|| time(&call["time"]), |duration| time(&call["start"]) + duration);
            let exit = remove(&mut self.exits, (task[1], end));
            let exit = exit.unwrap_or_else(|| panic!("{name}: perf shows no exit of {call}"));
            let shown = (task, number("cpu"), call["return"]["raw"].as_i64());
            assert_eq!(shown, (exit.task, exit.cpu, Some(exit.result)), "{name}: {call}: {exit:?}");
            // perf prints the number of a task whose name it does not know.
            assert!(call["comm"] == exit.comm.as_str() || exit.comm.starts_with(':'), "{name}: {call}: {exit:?}");
            // The kernel forgets the number of rt_sigreturn(2).
            assert!(exit.number == number("number") || (exit.number, &call["name"]) == (-1, &"rt_sigreturn".into()), "{name}: {call}");
        }
    }
}
