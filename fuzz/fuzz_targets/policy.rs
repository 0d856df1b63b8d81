//! A policy's text: read or refused with a place in it, and never a panic.
#![no_main]

use bodyguard_policy::Policy;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Err(error) = Policy::parse("fuzz.cedar", text) {
        assert!(error.line >= 1 && error.column >= 1, "{error}");
    }
});
