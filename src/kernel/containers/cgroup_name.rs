//! Recognizes the cgroup of a container by its name.
//!
//! | runtime | the cgroup |
//! |---|---|
//! | docker | `docker-ID.scope`, `docker/ID` |
//! | podman | `libpod-ID.scope`, `libpod-ID` |
//! | containerd, kubernetes | `cri-containerd-ID.scope`, `kubepods/.../ID`, `nerdctl-ID.scope` |
//! | CRI-O | `crio-ID.scope`, `crio-ID` |
//! | systemd-nspawn | `machine-NAME.scope`, `systemd-nspawn@NAME.service` |
//! | lxc | `lxc.payload.NAME` |

/// The ID or the name of a container, whichever its cgroup's name has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identifier {
    /// 64 hexadecimal digits.
    Id(String),
    Name(String),
}

/// Returns the container of a cgroup, by the last part of the cgroup's path.
pub fn container_of(part: &str) -> Option<Identifier> {
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
    // The cgroup of conmon, which monitors a container, is not the container's.
    let is_container = is_id(id) && !runtime.ends_with("conmon");
    is_container.then(|| Identifier::Id(id.to_owned()))
}

/// Returns whether a text has the form of a container's full ID: 64 hexadecimal digits in lower case.
pub fn is_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

fn name_of(text: &str) -> Option<Identifier> {
    (!text.is_empty()).then(|| Identifier::Name(text.to_owned()))
}

/// Decodes the escapes in a unit's name: systemd writes `\x2d` for a dash, for example (systemd-escape(1)).
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
    fn ids_are_read_from_the_cgroups_of_all_runtimes() {
        let id = "0123456789abcdef".repeat(4);
        let found = Some(Identifier::Id(id.clone()));
        for part in
            ["ID", "docker-ID.scope", "libpod-ID.scope", "libpod-ID", "cri-containerd-ID.scope", "crio-ID.scope", "nerdctl-ID.scope"]
        {
            assert_eq!(container_of(&part.replace("ID", &id)), found, "{part}");
        }
        for part in ["libpod-conmon-ID.scope", "crio-conmon-ID.scope", "IDa", "docker-ID.service"] {
            assert_eq!(container_of(&part.replace("ID", &id)), None, "{part}");
        }
        assert_eq!(container_of(&id.to_uppercase()), None);
        assert_eq!(container_of("system.slice"), None);
    }

    #[test]
    fn names_are_read_from_cgroups_and_unescaped() {
        let found = |part: &str| match container_of(part) {
            Some(Identifier::Name(name)) => name,
            other => panic!("{part}: {other:?}"),
        };
        assert_eq!(found("lxc.payload.web"), "web");
        assert_eq!(found(r"machine-my\x2dbox.scope"), "my-box");
        assert_eq!(found("systemd-nspawn@web.service"), "web");
        assert_eq!(found(r"machine-\x4.scope"), r"\x4");
        assert_eq!(found(r"machine-\x\xe9\x.scope"), "\\x\u{fffd}\\x");
        assert_eq!(found("machine-\\xé.scope"), "\\xé");
        for part in ["lxc.payload.", "lxc.monitor.web", "machine-.scope", "machine.slice"] {
            assert_eq!(container_of(part), None, "{part}");
        }
    }
}
