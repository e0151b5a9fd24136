//! Names without the parts that are different in each run: numbers of processes, and the random parts of temporary
//! names.

use rustc_hash::FxHashMap;

/// The length of the shortest random part: mkstemp(3) makes six characters.
const RANDOM_MIN: usize = 6;

/// The most names of temporary files that are remembered. Later ones are recognized by their form alone.
const NAMES_MAX: usize = 1 << 16;

/// What replaces a random part.
const ANY: &[u8] = b"*";

/// The beginnings of temporary names that programs make without a call that shows it.
const PREFIXES: [&[u8]; 7] = [b"tmp.", b"tmp", b"cc", b"sh-thd.", b"sh-thd-", b"sem.mp-", b"sem."];

/// What is known of the names of a recording.
#[derive(Debug, Default)]
pub struct RandomNames {
    /// Names without folders that a program made for a temporary file, with the names that replace them.
    made: FxHashMap<Vec<u8>, Vec<u8>>,
}

impl RandomNames {
    /// Takes the path of a file that was created and did not exist before. `is_private` says that only its owner may
    /// use it, as mkstemp(3) and mkdtemp(3) create them.
    pub fn created(&mut self, path: &[u8], is_private: bool) {
        let Some(name) = path.rsplit(|byte| *byte == b'/').find(|name| !name.is_empty()) else { return };
        let is_temporary = path.starts_with(b"/tmp/") || path.starts_with(b"/var/tmp/") || path.starts_with(b"/dev/shm/");
        let Some((from, to)) = last_run(name) else { return };
        let part = &name[from..to];
        let looks_random = part.iter().any(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
        let is_number = to - from >= 8 && part.iter().all(u8::is_ascii_digit);
        if self.made.len() < NAMES_MAX && (is_private && (is_temporary || looks_random) || is_number) {
            self.made.insert(name.to_vec(), [&name[..from], ANY, &name[to..]].concat());
        }
    }

    /// Returns a path, or any text with paths in it, without the parts that are different in each run. `pids` are the
    /// process that used it and its ancestors.
    pub fn without(&self, text: &[u8], pids: &[i32]) -> Vec<u8> {
        let mut out = Vec::with_capacity(text.len());
        let (mut folder, mut before): (&[u8], &[u8]) = (b"", b"");
        for (at, name) in text.split(|byte| *byte == b'/').enumerate() {
            if at > 0 {
                out.push(b'/');
            }
            let is_number = !name.is_empty() && name.iter().all(u8::is_ascii_digit);
            let of_number: Option<&[u8]> = match (before, folder) {
                _ if !is_number => None,
                (_, b"proc") => Some(b"PID"),
                (_, b"task") => Some(b"TID"),
                (b"dev", b"pts") | (_, b"fd" | b"fdinfo") => Some(ANY),
                _ => None,
            };
            match of_number {
                Some(other) => out.extend(other),
                None => out.extend(self.name(name, pids, matches!(folder, b"tmp" | b"shm"))),
            }
            (before, folder) = (folder, name);
        }
        out
    }

    /// Returns one name of a path without its random parts. `is_temporary` says that it is in a directory of temporary
    /// files.
    fn name(&self, name: &[u8], pids: &[i32], is_temporary: bool) -> Vec<u8> {
        if let Some(other) = self.made.get(name) {
            return other.clone();
        }
        // open(2) with O_TMPFILE creates files whose names are the numbers of their inodes.
        if is_temporary && name.strip_prefix(b"#").is_some_and(|rest| !rest.is_empty() && rest.iter().all(u8::is_ascii_digit)) {
            return b"#*".to_vec();
        }
        if let Some(at) = uuid(name) {
            return [&name[..at], ANY, &name[at + UUID_LENGTH..]].concat();
        }
        let of_prefix = |prefix: &&[u8]| Some((prefix.len(), name.strip_prefix(*prefix)?));
        if let Some((from, rest)) = PREFIXES.iter().find_map(of_prefix) {
            let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
            let part = &rest[..length];
            let is_mixed = part.iter().any(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
            if length >= RANDOM_MIN && (is_mixed || is_temporary) {
                return [&name[..from], ANY, &rest[length..]].concat();
            }
        }
        without_number(name, pids)
    }
}

/// Returns a name in which the numbers of these processes are replaced, and addresses.
fn without_number(name: &[u8], pids: &[i32]) -> Vec<u8> {
    let is_process = |digits: &[u8]| str::from_utf8(digits).ok().and_then(|text| text.parse().ok()).is_some_and(|pid| pids.contains(&pid));
    let mut out = Vec::with_capacity(name.len());
    let mut at = 0;
    while at < name.len() {
        let digits = name[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let hex = name[at..].strip_prefix(b"0x").map_or(0, |rest| rest.iter().take_while(|byte| byte.is_ascii_hexdigit()).count());
        if hex >= 8 {
            out.extend(ANY);
            at += 2 + hex;
        } else if digits > 1 && is_process(&name[at..at + digits]) {
            out.extend(b"PID");
            at += digits;
        } else {
            let plain = digits.max(1);
            out.extend(&name[at..at + plain]);
            at += plain;
        }
    }
    out
}

/// The number of characters of a UUID (RFC 9562).
const UUID_LENGTH: usize = 36;

/// Returns where a name has a UUID.
fn uuid(name: &[u8]) -> Option<usize> {
    let is_uuid = |text: &[u8]| {
        text.iter().enumerate().all(|(at, byte)| if matches!(at, 8 | 13 | 18 | 23) { *byte == b'-' } else { byte.is_ascii_hexdigit() })
    };
    name.windows(UUID_LENGTH).position(is_uuid)
}

/// Returns where the last long run of letters and digits is.
fn last_run(name: &[u8]) -> Option<(usize, usize)> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let mut to = name.len();
    while to > 0 {
        let from = name[..to].iter().rposition(|byte| !is_part(byte)).map_or(0, |before| before + 1);
        if to - from >= RANDOM_MIN {
            return Some((from, to));
        }
        to = from.saturating_sub(1);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without(names: &RandomNames, text: &str) -> String {
        String::from_utf8(names.without(text.as_bytes(), &[4811, 4711])).unwrap()
    }

    #[test]
    fn numbers_of_processes_are_left_out() {
        let names = RandomNames::default();
        for (text, expected) in [
            ("/proc/12/stat", "/proc/PID/stat"),
            ("/proc/self/task/99/comm", "/proc/self/task/TID/comm"),
            ("/proc/self/fd/3", "/proc/self/fd/*"),
            ("/dev/pts/4", "/dev/pts/*"),
            ("/run/app.4711.lock", "/run/app.PID.lock"),
            ("/run/app.47110.lock", "/run/app.47110.lock"),
            ("map-0x7f0011223344", "map-*"),
            ("/tmp/#10010654", "/tmp/#*"),
            ("/srv/#10010654", "/srv/#10010654"),
            ("/srv/x-0338c8ad-a5e6-4e29-9da7-a2bd28956f46.lock", "/srv/x-*.lock"),
            ("/usr/lib/libc.so.6", "/usr/lib/libc.so.6"),
            ("", ""),
            ("//", "//"),
        ] {
            assert_eq!(without(&names, text), expected);
        }
    }

    #[test]
    fn a_temporary_name_is_recognized_by_its_creation_or_its_form() {
        let mut names = RandomNames::default();
        assert_eq!(without(&names, "/tmp/ccAb3xYz.s"), "/tmp/cc*.s");
        assert_eq!(without(&names, "--out=/tmp/tmp.Ab3xYz1234/x"), "--out=/tmp/tmp.*/x");
        assert_eq!(without(&names, "/dev/shm/sem.mp-abcdefgh"), "/dev/shm/sem.mp-*");
        assert_eq!(without(&names, "/usr/lib/tmpfiles.d"), "/usr/lib/tmpfiles.d");
        assert_eq!(without(&names, "./sedwHk2Lq"), "./sedwHk2Lq");
        assert_eq!(without(&names, "/usr/bin/ccache"), "/usr/bin/ccache");
        names.created(b"./sedwHk2Lq", true);
        names.created(b"/tmp/abcdef", true);
        names.created(b"x/mod.pyc.140012345678", false);
        names.created(b"/srv/config.lock", false);
        names.created(b"/srv/settings", true);
        assert_eq!(without(&names, "./sedwHk2Lq"), "./*");
        assert_eq!(without(&names, "/tmp/abcdef"), "/tmp/*");
        assert_eq!(without(&names, "x/mod.pyc.140012345678"), "x/mod.pyc.*");
        assert_eq!(without(&names, "/srv/config.lock"), "/srv/config.lock");
        assert_eq!(without(&names, "/srv/settings"), "/srv/settings");
    }
}
