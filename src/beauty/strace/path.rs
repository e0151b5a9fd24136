//! Prints the files behind descriptors (`-y`, `-yy`).

use super::quote;
use super::value::Options;
use crate::beauty::file;
use crate::event::{DeviceKind, File};
use crate::show::strace::Files;
use std::io::Write;

/// Appends the file behind a descriptor, if it is known and asked for.
pub fn write(out: &mut Vec<u8>, file: Option<&File>, options: Options) {
    let Some(file) = file.filter(|file| is_shown(file, options.files)) else { return };
    out.push(b'<');
    match file {
        File::Socket(socket) if !options.files.contains(Files::SOCKET) => {
            out.extend_from_slice(format!("socket:[{}]", socket.inode).as_bytes());
        }
        File::Device { path, kind, major, minor } if options.files.contains(Files::DEVICE) => {
            quote::escaped(out, path, b"<>");
            let kind = if *kind == DeviceKind::Block { "block" } else { "char" };
            // Writing to a Vec does not fail.
            _ = write!(out, "<{kind} {major}:{minor}>");
        }
        File::OldPath { path, deleted: true, cut } => {
            out.extend_from_slice(if *cut { b"..." } else { b"" });
            quote::escaped(out, path, b"<>");
            out.extend_from_slice(b">(deleted)");
            return;
        }
        File::Memory(name) => {
            out.extend_from_slice(b"/memfd:");
            quote::escaped(out, name, b"<>");
            out.extend_from_slice(b">(deleted)");
            return;
        }
        // The arrow between two addresses is not escaped.
        File::Socket(_) => quote::escaped(out, &file::name(file), b""),
        file => quote::escaped(out, &file::name(file), b"<>"),
    }
    out.push(b'>');
}

/// Returns whether anything of a file is asked for. Paths are shown of all files, the rest only of those of a kind.
fn is_shown(file: &File, wanted: Files) -> bool {
    let of_kind = match file {
        File::Socket(_) => Files::SOCKET,
        File::Process { .. } => Files::PIDFD,
        File::Device { .. } => Files::DEVICE,
        _ => Files::empty(),
    };
    wanted.intersects(Files::PATH | of_kind)
}
