//! Encodes the settings as constants of the BPF programs, in the layout of `plan.h`.

use super::call_plan::{
    CLONES, CallPlan, EXECUTES, EXIT_MATTERS, NEVER_RETURNS, PLAN_BYTES, RECORDS_ENTRY, RETURNS_INT, SIGRETURN, WANTED,
};
use super::capture::{Capture, CaptureBuilder, STRING_MAX};
use super::choices::Choices;
use super::links::Links;
use super::request_plan;
use super::settings::{NR_COUNT, Seed, Settings, TaskScope};
use super::stacks::Kinds;
use crate::beauty::lookup;
use crate::beauty::resolve::Signature;
use crate::beauty::row::{Return, Syscall, Variant};
use crate::beauty::tables::SYSCALLS;
use crate::event::Abi;
use crate::kernel::machine::possible_cpus;
use crate::kernel::procfs;
use crate::syscall::special::Special;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// `PLANS_MAX`: the number of different plans.
const PLANS_MAX: usize = 1024;

impl Seed {
    /// Returns the key of the map `seeds`.
    pub(super) fn key(self) -> u64 {
        match self {
            Seed::Task(tid) => u64::from(tid as u32),
            Seed::Process(pid) => u64::from(pid as u32) | 1 << 32,
        }
    }
}

/// `enum hooks`: the tracepoints that the programs on calls are attached to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum HookSet {
    AllCalls = 0,
    OwnEvents = 1,
    /// The tracepoints of all calls, for the calls that have no `syscalls:` events.
    Compat = 2,
}

impl Settings {
    /// Returns the bytes of `struct settings`.
    pub(super) fn bytes(&self, on: HookSet) -> Vec<u8> {
        let scope = match self.scope {
            TaskScope::Tasks => 0u32,
            TaskScope::Everyone => 1,
            TaskScope::Cgroup(_) => 2,
            TaskScope::User(_) => 3,
        };
        let of_user = if let TaskScope::User(uid) = self.scope { uid } else { 0 };
        let (user, group) = self.own_only.unwrap_or((of_user, 0));
        let sigreturn = self.unknown || self.calls.iter().any(|row| row.does == Special::SigReturn);
        let (inherit, ends, sums) = (self.inherit.into(), self.ends.into(), self.sums.into());
        let words = [scope, inherit, ends, self.pending_after, sigreturn.into(), self.string_limit as u32, sums];
        let cpus = if self.stacks.kinds.is_empty() { 0 } else { possible_cpus() };
        let choosing = [on as u32, self.failures.into(), user, (!self.filters.is_empty()).into(), cpus];
        let mut bytes: Vec<u8> = words.iter().chain(&choosing).flat_map(|word| word.to_ne_bytes()).collect();
        bytes.extend(self.min_duration.unwrap_or_default().to_ne_bytes());
        let struct_limit = self.struct_limit.min(STRING_MAX as usize) as u32;
        let last = [
            u32::from(!procfs::is_in_initial_pid_namespace()),
            self.own_only.is_some().into(),
            group,
            struct_limit,
            self.entries.is_any().into(),
            self.directories.into(),
            self.sends_signals.into(),
            self.effects.is_some().into(),
            self.epoch_bytes.unwrap_or_default(),
            if self.conditions.is_empty() { 0 } else { self.kind_of_matches() * possible_cpus() },
        ];
        bytes.extend(last.iter().flat_map(|word| word.to_ne_bytes()));
        bytes
    }

    /// Returns the kind of the records that report matches, behind those with and without stacks.
    pub(super) fn kind_of_matches(&self) -> u32 {
        self.stacks.kinds.len() as u32 + 1
    }

