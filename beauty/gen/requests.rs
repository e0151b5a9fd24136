//! Rows of `requests.tbl`: the arguments of io_uring's requests, and the members of struct io_uring_sqe that contain
//! them.

use super::constant::Lookup;
use super::fault::{Fault, Location, Row};
use super::kind::Vocabulary;
use super::link::{self, Call};
use super::syscalls::{self, SyscallRow};

/// The table with the opcodes.
const OPCODES: &str = "io_uring_op";

/// The last word of a row that names the syscalls which do the same.
const TWINS: &str = "twins=";

/// The members of struct io_uring_sqe (include/uapi/linux/io_uring.h) that contain arguments: the words of rows, and
/// the variants of `row::SqeField`.
const FIELDS: [(&str, &str); 11] = [
    ("fd", "Fd"),
    ("off", "Off"),
    ("addr", "Addr"),
    ("len", "Len"),
    ("op_flags", "OpFlags"),
    ("addr3", "Addr3"),
    ("file_index", "FileIndex"),
    ("splice_fd_in", "SpliceFdIn"),
    ("buf_index", "BufIndex"),
    ("addr_len", "AddrLen"),
    ("cmd_op", "CmdOp"),
];

/// A row. The fields are in the order of the arguments.
#[derive(Clone, Debug)]
pub struct RequestRow {
    location: Location,
    pub opcode: String,
    pub fields: Vec<&'static str>,
    /// The syscalls that do the same as the request, besides that of `like=`.
    twins: Vec<String>,
    body: Body,
}

#[derive(Clone, Debug)]
enum Body {
    /// The arguments and the return are those of this syscall.
    Like(String),
    Own(SyscallRow),
}

/// A resolved request, from which a `row::RequestRow` is emitted.
#[derive(Debug)]
pub struct Request {
    pub opcode: u64,
    pub fields: Vec<&'static str>,
    /// The names of the syscalls that do the same.
    pub twins: Vec<String>,
    /// The arguments and the return, as those of a syscall without numbers.
    pub call: Call,
}

/// Parses a line.
pub fn parse(row: &Row) -> Result<RequestRow, Fault> {
    let fault = |text: String| row.location.fault(text);
    let [opcode, words @ ..] = &row.fields[..] else { return Err(fault("the opcode is missing".into())) };
    let (words, twins) = match words {
        [words @ .., last] if last.starts_with(TWINS) => (words, last[TWINS.len()..].split('|').map(str::to_string).collect()),
        _ => (words, Vec::new()),
    };
    let mut fields = Vec::new();
    if let Some(syscall) = words.first().and_then(|word| word.strip_prefix("like=")) {
        for word in &words[1..] {
            fields.push(field(word).ok_or_else(|| fault(unknown_field(word)))?);
        }
        return Ok(RequestRow {
            location: row.location.clone(),
            opcode: opcode.to_string(),
            fields,
            twins,
            body: Body::Like(syscall.to_string()),
        });
    }
    let mut arguments = vec![*opcode];
    for word in words {
        match word.rsplit_once('=').map(|(argument, member)| (argument, field(member))) {
            Some((argument, Some(member))) => {
                arguments.push(argument);
                fields.push(member);
            }
            _ => arguments.push(word),
        }
    }
    let own = syscalls::parse(&Row { location: row.location.clone(), fields: arguments })?.remove(0);
    if own.args.len() != fields.len() {
        return Err(fault(format!("{opcode} has {} arguments, and {} of them have a member of the request", own.args.len(), fields.len())));
    }
    Ok(RequestRow { location: row.location.clone(), opcode: opcode.to_string(), fields, twins, body: Body::Own(own) })
}

fn field(word: &str) -> Option<&'static str> {
    FIELDS.iter().find(|(known, _)| *known == word).map(|(_, rust)| *rust)
}

fn unknown_field(word: &str) -> String {
    format!("`{word}` is no member of a request: use one of {}", FIELDS.map(|(known, _)| known).join(", "))
}

