//! How the arguments of io_uring's requests are read, as the bytes of `struct request_plan` in `plan.h`.

use super::call_plan::CallPlan;
use super::encode::Writer;
use crate::beauty::lookup::requests::{self, Files};
use crate::beauty::resolve::Signature;
use crate::beauty::row::Return;
use crate::kernel::machine::NATIVE_ABI;

/// `REQUESTS_MAX`: the number of opcodes of io_uring.
const REQUESTS_MAX: usize = 256;
/// `sizeof(struct request_plan)`
pub(super) const PLAN_BYTES: usize = 12;
/// The request that closes a file, which it names as requests that open one do.
const CLOSE: &str = "io_uring:close";

impl Writer {
    /// Returns how the arguments of a request are read, in the layout of `struct request_plan`; `None` if it has none.
    pub(super) fn request(&mut self, opcode: u8) -> Option<(u8, [u8; PLAN_BYTES])> {
        let row = requests::request(opcode.into()).filter(|row| !row.fields.is_empty())?;
        let mut place = |files: Files| {
            let row = requests::row(requests::number_with(opcode.into(), files))?;
            let plan = self.chosen(row.signature(), row.variants, &|writer: &mut Writer, signature: Signature| {
                CallPlan::new(0, &writer.capture(signature, NATIVE_ABI))
            });
            Some(self.plan(plan).to_ne_bytes())
        };
        let places = [place(Files::empty())?, place(Files::REGISTERED)?];
        let mut bytes = [0; PLAN_BYTES];
        bytes[..4].copy_from_slice(places.as_flattened());
        bytes[4..].iter_mut().zip(row.fields).for_each(|(byte, field)| *byte = *field as u8);
        // Closing has the member, too.
        let opens = matches!(row.call.returns, Return::Fd) || row.call.name == CLOSE;
        (bytes[10], bytes[11]) = (1, opens.into());
        Some((opcode, bytes))
    }
}

/// Returns the bytes of `request_plans`.
pub(super) fn bytes(requests: Vec<(u8, [u8; PLAN_BYTES])>) -> Vec<u8> {
    let mut bytes = vec![0; REQUESTS_MAX * PLAN_BYTES];
    for (opcode, plan) in requests {
        bytes[usize::from(opcode) * PLAN_BYTES..][..PLAN_BYTES].copy_from_slice(&plan);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::{Requests, Settings};

    #[test]
    fn only_selected_requests_are_read() {
        let settings =
            |opcodes: &[u8]| Settings { requests: Requests { opcodes: opcodes.to_vec(), ..Requests::default() }, ..Settings::default() };
        let plan = |bytes: &[u8], opcode: usize| -> [u8; PLAN_BYTES] { std::array::from_fn(|at| bytes[opcode * PLAN_BYTES + at]) };
        // openat and timeout; no kernel has the last one.
        let bytes = settings(&[18, 11, 250]).constants().requests;
        assert_eq!(bytes.len(), REQUESTS_MAX * PLAN_BYTES);
        let openat = plan(&bytes, 18);
        assert_eq!((openat[4..10].to_vec(), openat[10..].to_vec()), (vec![1, 3, 5, 4, 0, 0], vec![1, 1]));
        assert_ne!(openat[..2], openat[2..4], "a registered file is no descriptor");
        let timeout = plan(&bytes, 11);
        assert_eq!((timeout[4..10].to_vec(), timeout[10..].to_vec()), (vec![3, 2, 5, 0, 0, 0], vec![1, 0]));
        assert_eq!(timeout[..2], timeout[2..4]);
        assert_eq!([plan(&bytes, 0), plan(&bytes, 22), plan(&bytes, 250)], [[0; PLAN_BYTES]; 3]);
    }
}
