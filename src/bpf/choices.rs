//! The table of argument values that select a plan, a hash table with open addressing: each value is in one of the
//! first few slots from the one that its hash selects.
//!
//! It is the counterpart of `chosen` in `plan.h`. Reading constants is cheaper than a lookup in a BPF map, and the
//! table is small enough to fit into them.

/// `CHOICES_BITS`, `PROBES_MAX`
const CHOICES_BITS: u32 = 15;
const CHOICES_MAX: usize = 1 << CHOICES_BITS;
const PROBES_MAX: usize = 8;

/// `sizeof(struct choice)`: a key and the index of a plan, of 64 bits each.
const CHOICE_BYTES: usize = 16;

/// The bytes of the slots. A slot with the key 0 is free. Most traces use few slots, so the kernel provides memory for
/// few pages of these zeros.
#[derive(Debug)]
pub(super) struct Choices(Vec<u8>);

impl Default for Choices {
    fn default() -> Choices {
        Choices(vec![0; CHOICES_MAX * CHOICE_BYTES])
    }
}

impl Choices {
    /// Adds a value. Where all its slots are taken, calls with the value keep their plain plan.
    pub fn add(&mut self, chooser: u16, value: u32, place: u16) {
        let key = u64::from(chooser) << 32 | u64::from(value);
        if let Some(slot) = slots(key).find(|slot| self.number(*slot, 0) == 0) {
            let bytes = [key.to_ne_bytes(), u64::from(place).to_ne_bytes()];
            self.0[slot * CHOICE_BYTES..][..CHOICE_BYTES].copy_from_slice(bytes.as_flattened());
        }
    }

    /// Returns the plan that a value selects.
    #[cfg(test)]
    pub fn get(&self, chooser: u16, value: u32) -> Option<u16> {
        let key = u64::from(chooser) << 32 | u64::from(value);
        slots(key).find(|slot| self.number(*slot, 0) == key).map(|slot| self.number(slot, 1) as u16)
    }

    /// Returns the key of a slot (0) or the index of its plan (1).
    fn number(&self, slot: usize, at: usize) -> u64 {
        let begin = slot * CHOICE_BYTES + at * size_of::<u64>();
        u64::from_ne_bytes(std::array::from_fn(|byte| self.0[begin + byte]))
    }

    /// Returns the bytes of `choices`.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
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
            assert_eq!(choices.get(7, value), Some(value as u16));
        }
        assert_eq!(choices.get(8, 1), None);
        let bytes = choices.into_bytes();
        assert_eq!(bytes.len(), CHOICES_MAX * 16);
        let slots = bytes.chunks_exact(16).filter(|slot| slot[..8] != [0; 8]);
        assert_eq!(slots.count(), 100, "each value has a slot of its own");
    }
}
