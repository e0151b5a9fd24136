//! `--by`: the objects of calls, such as paths and peers. Calls without an object, and calls whose object is unknown,
//! have rows of their own.

mod of_call;

use crate::event::{Call, Event};
use crate::show::{Style, SummaryObject};
use crate::sink::View;
use of_call::CallObject;
use rustc_hash::FxHashMap;
use serde_json::Value;

/// The maximum number of objects. Calls of further objects are counted in one row.
const OBJECTS_MAX: usize = 1 << 16;

/// The index of an object in [`Objects`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(u32);

impl ObjectId {
    /// No object: the summary is not by objects.
    pub const ANY: ObjectId = ObjectId(0);
    /// The call has an object that is unknown.
    const UNKNOWN: ObjectId = ObjectId(1);
    /// The call has no object.
    const NONE: ObjectId = ObjectId(2);
    /// An object beyond the maximum number.
    const BEYOND: ObjectId = ObjectId(3);
    const FIRST: u32 = 4;
}

/// All objects of the trace.
pub struct Objects {
    kind: Option<SummaryObject>,
    names: Vec<String>,
    /// The values of the objects, for JSON. If several objects have the same name, this is the value of the first.
    values: Option<Vec<Value>>,
    ids: FxHashMap<String, ObjectId>,
    string_limit: usize,
}

impl Objects {
    pub fn new(kind: Option<SummaryObject>, string_limit: usize, style: Style) -> Objects {
        Objects { kind, names: Vec::new(), values: (style == Style::Json).then(Vec::new), ids: FxHashMap::default(), string_limit }
    }

    /// Returns the title of the objects' column.
    pub fn title(&self) -> Option<&str> {
        self.kind.as_ref().map(SummaryObject::name)
    }

    /// Returns the text of the objects' column: the object, or a sign if the call has none or an unknown one. The text
    /// is empty if the summary is not by objects.
    pub fn name(&self, id: ObjectId) -> &str {
        match id {
            ObjectId::ANY => "",
            ObjectId::UNKNOWN => "?",
            ObjectId::NONE => "-",
            ObjectId::BEYOND => "... (others)",
            ObjectId(id) => self.names.get((id - ObjectId::FIRST) as usize).map_or("?", String::as_str),
        }
    }

    /// Returns the value of an object for JSON, or the reason why there is none; `None` if the summary is not by
    /// objects.
    pub fn value(&self, id: ObjectId) -> Option<Result<&Value, &'static str>> {
        Some(match id {
            ObjectId::ANY => return None,
            ObjectId::UNKNOWN => Err("unknown"),
            ObjectId::NONE => Err("none"),
            ObjectId::BEYOND => Err("others"),
            ObjectId(id) => self.values.as_ref()?.get((id - ObjectId::FIRST) as usize).ok_or("unknown"),
        })
    }

    /// Returns the meaning of a sign in the objects' column.
    pub fn legend(&self, id: ObjectId) -> Option<&'static str> {
        match id {
            ObjectId::UNKNOWN => Some("?: the call has an object, which is not known"),
            ObjectId::NONE => Some("-: the call has no object"),
            _ => None,
        }
    }

    /// Returns the object of a call, and adds it if it is new; [`ObjectId::ANY`] if the summary is not by objects.
    pub fn of(&mut self, event: &Event, call: &Call, view: &View) -> ObjectId {
        let Some(kind) = self.kind.take() else { return ObjectId::ANY };
        let id = of_call::with(&kind, event, call, view, self.string_limit, |object| self.id(object));
        self.kind = Some(kind);
        id
    }

    fn id(&mut self, object: &CallObject) -> ObjectId {
        let name = match object {
            CallObject::Unknown => return ObjectId::UNKNOWN,
            CallObject::None => return ObjectId::NONE,
            known => known.name(),
        };
        if let Some(id) = self.ids.get(&name) {
            return *id;
        }
        if self.names.len() == OBJECTS_MAX {
            return ObjectId::BEYOND;
        }
        let id = ObjectId(ObjectId::FIRST + self.names.len() as u32);
        if let Some(values) = &mut self.values {
            values.push(object.value());
        }
        self.names.push(name.clone());
        self.ids.insert(name, id);
        id
    }
}
