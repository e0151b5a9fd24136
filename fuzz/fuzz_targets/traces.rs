#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rtrace_fuzz::traces::run(bytes));
