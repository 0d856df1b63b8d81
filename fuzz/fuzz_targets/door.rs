//! A line at the agents' door: judged without harm, and what is passed on is one object without
//! duplicate keys.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &[u8]| {
    if let Some(passed) = bodyguard_mcp::judge_line(line) {
        let value = bodyguard_protocol::parse_strict(&passed).expect("what is passed on is strict JSON");
        assert_eq!(value["jsonrpc"], "2.0");
        assert_eq!(bodyguard_mcp::judge_line(&passed).as_deref(), Some(&passed[..]), "and is passed on again");
    }
});