    /// Returns the constants that describe the calls to the programs.
    pub(super) fn constants(&self) -> Constants {
        let mut wanted = vec![false; SYSCALLS.len()];
        self.calls.iter().filter_map(|call| lookup::index_by_name(call.name)).for_each(|row| wanted[usize::from(row)] = true);
        let mut writer = Writer { string_limit: self.string_limit, full: self.full, ..Writer::new() };
        for (at, (abi, nr)) in Abi::ALL.into_iter().flat_map(|abi| (0..NR_COUNT as u32).map(move |nr| (abi, nr))).enumerate() {
            let row = lookup::index(abi, i64::from(nr));
            let entry = if self.entries.contains(row) { RECORDS_ENTRY } else { 0 };
            let flags = row.map_or(0, |row| flags_of(&SYSCALLS[usize::from(row)])) | entry;
            let place = match row.map(usize::from) {
                Some(row) if wanted[row] && !self.sums => writer.row(row, abi, flags | WANTED, self.stacks.of_row(row as u16)),
                Some(row) if wanted[row] => writer.plan(CallPlan::of_flags(flags | WANTED)),
                None if self.wants_without_row(abi, nr) => writer.plan(CallPlan::of_flags(flags | WANTED).with(self.stacks.nameless)),
                _ => writer.plan(CallPlan::of_flags(flags)),
            };
            writer.put_place(at, place);
        }
        let entry = if self.entries.contains(None) { RECORDS_ENTRY } else { 0 };
        let other =
            writer.plan(if self.unknown { CallPlan::of_flags(WANTED | entry).with(self.stacks.nameless) } else { CallPlan::of_flags(0) });
        writer.put_place(Abi::ALL.len() * NR_COUNT, other);
        let signals = writer.plan(CallPlan::of_flags(0).with(self.stacks.signals));
        writer.put_place(Abi::ALL.len() * NR_COUNT + 1, signals);
        let requests = self.requests.opcodes.iter().flat_map(|opcode| writer.request(*opcode)).collect();
        Constants { requests: request_plan::bytes(requests), ..writer.finish() }
    }

    fn wants_without_row(&self, abi: Abi, nr: u32) -> bool {
        let has_name = lookup::other_name(abi, i64::from(nr)).is_some();
        if has_name { self.others.contains(&(abi, nr)) } else { self.unknown }
    }
}

/// The bytes of the programs' constants.
#[derive(Debug)]
pub(super) struct Constants {
    /// The index of the plan of each number in each ABI, and of all other numbers.
    pub places: Vec<u8>,
    /// `struct plan` of each index, in the order of the indices. The first is that of calls that are not traced.
    pub plans: Vec<u8>,
    /// The slots of the hash table `choices`: `struct choice` of each.
    pub choices: Vec<u8>,
    /// `struct link` of each index, to which the operations in `plans` refer.
    pub links: Vec<u8>,
    /// `struct request_plan` of each opcode.
    pub requests: Vec<u8>,
}

pub(super) struct Writer {
    string_limit: usize,
    full: bool,
    places: Vec<u8>,
    plans: Vec<u8>,
    known: HashMap<CallPlan, u16>,
    choices: Choices,
    /// The numbers of the choosers, by the values of each and the plans that these select.
    choosers: HashMap<Vec<(u32, u16)>, u16>,
    links: Links,
}

impl Writer {
    fn new() -> Writer {
        let places = vec![0; (Abi::ALL.len() * NR_COUNT + 2) * 2];
        let mut writer = Writer {
            string_limit: 0,
            full: false,
            places,
            plans: Vec::new(),
            known: HashMap::new(),
            choices: Choices::default(),
            choosers: HashMap::new(),
            links: Links::default(),
        };
        // Plan 0 is that of calls that are not traced.
        writer.plan(CallPlan::of_flags(0));
        writer
    }

    /// Returns the index of a plan; equal plans have the same index.
    pub(super) fn plan(&mut self, plan: CallPlan) -> u16 {
        let next = self.known.len() as u16;
        let place = *self.known.entry(plan).or_insert(next);
        if place == next {
            self.plans.extend(plan.0);
        }
        place
    }

    /// Returns the index of the plan of a row's calls.
    fn row(&mut self, index: usize, abi: Abi, flags: u16, stacks: Kinds) -> u16 {
        let row = &SYSCALLS[index];
        let plan = self.chosen(row.signature(), row.variants, &|writer: &mut Writer, signature: Signature| {
            CallPlan::new(flags, &writer.capture(signature, abi)).with(stacks)
        });
        self.plan(plan)
    }

    /// Returns the plan of the calls of a row or of one of its variants. The plan has a chooser that selects the plans
    /// of its own variants.
    pub(super) fn chosen(
        &mut self,
        signature: Signature,
        variants: &'static [Variant],
        of_signature: &dyn Fn(&mut Writer, Signature) -> CallPlan,
    ) -> CallPlan {
        let mut plan = of_signature(self, signature);
        let mut places = Vec::new();
        for variant in variants {
            let own = self.chosen(variant.signature(), variant.variants, of_signature);
            // Most variants copy what their row copies, and need no plan. Those that compare fewer bits have none.
            if own != plan && variant.mask == variants[0].mask {
                let place = self.plan(own);
                places.extend(variant.values.iter().map(|value| (*value as u32, place)));
            }
        }
        if let Some(first) = variants.first().filter(|_| !places.is_empty()) {
            // All variants of a row are selected by the same bits of the same argument.
            let chooser = self.chooser(places);
            plan.choose(chooser, first.arg, first.mask as u32);
        }
        plan
    }

