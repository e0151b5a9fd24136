//! Values of arguments that choose a plan: a table of slots, each value in one of the first few behind where its hash points to.
//!
//! The mirror of `chosen` in `plan.h`. Constants are cheaper to look at than a map, and the table is small enough to have room in it.

/// `CHOICES_BITS`, `PROBES_MAX`
const CHOICES_BITS: u32 = 12;
const CHOICES_MAX: usize = 1 << CHOICES_BITS;
const PROBES_MAX: usize = 8;

/// The table: keys and places of plans.
#[derive(Debug)]
pub(super) struct Choices(Vec<(u64, u64)>);

impl Default for Choices {
    fn default() -> Choices {
        Choices(vec![(0, 0); CHOICES_MAX])
    }
}

impl Choices {
    /// Adds a value; where there is no room, the call has its plain plan.
    pub fn add(&mut self, chooser: u16, value: u32, place: u16) {
        let key = u64::from(chooser) << 32 | u64::from(value);
        if let Some(slot) = slots(key).find(|slot| self.0[*slot].0 == 0) {
            self.0[slot] = (key, place.into());
        }
    }

    /// The bytes of `choices`.
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
    fn a_value_is_in_the_first_free_slot_of_its_own() {
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
