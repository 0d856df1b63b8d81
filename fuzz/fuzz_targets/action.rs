//! An action as an agent sends it: what is accepted is canonical, and stays itself.
#![no_main]

use bodyguard_protocol::{TypedAction, action::ActRequest, parse_strict};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let Ok(value) = parse_strict(text) else { return };
    let Ok(request) = ActRequest::parse(&value) else { return };
    let written = serde_json::to_value(&request.action).expect("an action can be written");
    let read: TypedAction = serde_json::from_value(written.clone()).expect("and read");
    assert_eq!(read, request.action);
    assert_eq!(read.digest().ok(), request.action.digest().ok());
    let again = ActRequest::parse(&written).expect("its canonical form is an action");
    assert_eq!(again.action, request.action);
});
