//! A tracepoint's format file (`events/SUBSYSTEM/NAME/format` in tracefs): which fields stand where in its records.

/// A parsed format file.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Format {
    pub name: String,
    /// The number that perf_event_open's `config` takes.
    pub id: u64,
    /// All fields, `common_*` first.
    pub fields: Vec<FormatField>,
    /// The `print fmt:` line, as it is.
    pub print: String,
}

/// One field of a record.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct FormatField {
    pub name: String,
    /// The C type as the file has it, without array brackets (`__data_loc char[]` is kept whole).
    pub type_name: String,
    pub offset: u32,
    pub size: u32,
    pub signed: bool,
    /// Elements, when it is an array of a fixed length.
    pub array: Option<u32>,
    pub place: FieldPlace,
}

/// Where a field's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum FieldPlace {
    /// At its offset.
    Here,
    /// `__data_loc`: length << 16 | offset from the record's start.
    DataLoc,
    /// `__rel_loc`: the same, the offset counted from the end of this field.
    RelLoc,
}
