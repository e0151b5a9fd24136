//! Decodes the records of signals that the BPF programs write: the counterpart of `signals.h`.

use super::record::{CallRecord, RecordKind};
use crate::event::{Disposition, SigInfo, Signal, TaskId};
use crate::task::signals::SentSignal;

/// `SIGNAL_TO_PROCESS`, `SIGNAL_IGNORED`, `SIGNAL_NUMBERLESS`, `SIGNAL_HAS_SENDER`.
const TO_PROCESS: u32 = 1;
const IGNORED: u32 = 2;
const NUMBERLESS: u32 = 4;
const HAS_SENDER: u32 = 8;

/// A decoded record of a signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignalRecord<'a> {
    /// A signal was sent; with the comm of its sender, if that is known.
    Sent { sent: SentSignal, sender: Option<&'a [u8]> },
    /// A signal is delivered to a task.
    Delivered(Signal),
    /// The signal with this number ends the task's process.
    Fatal(i32),
}

/// Decodes a record; `None` if it is not about a signal.
pub fn parse<'a>(record: &CallRecord<'a>) -> Option<SignalRecord<'a>> {
    let mut info = [0; 48];
    record.args.iter().zip(info.chunks_exact_mut(8)).for_each(|(word, bytes)| bytes.copy_from_slice(&word.to_le_bytes()));
    let half = |at: usize| i32::from_le_bytes(std::array::from_fn(|i| info[at + i]));
    let (number, code) = (record.nr, half(8));
    let bits = if record.kind == RecordKind::SignalSent { record.lost } else { 0 };
    let mut signal = Signal {
        number,
        errno: Some(half(4)),
        code: Some(code),
        info: SigInfo::decode(number, code, &info),
        pids_are_known: !record.nested,
        ..Signal::default()
    };
    match record.kind {
        RecordKind::SignalSent => {
            if bits & NUMBERLESS != 0 {
                (signal.info.pid, signal.info.uid) = (None, None);
            }
            let words = record.start.0;
            signal.sender = (bits & HAS_SENDER != 0).then_some(TaskId { pid: words as i32, tid: (words >> 32) as i32 });
            signal.disposition = if bits & IGNORED != 0 { Disposition::Ignored } else { Disposition::Default };
            let name = record.pieces.split(|byte| *byte == 0).next().filter(|name| !name.is_empty());
            let sender = signal.sender.and(name);
            let thread = (bits & TO_PROCESS == 0).then_some(record.tid);
            Some(SignalRecord::Sent { sent: SentSignal { signal, thread }, sender })
        }
        RecordKind::Signal if number == libc::SIGKILL => Some(SignalRecord::Fatal(record.ret as i32)),
        RecordKind::Signal => {
            signal.disposition = Disposition::of_handler(record.ret as u64);
            Some(SignalRecord::Delivered(signal))
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
    fn record(kind: RecordKind, number: i32, code: i32, bits: u32) -> CallRecord<'static> {
        let args = [number as u64, code as u32 as u64, 5 | 1000 << 32, 0, 0, 0];
        CallRecord { kind, args, lost: bits, pieces: b"sh\0\0\0\0\0\0\0\0\0\0\0\0\0\0", ..returned(7, number, 5 | 6 << 32, 0) }
    }

    #[test]
    fn sent_signals_have_their_sender() {
        let Some(SignalRecord::Sent { sent, sender }) = parse(&record(RecordKind::SignalSent, 15, 0, HAS_SENDER | TO_PROCESS)) else {
            panic!()
        };
        assert_eq!((sent.thread, sender), (None, Some(&b"sh"[..])));
        assert_eq!((sent.signal.sender, sent.signal.info.pid), (Some(TaskId { pid: 5, tid: 6 }), Some(5)));
        let Some(SignalRecord::Sent { sent, sender }) = parse(&record(RecordKind::SignalSent, 13, 0, NUMBERLESS | IGNORED)) else {
            panic!()
        };
        assert_eq!((sent.thread, sender, sent.signal.disposition), (Some(7), None, Disposition::Ignored));
        assert!(sent.signal.info.is_empty() && sent.signal.sender.is_none());
    }

    #[test]
    fn delivered_signals_have_their_handler() {
        let delivered = |ret| parse(&CallRecord { ret, ..record(RecordKind::Signal, 10, 0, 0) });
        let disposition = |ret| if let Some(SignalRecord::Delivered(signal)) = delivered(ret) { signal.disposition } else { panic!() };
        assert_eq!(
            [disposition(0), disposition(1), disposition(0x4000)],
            [Disposition::Default, Disposition::Ignored, Disposition::Handled]
        );
        assert_eq!(parse(&CallRecord { ret: 15, ..record(RecordKind::Signal, 9, 0, 0) }), Some(SignalRecord::Fatal(15)));
        assert_eq!(parse(&returned(1, 1, Time(0).0, 0)), None);
    }
}
