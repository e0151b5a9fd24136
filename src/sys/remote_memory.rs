//! Reads the memory of another process (process_vm_readv(2)).

use rustix::param::page_size;

/// The most pages that are read at once.
const PAGES_MAX: usize = 64;

/// Reads the memory of a process from `address` on, page by page up to the first page that is not present. Reads at
/// most as many bytes as fit into `bytes` and at most 64 pages, and returns the number of bytes. This requires the
/// permission to trace the process (ptrace(2)).
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
    // SAFETY: the kernel writes at most `local.iov_len` bytes into `bytes`. The other addresses belong to the other
    // process.
    let read = unsafe { libc::process_vm_readv(pid, &raw const local, 1, remote.as_ptr(), remote.len() as libc::c_ulong, 0) };
    usize::try_from(read).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_up_to_the_first_absent_page() {
        let word = 0x1122_3344_5566_7788u64.to_ne_bytes();
        let mut bytes = [0; 8];
        assert_eq!(read(std::process::id() as i32, word.as_ptr() as u64, &mut bytes), 8);
        assert_eq!(bytes, word);
        assert_eq!(read(std::process::id() as i32, 8, &mut bytes), 0);
    }
}
