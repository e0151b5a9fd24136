//! The names of the files of snapshots: `FILE.YYYYMMDDhhmmssxx`, as those of `perf record --switch-output`. The time is
//! the local one, up to hundredths of a second.

use jiff::Zoned;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Returns the name of a snapshot that is taken at this time.
pub fn at(path: &Path, now: &Zoned) -> PathBuf {
    let hundredths = now.subsec_nanosecond() / 10_000_000;
    let mut name = OsString::from(path);
    name.push(format!(".{}{hundredths:02}", now.strftime("%Y%m%d%H%M%S")));
    PathBuf::from(name)
}

/// Returns the name for the present time, of a file that does not exist.
pub fn unused(path: &Path) -> PathBuf {
    let mut now = Zoned::now();
    loop {
        let name = at(path, &now);
        if name.symlink_metadata().is_err() {
            return name;
        }
        now += jiff::SignedDuration::from_millis(10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use jiff::tz::TimeZone;

    #[test]
    fn names_have_the_time_to_hundredths_of_a_second() {
        let time = Timestamp::new(1_700_000_000, 987_654_321).unwrap().to_zoned(TimeZone::UTC);
        assert_eq!(at(Path::new("/tmp/rtrace.data"), &time), Path::new("/tmp/rtrace.data.2023111422132098"));
    }

    #[test]
    fn no_file_is_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        let names: Vec<PathBuf> = (0..20).map(|_| unused(&path)).inspect(|name| std::fs::write(name, "").unwrap()).collect();
        assert!(names.is_sorted() && std::fs::read_dir(dir.path()).unwrap().count() == 20);
    }
}
