//! A trace file from elsewhere: read without harm, and never taken for signed by an unknown key.
#![no_main]

use bodyguard_trace::{KeyList, verify_export};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(report) = verify_export(bytes, &KeyList::default()) {
        assert!(!report.ok, "no key is pinned, so nothing can hold");
    }
});
