//! The report as JSON: an object for each call path, the heaviest first.

use super::Sums;
use super::rows::Scale;
use crate::request::Report;
use crate::sink::call_tree::{NodeId, NodeKind, PathNames, Tree};
use crate::text::json::{self, Bytes, Integer};
use serde::Serialize;

/// The calls with one path.
#[derive(Serialize)]
#[serde(tag = "type", rename = "report_path")]
struct PathObject<'t> {
    comm: Option<Bytes<'t>>,
    name: Option<Bytes<'t>>,
    calls: Integer,
    /// The number of calls whose duration is known.
    timed: Integer,
    /// The sum of these durations in nanoseconds.
    total: Integer,
    /// The functions, innermost first.
    stack: Vec<Bytes<'t>>,
    /// The stack ends early: the callers of the last function are unknown.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    callers_unknown: bool,
}

/// Returns the objects of a report. All paths have one, whatever their share.
pub fn objects(tree: &Tree<Sums>, wanted: &Report) -> serde_json::Result<Vec<u8>> {
    let scale = Scale::new(wanted, tree.summed().sum(NodeId::ROOT));
    let mut paths: Vec<(PathNames, Sums)> = tree.paths().collect();
    let names = |path: &[(&[u8], NodeKind)]| path.iter().map(|(name, _)| name.to_vec()).collect::<Vec<_>>();
    paths.sort_by_cached_key(|(path, sums)| (scale.key(sums), names(path)));
    let mut out = Vec::new();
    for (path, sums) in &paths {
        let of_kind = |wanted: NodeKind| path.iter().filter(move |(_, kind)| *kind == wanted).map(|(name, _)| Bytes(name));
        let mut stack: Vec<Bytes> = of_kind(NodeKind::User).collect();
        if !wanted.is_inverted {
            stack.reverse();
        }
        let object = PathObject {
            comm: of_kind(NodeKind::Task).next(),
            name: of_kind(NodeKind::Syscall).next(),
            calls: Integer(sums.calls),
            timed: Integer(sums.timed),
            total: Integer(sums.time),
            stack,
            callers_unknown: of_kind(NodeKind::Unknown).next().is_some(),
        };
        json::line(&mut out, &object)?;
    }
    Ok(out)
}
