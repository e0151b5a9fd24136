//! What the BPF programs tell of signals: the mirror of `signals.h`.

use super::record::{How, Seen};
use crate::event::{Fate, Members, Signal, TaskId};
use crate::task::signals::Sent;

/// `SIGNAL_TO_PROCESS`, `SIGNAL_IGNORED`, `SIGNAL_NUMBERLESS`, `SIGNAL_HAS_SENDER`.
const TO_PROCESS: u32 = 1;
const IGNORED: u32 = 2;
const NUMBERLESS: u32 = 4;
const HAS_SENDER: u32 = 8;

/// A record of a signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeenSignal<'a> {
    /// It was sent; and what its sender is called, if that is known.
    Sent { sent: Sent, sender: Option<&'a [u8]> },
    /// A task is given it.
    Given(Signal),
    /// This signal ends the task's process.
    Ends(i32),
}

/// Reads a record; `None` if it is of no signal.
pub fn parse<'a>(seen: &Seen<'a>) -> Option<SeenSignal<'a>> {
    let mut info = [0; 48];
    seen.args.iter().zip(info.chunks_exact_mut(8)).for_each(|(word, bytes)| bytes.copy_from_slice(&word.to_le_bytes()));
    let half = |at: usize| i32::from_le_bytes(std::array::from_fn(|i| info[at + i]));
    let (number, code) = (seen.nr, half(8));
    let bits = if seen.how == How::SignalSent { seen.lost } else { 0 };
    let mut signal = Signal {
        number,
        errno: Some(half(4)),
        code: Some(code),
        members: Members::of(number, code, &info),
        pids_are_known: !seen.nested,
        ..Signal::default()
    };
    match seen.how {
        How::SignalSent => {
            if bits & NUMBERLESS != 0 {
                (signal.members.pid, signal.members.uid) = (None, None);
            }
            let words = seen.start.0;
            signal.sender = (bits & HAS_SENDER != 0).then_some(TaskId { pid: words as i32, tid: (words >> 32) as i32 });
            signal.fate = if bits & IGNORED != 0 { Fate::Ignored } else { Fate::Default };
            let name = seen.pieces.split(|byte| *byte == 0).next().filter(|name| !name.is_empty());
            let sender = signal.sender.and(name);
            let thread = (bits & TO_PROCESS == 0).then_some(seen.tid);
            Some(SeenSignal::Sent { sent: Sent { signal, thread }, sender })
        }
        How::Signal if number == libc::SIGKILL => Some(SeenSignal::Ends(seen.ret as i32)),
        How::Signal => {
            signal.fate = Fate::of_handler(seen.ret as u64);
            Some(SeenSignal::Given(signal))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::returned;
    use super::*;
    use crate::event::Time;

    /// `si_signo`, `si_code`, `si_pid`, `si_uid`.
    fn seen(how: How, number: i32, code: i32, bits: u32) -> Seen<'static> {
        let args = [number as u64, code as u32 as u64, 5 | 1000 << 32, 0, 0, 0];
        Seen { how, args, lost: bits, pieces: b"sh\0\0\0\0\0\0\0\0\0\0\0\0\0\0", ..returned(7, number, 5 | 6 << 32, 0) }
    }

    #[test]
    fn what_was_sent_has_its_sender() {
        let Some(SeenSignal::Sent { sent, sender }) = parse(&seen(How::SignalSent, 15, 0, HAS_SENDER | TO_PROCESS)) else { panic!() };
        assert_eq!((sent.thread, sender), (None, Some(&b"sh"[..])));
        assert_eq!((sent.signal.sender, sent.signal.members.pid), (Some(TaskId { pid: 5, tid: 6 }), Some(5)));
        let Some(SeenSignal::Sent { sent, sender }) = parse(&seen(How::SignalSent, 13, 0, NUMBERLESS | IGNORED)) else { panic!() };
        assert_eq!((sent.thread, sender, sent.signal.fate), (Some(7), None, Fate::Ignored));
        assert!(sent.signal.members.are_unknown() && sent.signal.sender.is_none());
    }

    #[test]
    fn what_is_given_has_its_handler() {
        let given = |ret| parse(&Seen { ret, ..seen(How::Signal, 10, 0, 0) });
        let fate = |ret| if let Some(SeenSignal::Given(signal)) = given(ret) { signal.fate } else { panic!() };
        assert_eq!([fate(0), fate(1), fate(0x4000)], [Fate::Default, Fate::Ignored, Fate::Handled]);
        assert_eq!(parse(&Seen { ret: 15, ..seen(How::Signal, 9, 0, 0) }), Some(SeenSignal::Ends(15)));
        assert_eq!(parse(&returned(1, 1, Time(0).0, 0)), None);
    }
}
