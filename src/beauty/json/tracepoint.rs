//! The objects of tracepoints and probes.

use super::other::{map, symbol};
use super::{Elements, Json, object, value};
use crate::beauty::decode::Context;
use crate::beauty::netlink::Joined;
use crate::beauty::style::StyleContext;
use crate::beauty::tracepoint::{Field, Part, TracepointDecoder};
use crate::beauty::value::Value;
use crate::event::{Call, Caller, Event, EventIndex};
use crate::session::{EventSpec, Session};

impl Json {
    /// Writes the name and the fields of a tracepoint or probe.
    pub(super) fn tracepoint(
        &mut self,
        o: &mut Elements,
        event: &Event,
        (index, spec): (EventIndex, &EventSpec),
        (raw, caller, call): (&[u8], Option<&Caller>, Option<&Call>),
        context: &StyleContext,
    ) {
        call.into_iter().for_each(|call| self.families.learn(call));
        o.bytes("name", spec.name.as_bytes());
        spec.terms.name.iter().for_each(|name| o.bytes("called", name.as_bytes()));
        let place = usize::from(index.0);
        if self.tracepoints.len() <= place {
            self.tracepoints.resize_with(place + 1, || None);
        }
        let Some(format) = &spec.format else { return };
        let Session { abi, copied_bytes, .. } = context.session;
        let decoder = self.tracepoints[place]
            .get_or_insert_with(|| TracepointDecoder::new(format, spec.terms.function.as_deref(), *abi, *copied_bytes));
        if let Some((function, returned_to)) = decoder.returned(raw) {
            o.object("function", |o| {
                o.hex("address", function);
                let named =
                    spec.terms.function.as_ref().map(|name| (name.as_bytes().into(), 0)).or_else(|| context.kernel_function(function));
                symbol(o, named);
            });
            o.object("returned_to", |o| {
                o.hex("address", returned_to);
                match caller {
                    Some(caller) => {
                        symbol(o, context.names.function(event.task.pid, &caller.frame));
                        map(o, "file", Some(&caller.place));
                    }
                    None => symbol(o, context.kernel_function(returned_to)),
                }
            });
        }
        o.array("fields", |a| {
            let joined = Joined::default();
            let of_call = Context::new(context.comm, self.string_limit).families(&self.families).joined(&joined);
            for Field { name, value, part, is_default } in decoder.fields(raw, call, of_call) {
                object(a.item(), |o| {
                    o.bytes("name", name.as_bytes());
                    match &value {
                        Value::Code(address) => o.object("value", |o| {
                            o.hex("code", *address);
                            symbol(o, context.kernel_function(*address));
                        }),
                        value => value::write(o.member("value"), value),
                    }
                    o.mark("default", is_default || part == Part::Hidden);
                    o.mark("of_call", part == Part::OfCall);
                });
            }
        });
    }
}