    /// Returns the number of the chooser that selects these plans by these values; equal choosers have the same number.
    fn chooser(&mut self, places: Vec<(u32, u16)>) -> u16 {
        // 0 means that there is no chooser.
        let next = self.choosers.len() as u16 + 1;
        match self.choosers.entry(places) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                new.key().iter().for_each(|(value, place)| self.choices.add(next, *value, *place));
                *new.insert(next)
            }
        }
    }

    pub(super) fn capture(&mut self, signature: Signature, abi: Abi) -> Capture {
        CaptureBuilder { abi, string_limit: self.string_limit, full: self.full, links: &mut self.links }.capture(signature)
    }

    fn put_place(&mut self, at: usize, place: u16) {
        self.places[at * 2..at * 2 + 2].copy_from_slice(&place.to_ne_bytes());
    }

    fn finish(mut self) -> Constants {
        self.plans.resize(PLANS_MAX * PLAN_BYTES, 0);
        Constants {
            places: self.places,
            plans: self.plans,
            choices: self.choices.into_bytes(),
            links: self.links.bytes(),
            requests: Vec::new(),
        }
    }
}

/// Returns the flags of a call that do not depend on whether it is traced.
fn flags_of(row: &Syscall) -> u16 {
    let returns = if matches!(row.returns, Return::Int32) { RETURNS_INT } else { 0 };
    returns
        | match row.does {
            // An execveat that changes the ABI returns under the number of execve.
            Special::Execve | Special::Execveat => EXECUTES | EXIT_MATTERS,
            Special::Clone => CLONES,
            Special::Exit | Special::ExitGroup => NEVER_RETURNS,
            Special::SigReturn => SIGRETURN,
            _ => 0,
        }
}

#[cfg(test)]
mod tests {
    use super::super::call_plan::{OPENS, OPS_AT, WORKS_AT_EXIT};
    use super::super::links::{LINK_BYTES, LINKS_MAX};
    use super::*;
    use crate::bpf::{Entries, Hooks};

    /// `CHOOSERS_MAX` of `plan.h`.
    const CHOOSERS_MAX: usize = 3;

    fn settings(calls: Vec<&'static Syscall>, unknown: bool) -> Settings {
        let (scope, hooks) = (TaskScope::Tasks, Hooks::All);
        let given = Settings { scope, hooks, seeds_max: 1, inherit: true, ends: true, pending_after: 5, ..Settings::default() };
        Settings { calls, unknown, string_limit: 32, struct_limit: 4096, ..given }
    }