/// Resolves the rows, sorted by opcode.
pub fn requests(rows: &[RequestRow], calls: &[Call], known: &Vocabulary, value: &Lookup, faults: &mut Vec<Fault>) -> Vec<Request> {
    let mut requests: Vec<Request> = Vec::new();
    for row in rows {
        let found = request(row, calls, known, value).and_then(|request| match requests.iter().any(|one| one.opcode == request.opcode) {
            true => Err(format!("{} already has a row", row.opcode)),
            false => Ok(request),
        });
        match found {
            Ok(request) => requests.push(request),
            Err(text) => faults.push(row.location.fault(text)),
        }
    }
    requests.sort_by_key(|request| request.opcode);
    requests
}

fn request(row: &RequestRow, calls: &[Call], known: &Vocabulary, value: &Lookup) -> Result<Request, String> {
    let opcode = value(OPCODES, &row.opcode)?.map(|constant| constant.value).transpose()?.unwrap_or_default();
    let own = match &row.body {
        Body::Own(own) => link::without_number(own, known, value)?,
        Body::Like(name) => {
            let call = calls.iter().find(|call| call.name == *name).ok_or_else(|| format!("there is no syscall {name}"))?;
            if call.args.len() != row.fields.len() {
                return Err(format!("{name} has {} arguments, and the row has members for {}", call.args.len(), row.fields.len()));
            }
            call.clone()
        }
    };
    let like = match &row.body {
        Body::Like(name) => Some(name),
        Body::Own(_) => None,
    };
    let twins: Vec<String> = like.into_iter().chain(&row.twins).cloned().collect();
    if let Some(name) = twins.iter().find(|name| !calls.iter().any(|call| call.name == **name)) {
        return Err(format!("there is no syscall {name}"));
    }
    let short = row.opcode.strip_prefix("IORING_OP_").unwrap_or(&row.opcode).to_ascii_lowercase();
    let call =
        Call { name: format!("io_uring:{short}"), event: String::new(), numbers: [None; 4], groups: Vec::new(), does: "Plain", ..own };
    Ok(Request { opcode, fields: row.fields.clone(), twins, call })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::fault::rows;

    fn parsed(text: &str) -> Result<RequestRow, String> {
        parse(&rows("r.tbl", text)[0]).map_err(|fault| fault.to_string())
    }

    #[test]
    fn a_row_names_the_member_of_each_argument() {
        let row = parsed("OP_A like=openat fd addr op_flags len").expect("good");
        assert_eq!((row.opcode.as_str(), row.fields), ("OP_A", vec!["Fd", "Addr", "OpFlags", "Len"]));
        let row = parsed("OP_B fd:fd=fd buf:out bytes[ret]=addr n:optional size?fd&A|B=len -> size").expect("good");
        let Body::Own(own) = row.body else { panic!("{row:?}") };
        assert_eq!(own.args.iter().map(|arg| arg.name.as_str()).collect::<Vec<_>>(), ["fd", "buf", "n"]);
        assert_eq!((row.fields, own.returns.as_deref()), (vec!["Fd", "Addr", "Len"], Some("size")));
    }

    #[test]
    fn a_row_may_name_syscalls_that_do_the_same() {
        let row = parsed("OP_A like=openat fd addr op_flags len twins=open|creat").expect("good");
        assert_eq!((row.fields.len(), row.twins), (4, vec!["open".to_string(), "creat".to_string()]));
        let row = parsed("OP_B fd:fd=fd -> size twins=read").expect("good");
        assert_eq!((row.fields, row.twins), (vec!["Fd"], vec!["read".to_string()]));
    }

    #[test]
    fn a_row_that_is_wrong_is_a_fault() {
        assert!(parsed("OP_A like=openat fd nothing").unwrap_err().contains("`nothing` is no member"));
        assert!(parsed("OP_B fd:fd=fd len:size -> int").unwrap_err().contains("2 arguments, and 1 of them"));
    }
}
