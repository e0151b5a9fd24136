//! A cache of rules by image and address, in front of all tables and for all processes.
//!
//! It is direct-mapped: a rule replaces the one whose address has the same index.

use gimli::UnwindContext;

use crate::stack::rule::Rule;
use crate::stack::space::Mapping;

/// The number of cached rules as a power of two: 16,384 entries of 16 bytes.
const CACHE_BITS: u32 = 14;

/// The cache, and the memory that gimli needs to read tables.
pub struct RuleCache {
    cached: Box<[CachedRule]>,
    context: UnwindContext<usize>,
}

#[derive(Clone, Copy)]
struct CachedRule {
    /// Image and relative address. 0 marks an unused entry: no image has that key.
    key: u64,
    rule: Rule,
}

impl RuleCache {
    pub fn new() -> Self {
        let empty = CachedRule { key: 0, rule: Rule::Unknown };
        Self { cached: vec![empty; 1 << CACHE_BITS].into(), context: UnwindContext::new() }
    }

    /// Returns the rule for a relative address of a mapping's image.
    #[inline]
    pub fn rule(&mut self, mapping: &Mapping, relative: u32) -> Rule {
        let key = mapping.key() | u64::from(relative);
        // Fibonacci hashing spreads neighbouring addresses over the whole cache.
        let index = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - CACHE_BITS)) as usize;
        if self.cached[index].key != key {
            self.cached[index] = self.look_up(mapping, key);
        }
        self.cached[index].rule
    }

    #[cold]
    fn look_up(&mut self, mapping: &Mapping, key: u64) -> CachedRule {
        let rule = mapping.image().map_or(Rule::Unknown, |image| image.rule(key as u32, &mut self.context));
        CachedRule { key, rule }
    }

    /// Returns the memory that gimli needs to read tables.
    pub fn context(&mut self) -> &mut UnwindContext<usize> {
        &mut self.context
    }
}
