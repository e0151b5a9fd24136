//! Memory of another process, read as it is (process_vm_readv(2)).

use rustix::param::page_size;

/// No more pages are read at once.
const PAGES_MAX: usize = 64;

/// Reads the bytes of a process from this address on, page by page up to the first that is not there, at most as many as fit
/// and at most some 64 pages; gives how many there are. It needs the right to trace the process (ptrace(2)).
pub fn read(pid: i32, address: u64, bytes: &mut [u8]) -> usize {
    let page = page_size();
    let mut remote = Vec::with_capacity(PAGES_MAX);
    let mut from = address as usize;
    let end = from.saturating_add(bytes.len());
    while from < end && remote.len() < PAGES_MAX {
        let next = (from | (page - 1)).saturating_add(1).min(end);
        remote.push(libc::iovec { iov_base: std::ptr::without_provenance_mut(from), iov_len: next - from });
        from = next;
    }
    let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: the kernel writes at most `local.iov_len` bytes to where `bytes` is ours to write; the other addresses are the other process's.
    let read = unsafe { libc::process_vm_readv(pid, &raw const local, 1, remote.as_ptr(), remote.len() as libc::c_ulong, 0) };
    usize::try_from(read).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_its_own_memory_up_to_where_there_is_none() {
        let word = 0x1122_3344_5566_7788u64.to_ne_bytes();
        let mut bytes = [0; 8];
        assert_eq!(read(std::process::id() as i32, word.as_ptr() as u64, &mut bytes), 8);
        assert_eq!(bytes, word);
        assert_eq!(read(std::process::id() as i32, 8, &mut bytes), 0);
    }
}
