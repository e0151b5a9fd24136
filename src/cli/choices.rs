//! Parsers for option values that are not one of a fixed list of words.

use crate::show::{SummaryObject, Width};
use std::str::FromStr;

/// `--width`
impl FromStr for Width {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Width, Self::Err> {
        match (text, text.parse()) {
            ("auto", _) => Ok(Width::Terminal),
            ("none", _) => Ok(Width::Any),
            (_, Ok(columns @ 1..)) => Ok(Width::Columns(columns)),
            _ => Err("it is auto, none, or a number of columns"),
        }
    }
}

/// `--by`
impl FromStr for SummaryObject {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<SummaryObject, Self::Err> {
        Ok(match (text, text.strip_prefix("arg:")) {
            ("path", _) => SummaryObject::Path,
            ("fd", _) => SummaryObject::Fd,
            ("peer", _) => SummaryObject::Peer,
            ("comm", _) => SummaryObject::Comm,
            ("errno", _) => SummaryObject::Errno,
            (_, Some(name)) if !name.is_empty() => SummaryObject::Arg(name.to_owned()),
            _ => return Err("it is path, fd, peer, comm, errno, or arg:NAME for an argument (arg:flags)"),
        })
    }
}
