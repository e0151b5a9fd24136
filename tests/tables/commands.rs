//! Compares the names of ioctl commands with all installed headers.

use crate::files::Headers;
use crate::{report, reviewed};

/// Commands that have no name, and the reason: the beginning of the name of a header, or `header: NAME`.
const WITHOUT_NAME: [(&str, &str); 4] = [
    ("drm/", "the drivers of graphics other than i915, amdgpu and virtgpu are named by their libraries' traces"),
    ("linux/soundcard.h: _SIO", "these are macros that make commands"),
    ("asm-generic/ioctl.h", "this header defines the macros that make commands"),
    ("linux/ppdev.h: PPW", "the kernel declares these commands obsolete and defines no numbers for them"),
];

#[test]
fn commands_of_the_installed_headers_have_names() {
    let headers = Headers::from_env();
    let load = |name: &str| headers.load(name).map(|(_, text)| text);
    let parsed = crate::parsed_rows();
    let names = report::header_names(&headers.directories);
    assert!(names.len() > 500, "only {} headers are installed", names.len());
    let is_excused = |line: &str| {
        let (place, name) = line.rsplit_once(": ").unwrap_or_default();
        let header = place.rsplit_once(':').map_or(place, |(header, _)| header);
        let line = format!("{header}: {name}");
        WITHOUT_NAME.iter().any(|(prefix, _)| line.starts_with(prefix))
    };
    let mut unnamed = report::unnamed_commands(&parsed, &load, &names);
    unnamed.retain(|line| !is_excused(line));
    let advice = "name these in beauty/tables/ioctl_*.tbl, or exclude them there";
    reviewed::brings("ioctl commands without a name", advice, &unnamed);
}