    fn row(name: &str) -> &'static Syscall {
        &SYSCALLS[usize::from(lookup::index_by_name(name).unwrap())]
    }

    /// Returns a plan's flags, number of operations, descriptor arguments, and whether an argument selects other plans.
    fn plan(constants: &Constants, at: usize) -> (u16, u8, u8, bool) {
        let place = usize::from(u16::from_ne_bytes([constants.places[at * 2], constants.places[at * 2 + 1]]));
        let plan = &constants.plans[place * PLAN_BYTES..][..PLAN_BYTES];
        (u16::from_ne_bytes([plan[0], plan[1]]), plan[2], plan[3], plan[4..6] != [0, 0])
    }

    fn of(constants: &Constants, abi: Abi, nr: usize) -> (u16, u8, u8, bool) {
        plan(constants, abi as usize * NR_COUNT + nr)
    }

    const OTHER: usize = 4 * NR_COUNT;

    #[test]
    fn only_selected_calls_are_traced_in_every_abi() {
        let constants = settings(vec![row("openat"), row("close")], false).constants();
        assert_eq!(of(&constants, Abi::X86_64, 257), (WANTED | OPENS | WORKS_AT_EXIT, 1, 1, false));
        assert_eq!(of(&constants, Abi::I386, 295), (WANTED | OPENS | WORKS_AT_EXIT, 1, 1, false));
        assert_eq!(of(&constants, Abi::X86_64, 3), (WANTED, 0, 1, false));
        assert_eq!(of(&constants, Abi::X86_64, 0), (0, 0, 0, false));
        assert_eq!(constants.places[..2], [0, 0], "plan 0 is that of calls that are not traced");
        assert_eq!(of(&constants, Abi::X86_64, 59).0, EXECUTES | EXIT_MATTERS, "its exit may be that of an execveat");
        assert_eq!((of(&constants, Abi::X86_64, NR_COUNT - 1).0, plan(&constants, OTHER).0), (0, 0));
    }

    #[test]
    fn numbers_without_a_name_are_traced_if_all_calls_are() {
        let all_but_read = SYSCALLS.iter().filter(|row| row.name != "read").collect();
        let constants = settings(all_but_read, true).constants();
        assert_eq!(of(&constants, Abi::X86_64, 0).0 & WANTED, 0, "read was excluded");
        assert_eq!(of(&constants, Abi::X86_64, NR_COUNT - 1).0, WANTED);
        assert_eq!(of(&constants, Abi::X86_64, 60).0, WANTED | NEVER_RETURNS);
        assert_eq!(plan(&constants, OTHER).0, WANTED);
    }

    #[test]
    fn values_of_an_argument_select_plans() {
        let constants = settings(vec![row("fcntl"), row("setsockopt")], false).constants();
        assert_eq!(of(&constants, Abi::X86_64, 72), (WANTED, 0, 1, true), "the command selects the other operations");
        let [whole, slots] = [constants.choices.len() / 16, constants.choices.chunks_exact(16).filter(|slot| slot[..8] != [0; 8]).count()];
        assert!(slots > 20 && slots < whole / 2, "{slots} of {whole}");
    }

    /// Returns the operations of the plan that the registers select, as `chosen_place` of `select.h` does.
    fn operations(constants: &Constants, abi: Abi, nr: usize, registers: [u32; 6]) -> Vec<u8> {
        let at = abi as usize * NR_COUNT + nr;
        let mut place = u16::from_ne_bytes([constants.places[at * 2], constants.places[at * 2 + 1]]);
        for _ in 0..CHOOSERS_MAX {
            let plan = &constants.plans[usize::from(place) * PLAN_BYTES..][..PLAN_BYTES];
            let chooser = u16::from_ne_bytes([plan[4], plan[5]]);
            let mask = u32::from_ne_bytes([plan[8], plan[9], plan[10], plan[11]]);
            let key = u64::from(chooser) << 32 | u64::from(registers[usize::from(plan[6])] & mask);
            let slot = constants.choices.chunks_exact(16).find(|slot| chooser != 0 && slot[..8] == key.to_ne_bytes());
            let Some(slot) = slot else { break };
            place = u64::from_ne_bytes(std::array::from_fn(|at| slot[8 + at])) as u16;
        }
        constants.plans[usize::from(place) * PLAN_BYTES..][OPS_AT..PLAN_BYTES].to_vec()
    }

    #[test]
    fn the_plans_of_all_calls_and_their_variants_fit() {
        let mut writer = Writer { string_limit: 512, ..Writer::new() };
        for (abi, row) in Abi::ALL.into_iter().flat_map(|abi| (0..SYSCALLS.len()).map(move |row| (abi, row))) {
            writer.row(row, abi, WANTED, Kinds::default());
        }
        assert!(writer.known.len() <= PLANS_MAX, "{} plans", writer.known.len());
        let values = writer.choosers.iter().flat_map(|(places, chooser)| places.iter().map(move |place| (*chooser, *place)));
        let missing: Vec<_> = values.filter(|(chooser, (value, place))| writer.choices.get(*chooser, *value) != Some(*place)).collect();
        assert!(missing.is_empty(), "these values have no place: {missing:x?}");
    }

    #[test]
    fn several_arguments_select_the_plans_of_their_variants() {
        let constants = settings(vec![row("setsockopt"), row("getsockopt")], false).constants();
        for abi in Abi::ALL {
            for name in ["setsockopt", "getsockopt"] {
                let row = row(name);
                let Some(number) = row.numbers[abi as usize] else { continue };
                let options = [(1, 13), (1, 25), (6, 13), (6, 11), (0, 42), (41, 46), (263, 5), (0x7777, 13)];
                for (level, option) in options {
                    let registers = [3, level, option, 0x1000, 4, 0];
                    let mut writer = Writer { string_limit: 32, ..Writer::new() };
                    let capture = writer.capture(row.signature_of(&registers.map(u64::from)), abi);
                    let expected = CallPlan::new(WANTED, &capture).0[OPS_AT..].to_vec();
                    let found = operations(&constants, abi, number as usize, registers);
                    assert_eq!(found, expected, "{name} {abi:?} {level} {option}");
                }
            }
        }
    }

    #[test]
    fn the_programs_follow_as_many_choosers_as_a_row_may_have() {
        fn depth(variants: &[Variant]) -> usize {
            variants.iter().map(|variant| 1 + depth(variant.variants)).max().unwrap_or_default()
        }
        let deepest = SYSCALLS.iter().map(|row| depth(row.variants)).max();
        assert!(deepest.is_some_and(|deepest| deepest > 1 && deepest <= CHOOSERS_MAX), "{deepest:?}");
        assert!(include_str!("plan.h").contains(&format!("#define CHOOSERS_MAX {CHOOSERS_MAX}\n")));
    }

    #[test]
    fn plans_of_all_calls_fit_into_the_constants() {
        let constants = settings(SYSCALLS.iter().collect(), true).constants();
        assert_eq!(constants.plans.len(), PLANS_MAX * PLAN_BYTES);
        let plans = constants.plans.chunks_exact(PLAN_BYTES).filter(|plan| plan.iter().any(|byte| *byte != 0)).count();
        assert!(plans < PLANS_MAX * 9 / 10, "{plans}");
        let slots = constants.choices.chunks_exact(16).filter(|slot| slot[..8] != [0; 8]).count();
        assert_eq!(slots, choosing_values(), "every value has a slot");
        assert!(slots < constants.choices.len() / 16 / 2, "{slots}");
        let links = constants.links.chunks_exact(LINK_BYTES).filter(|link| link.iter().any(|byte| *byte != 0)).count();
        assert!(links > 0 && links < LINKS_MAX, "{links}");
    }

    /// Plans of calls with and without a record of the entry differ, so there are most of them if some calls have one.
    #[test]
    fn plans_of_calls_some_of_which_record_their_entry_fit_into_the_constants() {
        let entries = Entries { rows: (0..SYSCALLS.len() as u16).filter(|row| row % 2 == 0).collect(), nameless: false };
        let constants = Settings { entries, ..settings(SYSCALLS.iter().collect(), true) }.constants();
        assert_eq!(constants.plans.len(), PLANS_MAX * PLAN_BYTES);
        let records_entry = |plan: &[u8]| u16::from_ne_bytes([plan[0], plan[1]]) & (RECORDS_ENTRY | WANTED) == RECORDS_ENTRY | WANTED;
        let of = |row: usize| {
            let nr = SYSCALLS[row].numbers[Abi::X86_64 as usize]? as usize;
            let place = u16::from_ne_bytes([constants.places[nr * 2], constants.places[nr * 2 + 1]]);
            Some(&constants.plans[usize::from(place) * PLAN_BYTES..][..PLAN_BYTES])
        };
        for (row, syscall) in SYSCALLS.iter().enumerate() {
            assert!(of(row).is_none_or(|plan| records_entry(plan) == (row % 2 == 0)), "{}", syscall.name);
        }
    }

    /// Counts the values of the choosers of all calls.
    fn choosing_values() -> usize {
        let settings = settings(SYSCALLS.iter().collect(), true);
        let mut writer = Writer { string_limit: settings.string_limit, ..Writer::new() };
        for (row, abi) in SYSCALLS.iter().enumerate().flat_map(|(at, _)| Abi::ALL.map(|abi| (at, abi))) {
            if SYSCALLS[row].numbers[abi as usize].is_some() {
                writer.row(row, abi, flags_of(&SYSCALLS[row]) | WANTED, settings.stacks.of_row(row as u16));
            }
        }
        writer.choosers.keys().map(Vec::len).sum()
    }

    #[test]
    fn aggregated_calls_have_no_operations() {
        let constants = Settings { sums: true, ..settings(vec![row("openat"), row("fcntl"), row("exit")], true) }.constants();
        assert_eq!(of(&constants, Abi::X86_64, 257), (WANTED, 0, 0, false));
        assert_eq!(of(&constants, Abi::X86_64, 72), (WANTED, 0, 0, false));
        assert_eq!(of(&constants, Abi::X86_64, 60), (WANTED | NEVER_RETURNS, 0, 0, false));
        assert_eq!(of(&constants, Abi::X86_64, 3), (0, 0, 0, false));
    }

    #[test]
    fn a_traced_rt_sigreturn_is_in_the_settings() {
        let at = |calls| settings(calls, false).bytes(HookSet::AllCalls)[16];
        assert_eq!((at(vec![row("read")]), at(vec![row("read"), row("rt_sigreturn")])), (0, 1));
    }
}
