//! Looks up users and their groups (getpwnam(3), getgrouplist(3)).

use std::ffi::{CStr, CString, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt;

/// A user of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The user ID.
    pub uid: u32,
    /// The ID of the user's login group.
    pub gid: u32,
    /// All groups of the user, including `gid`; none for a user of the form `UID:GID`.
    pub groups: Vec<u32>,
    /// The login name.
    pub name: OsString,
    /// The path of the home directory.
    pub home: OsString,
    /// The path of the login shell.
    pub shell: OsString,
}

/// Returns the user with this name or UID, or a user with both numbers of `UID:GID` and no other groups. A user of the
/// latter form need not exist.
///
/// # Errors
/// `NotFound` if there is no such user.
pub fn user(name: &str) -> io::Result<User> {
    if let Some((uid, gid)) = name.split_once(':') {
        let number = |text: &str| text.parse().map_err(|_| not_found(name));
        let (uid, gid) = (number(uid)?, number(gid)?);
        let of_passwd = lookup_uid(uid)?;
        return Ok(of_passwd.map_or_else(
            || User { uid, gid, groups: Vec::new(), name: uid.to_string().into(), home: "/".into(), shell: "/bin/sh".into() },
            |user| User { gid, groups: Vec::new(), ..user },
        ));
    }
    let found = match CString::new(name) {
        Ok(c_name) => lookup(|pwd, buf, len, out| {
            // SAFETY: the name is NUL-terminated, and the other pointers are valid for the given lengths, as `lookup`
            // guarantees.
            unsafe { libc::getpwnam_r(c_name.as_ptr(), pwd, buf, len, out) }
        })?,
        Err(_) => None,
    };
    match (found, name.parse::<u32>()) {
        (Some(user), _) => Ok(user),
        (None, Ok(uid)) => lookup_uid(uid)?.ok_or_else(|| not_found(name)),
        (None, Err(_)) => Err(not_found(name)),
    }
}

fn not_found(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("there is no user {name:?}"))
}

/// Returns the user with this UID.
fn lookup_uid(uid: u32) -> io::Result<Option<User>> {
    lookup(move |pwd, buf, len, out| {
        // SAFETY: the pointers are valid for the given lengths, as `lookup` guarantees.
        unsafe { libc::getpwuid_r(uid, pwd, buf, len, out) }
    })
}

fn lookup(query: impl Fn(*mut libc::passwd, *mut libc::c_char, usize, *mut *mut libc::passwd) -> i32) -> io::Result<Option<User>> {
    let mut buf = vec![0 as libc::c_char; 4096];
    loop {
        // SAFETY: passwd is plain data for which zeros are valid. `query` gets pointers to live locals, and the buffer
        // with its length. The strings point into the buffer, which outlives the copies here.
        unsafe {
            let mut pwd: libc::passwd = std::mem::zeroed();
            let mut out = std::ptr::null_mut();
            match query(&mut pwd, buf.as_mut_ptr(), buf.len(), &mut out) {
                0 if out.is_null() => return Ok(None),
                0 => {
                    let text = |p: *const libc::c_char| OsString::from_vec(CStr::from_ptr(p).to_bytes().to_vec());
                    let groups = groups(CStr::from_ptr(pwd.pw_name), pwd.pw_gid);
                    return Ok(Some(User {
                        uid: pwd.pw_uid,
                        gid: pwd.pw_gid,
                        groups,
                        name: text(pwd.pw_name),
                        home: text(pwd.pw_dir),
                        shell: text(pwd.pw_shell),
                    }));
                }
                libc::ERANGE if buf.len() < 1 << 20 => buf.resize(buf.len() * 4, 0),
                error => return Err(io::Error::from_raw_os_error(error)),
            }
        }
    }
}

fn groups(name: &CStr, gid: u32) -> Vec<u32> {
    let mut groups = vec![0u32; 64];
    loop {
        let mut len = groups.len() as i32;
        // SAFETY: the name is NUL-terminated. getgrouplist writes at most `len` numbers to the buffer, and the total
        // number to `len`.
        let fits = unsafe { libc::getgrouplist(name.as_ptr(), gid, groups.as_mut_ptr(), &mut len) };
        groups.resize(len.max(0) as usize, 0);
        if fits >= 0 {
            return groups;
        }
    }
}
