//! Whose cgroup this is, from what it is called.
//!
//! | runtime | the cgroup |
//! |---|---|
//! | docker | `docker-ID.scope`, `docker/ID` |
//! | podman | `libpod-ID.scope`, `libpod-ID` |
//! | containerd, kubernetes | `cri-containerd-ID.scope`, `kubepods/.../ID`, `nerdctl-ID.scope` |
//! | CRI-O | `crio-ID.scope`, `crio-ID` |
//! | systemd-nspawn | `machine-NAME.scope`, `systemd-nspawn@NAME.service` |
//! | lxc | `lxc.payload.NAME` |

/// What a container is called by its cgroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Called {
    /// 64 hexadecimal digits.
    Id(String),
    Name(String),
}

/// The container of a cgroup, by the last part of the cgroup's path.
pub fn of_cgroup(part: &str) -> Option<Called> {
    if let Some(name) = part.strip_prefix("lxc.payload.") {
        return name_of(name);
    }
    if let Some(name) = part.strip_prefix("systemd-nspawn@").and_then(|rest| rest.strip_suffix(".service")) {
        return name_of(&unescaped(name));
    }
    let unit = part.strip_suffix(".scope");
    if let Some(name) = unit.and_then(|unit| unit.strip_prefix("machine-")) {
        return name_of(&unescaped(name));
    }
    let unit = unit.unwrap_or(part);
    let (runtime, id) = unit.rsplit_once('-').unwrap_or(("", unit));
    // conmon watches a container from outside.
    let is_container = is_id(id) && !runtime.ends_with("conmon");
    is_container.then(|| Called::Id(id.to_owned()))
}

pub fn is_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

fn name_of(text: &str) -> Option<Called> {
    (!text.is_empty()).then(|| Called::Name(text.to_owned()))
}

/// systemd writes `\x2d` for a dash in a unit's name, and so on (systemd-escape(1)).
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("\\x") {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        match rest.get(at + 2..at + 4).and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &rest[at + 4..];
            }
            None => {
                bytes.extend_from_slice(b"\\x");
                rest = &rest[at + 2..];
            }
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids() {
        let id = "0123456789abcdef".repeat(4);
        let found = Some(Called::Id(id.clone()));
        for part in
            ["ID", "docker-ID.scope", "libpod-ID.scope", "libpod-ID", "cri-containerd-ID.scope", "crio-ID.scope", "nerdctl-ID.scope"]
        {
            assert_eq!(of_cgroup(&part.replace("ID", &id)), found, "{part}");
        }
        for part in ["libpod-conmon-ID.scope", "crio-conmon-ID.scope", "IDa", "docker-ID.service"] {
            assert_eq!(of_cgroup(&part.replace("ID", &id)), None, "{part}");
        }
        assert_eq!(of_cgroup(&id.to_uppercase()), None);
        assert_eq!(of_cgroup("system.slice"), None);
    }

    #[test]
    fn names() {
        let found = |part: &str| match of_cgroup(part) {
            Some(Called::Name(name)) => name,
            other => panic!("{part}: {other:?}"),
        };
        assert_eq!(found("lxc.payload.web"), "web");
        assert_eq!(found(r"machine-my\x2dbox.scope"), "my-box");
        assert_eq!(found("systemd-nspawn@web.service"), "web");
        assert_eq!(found(r"machine-\x4.scope"), r"\x4");
        assert_eq!(found(r"machine-\x\xe9\x.scope"), "\\x\u{fffd}\\x");
        assert_eq!(found("machine-\\xé.scope"), "\\xé");
        for part in ["lxc.payload.", "lxc.monitor.web", "machine-.scope", "machine.slice"] {
            assert_eq!(of_cgroup(part), None, "{part}");
        }
    }
}
