//! Rules by address of an image: in front of all tables, for all processes.
//!
//! Direct-mapped: an address that meets another one in its place takes it.

use gimli::UnwindContext;

use crate::stack::rule::Rule;
use crate::stack::space::Mapping;

/// 16,384 places of 16 bytes.
const PLACES_BITS: u32 = 14;

pub struct RuleCache {
    places: Box<[Place]>,
    context: UnwindContext<usize>,
}

#[derive(Clone, Copy)]
struct Place {
    /// Image and relative address; 0 is of no image.
    key: u64,
    rule: Rule,
}

impl RuleCache {
    pub fn new() -> Self {
        let empty = Place { key: 0, rule: Rule::Unknown };
        Self { places: vec![empty; 1 << PLACES_BITS].into(), context: UnwindContext::new() }
    }

    /// How a frame at a relative address of a mapping's image is left.
    #[inline]
    pub fn rule(&mut self, mapping: &Mapping, relative: u32) -> Rule {
        let key = mapping.key() | u64::from(relative);
        // Fibonacci hashing: neighbours are far from each other.
        let index = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - PLACES_BITS)) as usize;
        if self.places[index].key != key {
            self.places[index] = self.look_up(mapping, key);
        }
        self.places[index].rule
    }

    #[cold]
    fn look_up(&mut self, mapping: &Mapping, key: u64) -> Place {
        let rule = mapping.image().map_or(Rule::Unknown, |image| image.rule(key as u32, &mut self.context));
        Place { key, rule }
    }

    /// What reading tables needs meanwhile.
    pub fn context(&mut self) -> &mut UnwindContext<usize> {
        &mut self.context
    }
}
