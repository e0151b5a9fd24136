//! The objects of `--json` that are about events.

use serde_json::{Map, Value};

/// Returns the objects of events without the members `parent` and `program`, which the first object of a process has,
/// and the monotonic times in nanoseconds at which the events ended. Objects about the whole trace are left out.
pub fn json_events(json: &str) -> Vec<(u64, String)> {
    let event = |line: &str| {
        let mut object: Map<String, Value> = serde_json::from_str(line).expect("it is JSON");
        object.remove("parent");
        object.remove("program");
        let time = object.get("time")?.get("monotonic")?.as_str()?.parse().expect("it is a number");
        Some((time, Value::Object(object).to_string()))
    };
    json.lines().filter(|line| !line.starts_with(r#"{"type":"notice""#)).filter_map(event).collect()
}

/// Returns the texts of the events that ended in a span of time.
pub fn within(events: &[(u64, String)], span: std::ops::RangeInclusive<u64>) -> Vec<&str> {
    events.iter().filter(|(time, _)| span.contains(time)).map(|(_, event)| &**event).collect()
}
