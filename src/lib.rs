//! rtrace: a tracer of system calls with strace's information at less than perf trace's cost, which counts every lost
//! record.
//!
//! ```text
//! argv ──cli──▶ Request ──plan──▶ Plan ──source──▶ Rounds of Records ──engine──▶ Events ──sink──▶ text, summary, ...
//! ```
//! ARCHITECTURE.md describes the modules and the invariants.
//!
//! The library is the program rtrace, and it has no interface for other programs. Its modules are private. What is
//! public is listed in this file: the steps of the program, for `main.rs`, and the parts that the repository's own
//! tests, benchmarks and fuzz targets call. All of it may change with each version.
#![deny(clippy::print_stderr)]
#![warn(missing_docs)]
#![allow(rustdoc::private_intra_doc_links, reason = "the documentation is for those who change rtrace, and is built with private items")]

mod arm;
mod beauty;
mod bpf;
mod cli;
mod diff;
mod engine;
mod event;
mod gate;
mod inject;
mod interrupt;
mod json_trace;
mod kernel;
mod plan;
mod probe;
mod recording;
mod request;
mod run;
mod say;
mod session;
mod show;
mod sink;
mod snapshot;
mod source;
mod stack;
mod stream;
mod sys;
mod syscall;
mod task;
mod text;
mod throttle;

use say::say;

/// The steps of the program, which `main.rs` takes one after the other.
pub mod program {
    pub use crate::cli::{ExitCode, Parsed, carry_out, environment, parse};
    pub use crate::inject::serve_if_started_as_supervisor;
    pub use crate::kernel::remote_files::serve_if_started_as_reader;
    pub use crate::request::{Request, Trace};
    pub use crate::say::line as say_line;
    pub use crate::sys::caller::{end_by_signal, save_state, set_up_signals};
    pub use crate::sys::file_capabilities::clear_effective;
    pub use crate::throttle::serve_if_started_as_watcher;
}

/// The languages of the command line, for the generator of the manual pages and for fuzz targets.
pub mod command_line {
    pub use crate::cli::args::command;
    pub use crate::cli::completions::script as completion_script;
    pub use crate::cli::parse::{Surroundings, request};
    pub use crate::cli::words::split as split_words;
    pub use crate::probe::grammar::{parse as parse_probe, parse_file as parse_probe_file};
}

/// The tables that are generated from `beauty/*.tbl`, for the tests that compare them with headers, the C compiler and
/// the running kernel.
pub mod tables {
    pub use crate::beauty::lookup::index_by_name as syscall_by_name;
    pub use crate::beauty::resolve::Width;
    pub use crate::beauty::row::{
        Arg, ArgumentKind, Flow, Length, MemoryType, Struct, StructLayout, Syscall, TableConstant, TableKind, Variant,
    };
    pub use crate::beauty::tables::{BY_NUMBER, OTHER_NAMES, STRUCTS, SYSCALLS, TABLES};
    pub use crate::event::Abi;
}

/// The types of events.
pub mod events {
    pub use crate::event::frame::{Frame, StackEnd};
    pub use crate::event::{
        Abi, Call, CallFile, CallId, EntryState, Event, EventIndex, EventKind, ExitState, FdPlace, File, Injected, PidTranslation, Piece,
        PieceState, PieceTime, Socket, SocketAddresses, Stack, TaskId, Time, Verdict,
    };
}

/// Records, and their way from ring buffers and BPF programs to the engine.
pub mod records {
    pub use crate::bpf::aggregate::parse as parse_aggregate;
    pub use crate::bpf::record::{CallRecord, add_pieces, listed as listed_calls, task as call_task, time as call_time};
    pub use crate::session::{EventSpec, EventTable, Role, Scope, Session, Targets, Terms};
    pub use crate::source::dump::{Dump, chain as call_chain};
    pub use crate::source::frame::field;
    pub use crate::source::record::Records;
    pub use crate::source::record_writer::RecordWriter;
    pub use crate::source::{Body, Chunk, Form, Input, Merge, Round};
    pub use crate::sys::perf::SAMPLE_TRACEPOINT;
}

/// Recordings, from their bytes to the input of the engine.
pub mod recordings {
    pub use crate::recording::{About, Begin, Reader, Writer};
    pub use crate::sys::perf::AttrNumbers;
}

/// What `rtrace diff` compares: traces in JSON and their outlines.
pub mod differences {
    pub use crate::diff::{Outline, Outliner, Words, compare, objects, text};
    pub use crate::json_trace::JsonTrace;
}

/// From a plan to events, for tests that trace in their own process.
pub mod tracing {
    pub use crate::arm::arm;
    pub use crate::arm::choose as choose_engine;
    pub use crate::arm::live::Drain;
    pub use crate::bpf::user::Objects;
    pub use crate::engine::Engine;
    pub use crate::kernel::procfs::task as proc_task;
    pub use crate::kernel::tracefs::{EventName, TracePath, Tracefs};
    pub use crate::plan::{Plan, build as build_plan, probes as planned_probes};
    pub use crate::probe::run_events::{RunEvents, Wanted};
    pub use crate::request::Engine as EngineChoice;
    pub use crate::run::session::session as describe_session;
    pub use crate::source::instance::stale::remove_stale;
    pub use crate::source::instance::{Instance, Size, TaskFilter};
    pub use crate::source::proc_reader::{LiveProcReader, TaskReader};
    pub use crate::stack::library::Closed;
    pub use crate::task::ProcReader;
}

/// Styles and sinks, for the benchmark of their costs.
pub mod output {
    pub use crate::beauty::style::{Style, StyleContext, create as create_style};
    pub use crate::engine::view::View;
    pub use crate::sink::output::Output;
    pub use crate::sink::summary::Summary;
    pub use crate::sink::{Sink, TraceResult};
    pub use crate::stack::name::{NamedFrame, Nameless, Names};
    pub use crate::task::Tasks;
}

/// Unwinding: from registers and a copy of the stack to the addresses of the callers.
pub mod unwinding {
    pub use crate::stack::image::Image;
    pub use crate::stack::registers::{Architecture, NONE, Registers};
    pub use crate::stack::space::AddressSpace;
    pub use crate::stack::unwind::{Sampled, Unwinder, Unwound};
}

/// The names and source lines of addresses.
pub mod symbols {
    pub use crate::kernel::objects::{LiveFiles, kallsyms};
    pub use crate::stack::symbols::build_id::BuildId;
    pub use crate::stack::symbols::compression::Compression;
    pub use crate::stack::symbols::demangle::demangle;
    pub use crate::stack::symbols::jitdump::Jitdump;
    pub use crate::stack::symbols::kallsyms::Kallsyms;
    pub use crate::stack::symbols::lines::Lines;
    pub use crate::stack::symbols::order::ByteOrder;
    pub use crate::stack::symbols::perf_map::{JitFunctions, PerfMap};
    pub use crate::stack::symbols::separate::{DebugAltLink, DebugLink};
    pub use crate::stack::symbols::{
        CodeSymbols, ElfFile, Files, Identity, KernelNames, Name, ObjectId, Options, Origin, ReadAt, Resolver, SymbolTable, Want,
    };
}
