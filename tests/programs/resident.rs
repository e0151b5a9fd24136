//! The pages of the program itself.

use std::ffi::{c_int, c_void};

/// Reads a byte of each page of the program, without a system call.
///
/// The kernel may have evicted pages of the file. A constant in such a page can only be read by rtrace when the program
/// or the kernel has read it, and a call that fails early does not.
pub fn touch_own_pages() {
    unsafe extern "C" fn of_object(info: *mut libc::dl_phdr_info, _size: usize, _data: *mut c_void) -> c_int {
        let info = unsafe { &*info };
        let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        for header in headers.iter().filter(|header| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_R != 0) {
            let start = info.dlpi_addr + header.p_vaddr;
            for address in (start..start + header.p_memsz).step_by(4096) {
                unsafe { (address as *const u8).read_volatile() };
            }
        }
        // The program itself is the first object, and the only one that is of interest.
        1
    }
    unsafe { libc::dl_iterate_phdr(Some(of_object), std::ptr::null_mut()) };
}
