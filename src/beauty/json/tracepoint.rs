//! The objects of tracepoints and probes.

use super::other::{map, symbol};
use super::{Elements, Json, object, value};
use crate::beauty::default::is_zero;
use crate::beauty::style::StyleContext;
use crate::beauty::tracepoint::TracepointDecoder;
use crate::beauty::value::Value;
use crate::event::{Caller, Event, EventIndex};
use crate::session::{EventSpec, Session};

impl Json {
    /// Writes the name and the fields of a tracepoint or probe.
    pub(super) fn tracepoint(
        &mut self,
        o: &mut Elements,
        event: &Event,
        (index, spec): (EventIndex, &EventSpec),
        (raw, caller): (&[u8], Option<&Caller>),
        context: &StyleContext,
    ) {
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
            for (name, value) in decoder.decode(raw, context.comm) {
                object(a.item(), |o| {
                    o.bytes("name", name.as_bytes());
                    match &value {
                        Value::Code(address) => o.object("value", |o| {
                            o.hex("code", *address);
                            symbol(o, context.kernel_function(*address));
                        }),
                        value => value::write(o.member("value"), value),
                    }
                    // The user requested each argument of a probe.
                    o.mark("default", !decoder.is_probe() && is_zero(&value));
                });
            }
        });
    }
}
