//! The fields of the events that show requests of io_uring (include/trace/events/io_uring.h in the kernel).

use super::layout::{Field, field};
use crate::kernel::format::Format;

/// `io_uring:io_uring_submit_req` (`io_uring_submit_sqe` before Linux 6.3) and `io_uring_req_failed`.
#[derive(Clone, Copy, Debug)]
pub struct SubmittedLayout {
    id: RequestFields,
    opcode: Field,
    flags: Field,
}

/// `io_uring:io_uring_complete`, and `io_uring_cqe_overflow`, which does not name the request.
#[derive(Clone, Copy, Debug)]
pub struct CompletedLayout {
    id: RequestFields,
    result: Field,
    flags: Field,
}

/// `io_uring:io_uring_fail_link`.
#[derive(Clone, Copy, Debug)]
pub struct CanceledLayout {
    id: RequestFields,
    link: Field,
}

#[derive(Clone, Copy, Debug)]
struct RequestFields {
    ring: Field,
    request: Field,
    user_data: Field,
}

/// Identifies a request while it is in flight: the kernel's addresses of its ring and of the request in it. The kernel
/// uses the address of a request again for the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId {
    /// The address of the ring's `struct io_ring_ctx` (include/linux/io_uring_types.h in the kernel).
    pub ring: u64,
    /// The address of the request's `struct io_kiocb` there; 0 if the record does not have it.
    pub request: u64,
}

/// A request that was submitted.
#[derive(Clone, Copy, Debug)]
pub struct Submission {
    /// The ring and the request. Older kernels do not name the request, so its address is 0.
    pub id: RequestId,
    /// The program's own number for the request (`user_data` of struct io_uring_sqe), which need not be unique.
    pub user_data: u64,
    /// IORING_OP_*
    pub opcode: u8,
    /// IOSQE_*
    pub flags: u8,
}

/// A completion.
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    /// The ring that the completion is posted to, as in [`RequestId::ring`].
    pub ring: u64,
    /// The request; `None` if the event does not name it.
    pub request: Option<u64>,
    /// The event is one that never names the request.
    pub is_overflow: bool,
    /// The number that the program has given to the request, as in [`Submission::user_data`].
    pub user_data: u64,
    /// The result: a negative errno if the request failed.
    pub result: i32,
    /// IORING_CQE_F_*, and the number of a buffer in the upper 16 bits.
    pub flags: u32,
}

impl RequestFields {
    fn new(format: &Format) -> RequestFields {
        RequestFields { ring: field(format, "ctx"), request: field(format, "req"), user_data: field(format, "user_data") }
    }

    fn id(&self, raw: &[u8]) -> RequestId {
        RequestId { ring: self.ring.unsigned(raw), request: self.request.unsigned(raw) }
    }
}

impl SubmittedLayout {
    pub fn new(format: &Format) -> SubmittedLayout {
        SubmittedLayout { id: RequestFields::new(format), opcode: field(format, "opcode"), flags: field(format, "flags") }
    }

    /// Reads a submission. The kernel's flags of a request begin with those of the program (`io_init_req` in
    /// io_uring/io_uring.c).
    pub fn read(&self, raw: &[u8]) -> Submission {
        Submission {
            id: self.id.id(raw),
            user_data: self.id.user_data.unsigned(raw),
            opcode: self.opcode.unsigned(raw) as u8,
            flags: self.flags.unsigned(raw) as u8,
        }
    }
}

impl CompletedLayout {
    pub fn new(format: &Format) -> CompletedLayout {
        CompletedLayout { id: RequestFields::new(format), result: field(format, "res"), flags: field(format, "cflags") }
    }

    /// Reads a completion.
    pub fn read(&self, raw: &[u8]) -> Completion {
        let RequestId { ring, request } = self.id.id(raw);
        Completion {
            ring,
            request: (request != 0).then_some(request),
            is_overflow: !self.id.request.exists(),
            user_data: self.id.user_data.unsigned(raw),
            result: self.result.signed(raw) as i32,
            flags: self.flags.unsigned(raw) as u32,
        }
    }
}

impl CanceledLayout {
    pub fn new(format: &Format) -> CanceledLayout {
        CanceledLayout { id: RequestFields::new(format), link: field(format, "link") }
    }

    /// Returns the request that failed, and the one that is canceled.
    pub fn read(&self, raw: &[u8]) -> (RequestId, RequestId) {
        let failed = self.id.id(raw);
        (failed, RequestId { request: self.link.unsigned(raw), ..failed })
    }
}
