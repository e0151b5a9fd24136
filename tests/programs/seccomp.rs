//! A seccomp filter that answers a call: such a call has an exit and no entry.

use crate::raw;

pub fn run(count: u64) {
    forbid(libc::SYS_getppid as u32, libc::EXDEV as u32);
    for _ in 0..count {
        assert_eq!(raw::getppid(), -1);
    }
    println!("issued getppid {count}");
}

/// Installs a filter by which the call fails with this errno.
fn forbid(nr: u32, errno: u32) {
    let code = |c: u32| c as u16;
    let filter = [
        libc::sock_filter { code: code(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS), jt: 0, jf: 0, k: 0 }, // seccomp_data.nr
        libc::sock_filter { code: code(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K), jt: 0, jf: 1, k: nr },
        libc::sock_filter { code: code(libc::BPF_RET | libc::BPF_K), jt: 0, jf: 0, k: libc::SECCOMP_RET_ERRNO | errno },
        libc::sock_filter { code: code(libc::BPF_RET | libc::BPF_K), jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW },
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    let set = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
    };
    assert_eq!(set, 0, "seccomp: {}", std::io::Error::last_os_error());
}
