//! What the BPF programs do to calls (`--inject`), as their constants: `struct effect` and `struct injection` in
//! inject.h.

use crate::inject::Rules;
use libc::SIGKILL;

/// `EFFECTS_MAX`: the number of effects for which the programs have room.
const EFFECTS_MAX: usize = 256;
/// `COUNTERS_MAX`: the number of calls that the programs can count.
const COUNTERS_MAX: usize = 1500;

/// What the programs do to calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effects {
    /// The effects, and the calls that have them.
    pub rules: Rules,
    /// The addresses of the kernel's functions of the calls that are answered, in ascending order.
    pub functions: Vec<u64>,
    /// The number of calls of the native ABI that are not answered, because this kernel was built without them.
    pub missing: usize,
}

impl Effects {
    /// Returns why the programs cannot carry out these rules, whatever the kernel offers; `None` if they can.
    pub fn why_not(rules: &Rules) -> Option<&'static str> {
        let counted = rules.calls.iter().filter(|call| is_counted(rules, call.2)).count();
        match () {
            () if rules.effects.iter().any(|effect| effect.delay.is_some()) => Some("BPF programs cannot delay a call (delay_enter=)"),
            () if rules.effects.iter().any(|effect| effect.signal == Some(SIGKILL)) => {
                Some("BPF programs cannot end a task before its call is executed (signal=KILL)")
            }
            () if rules.effects.len() > EFFECTS_MAX => Some("there are too many --inject for the BPF programs"),
            () if counted > COUNTERS_MAX => Some("when= has too many calls for the BPF programs"),
            () => None,
        }
    }
}

/// Returns whether the calls with this effect are counted.
fn is_counted(rules: &Rules, effect: u16) -> bool {
    rules.effects.get(usize::from(effect)).is_some_and(|effect| !effect.when.is_always())
}

#[cfg(feature = "bpf")]
pub(super) use bytes::EffectBytes;
#[cfg(all(test, feature = "bpf"))]
pub(super) use bytes::{EFFECT_BYTES, INJECTION_BYTES};

#[cfg(feature = "bpf")]
mod bytes {
    use super::{EFFECTS_MAX, Effects, is_counted};
    use crate::bpf::settings::NR_COUNT;
    use crate::event::Abi;
    use crate::request::inject::Effect;

    /// `sizeof(struct effect)`
    pub(in crate::bpf) const EFFECT_BYTES: usize = 16;
    /// `sizeof(struct injection)`
    pub(in crate::bpf) const INJECTION_BYTES: usize = 4;

    /// The bytes of the programs' constants.
    pub(in crate::bpf) struct EffectBytes {
        /// `struct effect` of each index.
        pub effects: Vec<u8>,
        /// `struct injection` of each number in each ABI.
        pub injections: Vec<u8>,
    }

    impl EffectBytes {
        /// Returns the constants for these effects; with none, no call is changed.
        pub fn of(effects: Option<&Effects>) -> EffectBytes {
            let mut bytes = EffectBytes {
                effects: vec![0; EFFECTS_MAX * EFFECT_BYTES],
                injections: vec![0; Abi::ALL.len() * NR_COUNT * INJECTION_BYTES],
            };
            let Some(Effects { rules, .. }) = effects else { return bytes };
            for (slot, effect) in bytes.effects.chunks_exact_mut(EFFECT_BYTES).zip(&rules.effects) {
                slot.copy_from_slice(&encoded(effect));
            }
            let mut counters = 0u16;
            for (abi, nr, effect) in &rules.calls {
                let counter = if is_counted(rules, *effect) {
                    counters += 1;
                    counters
                } else {
                    0
                };
                let at = (*abi as usize * NR_COUNT + *nr as usize) * INJECTION_BYTES;
                if let Some(slot) = bytes.injections.get_mut(at..at + INJECTION_BYTES).filter(|_| (*nr as usize) < NR_COUNT) {
                    slot[..2].copy_from_slice(&(effect + 1).to_ne_bytes());
                    slot[2..].copy_from_slice(&counter.to_ne_bytes());
                }
            }
            bytes
        }
    }

    fn encoded(effect: &Effect) -> [u8; EFFECT_BYTES] {
        let mut bytes = [0; EFFECT_BYTES];
        bytes[..8].copy_from_slice(&effect.returns.unwrap_or_default().to_ne_bytes());
        let when = effect.when;
        for (slot, number) in bytes[8..14].chunks_exact_mut(2).zip([when.first, when.last, when.step]) {
            slot.copy_from_slice(&number.to_ne_bytes());
        }
        bytes[14] = effect.returns.is_some().into();
        bytes[15] = effect.signal.unwrap_or_default() as u8;
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Abi;
    use crate::request::inject::{Effect, When};

    #[test]
    fn delays_and_too_many_rules_are_not_for_programs() {
        let answer = Effect { returns: Some(-2), when: When { first: 2, last: 2, step: 0 }, ..Effect::default() };
        let rules = |effects: Vec<Effect>, calls: u32| Rules { effects, calls: (0..calls).map(|nr| (Abi::X86_64, nr, 0)).collect() };
        assert_eq!(Effects::why_not(&rules(vec![answer], 1024)), None);
        let delay = Effect { delay: Some(1), ..answer };
        assert!(Effects::why_not(&rules(vec![answer, delay], 1)).unwrap().contains("delay_enter="));
        assert!(Effects::why_not(&rules(vec![Effect { signal: Some(9), ..answer }], 1)).unwrap().contains("signal=KILL"));
        assert!(Effects::why_not(&rules(vec![answer; 257], 1)).unwrap().contains("too many --inject"));
        assert!(Effects::why_not(&rules(vec![answer], 1501)).unwrap().contains("when="));
        assert_eq!(Effects::why_not(&rules(vec![Effect { when: When::default(), ..answer }], 3000)), None, "they are not counted");
    }

    #[cfg(feature = "bpf")]
    #[test]
    fn constants_have_the_effect_and_the_counter_of_each_call() {
        let counted = Effect { returns: Some(-2), signal: Some(10), when: When { first: 2, last: 5, step: 3 }, ..Effect::default() };
        let always = Effect { signal: Some(12), ..Effect::default() };
        let calls = vec![(Abi::X86_64, 3, 0), (Abi::X86_64, 4, 1), (Abi::I386, 3, 0)];
        let bytes =
            EffectBytes::of(Some(&Effects { rules: Rules { effects: vec![counted, always], calls }, functions: Vec::new(), missing: 0 }));
        assert_eq!(bytes.effects[..16], [&(-2i64).to_ne_bytes()[..], &[2, 0, 5, 0, 3, 0, 1, 10]].concat());
        assert_eq!(bytes.effects[16..32], [&[0; 8][..], &[1, 0, 255, 255, 1, 0, 0, 12]].concat());
        let slot = |at: usize| &bytes.injections[at * INJECTION_BYTES..][..INJECTION_BYTES];
        assert_eq!((slot(2), slot(3), slot(4), slot(1024 + 3)), (&[0; 4][..], &[1, 0, 1, 0][..], &[2, 0, 0, 0][..], &[1, 0, 2, 0][..]));
    }
}
