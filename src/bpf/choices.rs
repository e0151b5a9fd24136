//! The table of argument values that select a plan, a hash table with open addressing: each value is in one of the
//! first few slots from the one that its hash selects.
//!
//! It is the counterpart of `chosen` in `plan.h`. Reading constants is cheaper than a lookup in a BPF map, and the
//! table is small enough to fit into them.

/// `CHOICES_BITS`, `PROBES_MAX`
const CHOICES_BITS: u32 = 15;
const CHOICES_MAX: usize = 1 << CHOICES_BITS;
const PROBES_MAX: usize = 8;

/// The slots: keys and indices of plans.
#[derive(Debug)]
pub(super) struct Choices(Vec<(u64, u64)>);

impl Default for Choices {
    fn default() -> Choices {
        Choices(vec![(0, 0); CHOICES_MAX])
    }
}

impl Choices {
    /// Adds a value. Where all its slots are taken, calls with the value keep their plain plan.
    pub fn add(&mut self, chooser: u16, value: u32, place: u16) {
        let key = u64::from(chooser) << 32 | u64::from(value);
        if let Some(slot) = slots(key).find(|slot| self.0[*slot].0 == 0) {
            self.0[slot] = (key, place.into());
        }
    }

    /// Returns the plan that a value selects.
    #[cfg(test)]
    pub fn get(&self, chooser: u16, value: u32) -> Option<u16> {
        let key = u64::from(chooser) << 32 | u64::from(value);
        slots(key).find(|slot| self.0[*slot].0 == key).map(|slot| self.0[slot].1 as u16)
    }

    /// Returns the bytes of `choices`.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|(key, place)| [*key, *place]).flat_map(u64::to_ne_bytes).collect()
    }
}

fn slots(key: u64) -> impl Iterator<Item = usize> {
    let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - CHOICES_BITS);
    (0..PROBES_MAX).map(move |probe| (hash as usize + probe) & (CHOICES_MAX - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_in_the_slots_of_their_hash() {
        let mut choices = Choices::default();
        (0..100).for_each(|value| choices.add(7, value, value as u16));
        for value in 0..100 {
            let key = 7 << 32 | value;
            let place = slots(key).find(|slot| choices.0[*slot].0 == key).map(|slot| choices.0[slot].1);
            assert_eq!(place, Some(value));
        }
        assert_eq!(slots(8 << 32 | 1).find(|slot| choices.0[*slot].0 == 8 << 32 | 1), None);
        assert_eq!(choices.bytes().len(), CHOICES_MAX * 16);
    }
}
