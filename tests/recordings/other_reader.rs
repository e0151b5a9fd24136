//! Reads the recordings by another library, linux-perf-data, which knows neither rtrace nor perf's code: what it finds
//! in them is what rtrace shows.

use super::perf_script::time;
use super::{recordings, rtrace};
use linux_perf_data::linux_perf_event_reader::{EventRecord, RecordType};
use linux_perf_data::{Error, PerfFileReader, PerfFileRecord};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// What the library finds in a file.
#[derive(Debug, Default)]
struct Found {
    /// The names of the events, in their order.
    events: Vec<String>,
    /// How many samples each event has.
    samples: BTreeMap<String, usize>,
    /// How many records there are of the kinds that rtrace prints.
    others: BTreeMap<&'static str, usize>,
    /// Thread and time of each sample.
    moments: BTreeSet<(i64, u64)>,
    arch: String,
    release: String,
}

/// Reads a file. Returns `None` if its records are compressed, which the library is built without: it links another
/// version of zstd than rtrace, and one program can link only one.
fn read(path: &Path) -> Option<Found> {
    let file = BufReader::new(File::open(path).expect("it is in the repository"));
    let place = path.display();
    let PerfFileReader { mut perf_file, mut record_iter } =
        PerfFileReader::parse_file(file).unwrap_or_else(|error| panic!("{place}: {error}"));
    let text = |text: Result<Option<&str>, Error>| text.expect("it can be read").expect("the section is there").to_owned();
    let mut found = Found { arch: text(perf_file.arch()), release: text(perf_file.os_release()), ..Found::default() };
    assert!(perf_file.nr_cpus().expect("it can be read").expect("the section is there").nr_cpus_online > 0, "{place}");
    assert!(!text(perf_file.hostname()).is_empty() && !text(perf_file.perf_version()).is_empty(), "{place}");
    found.events = perf_file.event_attributes().iter().map(|event| event.name().expect("it has a name").to_owned()).collect();
    if perf_file.compression_info().expect("it can be read").is_some() {
        return None;
    }
    assert!(perf_file.sample_time_range().expect("it can be read").is_some(), "{place}");
    while let Some(record) = record_iter.next_record(&mut perf_file).unwrap_or_else(|error| panic!("{place}: {error}")) {
        let PerfFileRecord::EventRecord { record, attr_index } = record else { continue };
        let kind = match record.parse().unwrap_or_else(|error| panic!("{place}: {error}")) {
            EventRecord::Sample(sample) => {
                *found.samples.entry(found.events[attr_index].clone()).or_default() += 1;
                let moment = sample.timestamp.expect("each sample has its time");
                found.moments.insert((sample.tid.expect("each sample has its task").into(), moment));
                continue;
            }
            EventRecord::Comm(_) => "COMM",
            EventRecord::Fork(_) => "FORK",
            EventRecord::Exit(_) => "EXIT",
            EventRecord::Mmap2(_) => "MMAP2",
            EventRecord::Lost(_) => "LOST",
            EventRecord::Raw(raw) if raw.record_type == RecordType::LOST_SAMPLES => "LOST_SAMPLES",
            _ => continue,
        };
        *found.others.entry(kind).or_default() += 1;
    }
    Some(found)
}

/// Returns the lines that rtrace prints with these words.
fn lines(words: &[&str]) -> Vec<String> {
    let run = rtrace(words);
    assert_eq!(run.status.code(), Some(0), "{words:?}: {}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8_lossy(&run.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn another_library_finds_in_the_recordings_what_rtrace_shows() {
    let (mut compared, mut compressed) = (0, Vec::new());
    for path in recordings() {
        let name = path.to_str().expect("it is UTF-8");
        let Some(found) = read(&path) else {
            compressed.push(name.to_owned());
            continue;
        };
        let objects: Vec<Value> =
            lines(&["-i", name, "--json", "-o", "-"]).iter().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
        assert_eq!((&objects[0]["release"], &objects[0]["abi"]), (&found.release.as_str().into(), &found.arch.as_str().into()), "{name}");
        // Each call ends at a sample of its thread.
        let ends = objects.iter().filter(|object| object["type"] == "call" && object["exit"] == "returned");
        let mut calls = 0;
        for call in ends {
            assert!(found.moments.contains(&(call["tid"].as_i64().expect("it is a number"), time(&call["time"]))), "{name}: {call}");
            calls += 1;
        }
        assert!(calls > 0, "{name}");
        compared += 1;
        if name.contains(".perf-") {
            continue;
        }
        // The other commands print all that a file of rtrace has.
        assert_eq!(lines(&["evlist", "-i", name]), found.events, "{name}");
        let script = lines(&["script", "-i", name]);
        let count = |part: &str| script.iter().filter(|line| line.contains(part)).count();
        // A large fact is several samples, and one line.
        for event in found.events.iter().filter(|event| *event != "rtrace:fact") {
            assert_eq!(count(&format!(": {event}: ")), found.samples.get(event).copied().unwrap_or_default(), "{name}: {event}");
        }
        // What is in the file for perf alone, names and mappings of tasks from /proc, is not printed.
        for (kind, number) in found.others.iter().filter(|(kind, _)| !["COMM", "MMAP2"].contains(kind)) {
            assert_eq!(count(&format!(": PERF_RECORD_{kind}")), *number, "{name}: {kind}");
        }
    }
    assert!(compared >= 8, "{compared} recordings were compared; these are compressed: {compressed:?}");
}
