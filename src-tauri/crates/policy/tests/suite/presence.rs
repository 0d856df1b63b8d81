//! What shows a person and what doesn't.

use bodyguard_policy::{EnrolledDevices, EventKind, NativeEvent, Presence, PresenceRefused, PresenceRule};
use bodyguard_protocol::{ErrorCode, Fault};
use proptest::prelude::*;

use crate::common::{PERSON_DEVICE, ask, click, digest, enrolled};

fn code(event: &NativeEvent) -> Result<(), &'static str> {
    let witnessed = Presence::witness(&enrolled(), event, &ask('0'), &digest("shown"));
    witnessed.map(|_| ()).map_err(|refused| refused.code())
}

#[test]
fn apr_22_only_an_enrolled_device_shows_a_person() {
    assert_eq!(code(&click(Some(PERSON_DEVICE))), Ok(()));
    assert_eq!(code(&NativeEvent { kind: EventKind::Key, ..click(Some(PERSON_DEVICE)) }), Ok(()));
    let table = [
        (None, "no_device"),
        (Some(""), "no_device"),
        (Some("  "), "no_device"),
        (Some("XTEST"), "synthetic_event"),
        (Some("Virtual core XTEST pointer"), "synthetic_event"),
        (Some("Virtual core XTEST keyboard"), "synthetic_event"),
        (Some("other xtest pointer"), "synthetic_event"),
        (Some("Virtual core pointer"), "virtual_master"),
        (Some("Virtual core keyboard"), "virtual_master"),
        (Some("TigerVNC keyboard"), "device_not_enrolled"),
        (Some("tigervnc pointer"), "device_not_enrolled"),
        (Some("TigerVNC pointer "), "device_not_enrolled"),
    ];
    for (device, expected) in table {
        assert_eq!(code(&click(device)), Err(expected), "{device:?}");
    }
}

#[test]
fn a_sent_event_is_refused_even_from_an_enrolled_device() {
    assert_eq!(code(&NativeEvent { sent: true, ..click(Some(PERSON_DEVICE)) }), Err("sent_event"));
}

#[test]
fn injectors_cant_be_enrolled() {
    let names = ["Virtual core XTEST pointer", "Virtual core pointer", "XTEST", ""];
    let rule = EnrolledDevices::new(names.map(str::to_owned));
    assert_eq!(rule, EnrolledDevices::default());
    for name in names {
        assert!(EnrolledDevices::can_enrol(name).is_err(), "{name}");
        assert!(rule.admits(&click(Some(name))).is_err(), "{name}");
    }
}

#[test]
fn r17_the_rule_alone_says_what_is_a_presence() {
    struct Anything;
    impl PresenceRule for Anything {
        fn admits(&self, _: &NativeEvent) -> Result<String, PresenceRefused> {
            Ok("anything".into())
        }
    }
    let by = |rule: &dyn PresenceRule, device| {
        Presence::witness(rule, &click(device), &ask('0'), &digest("shown"))
            .map(|presence| presence.device().to_owned())
    };
    assert_eq!(by(&enrolled(), None), Err(PresenceRefused::NoDevice));
    assert!(by(&enrolled(), Some("XTEST")).is_err());
    assert_eq!(by(&enrolled(), Some(PERSON_DEVICE)).as_deref(), Ok(PERSON_DEVICE));
    // The control: without the rule each of them would be one.
    assert_eq!(by(&Anything, None).as_deref(), Ok("anything"));
    assert!(by(&Anything, Some("XTEST")).is_ok());
}

#[test]
fn dsp_01_a_device_name_is_escaped_in_messages() {
    let fault = Fault::from(enrolled().admits(&click(Some("mouse\n\u{202e}x"))).unwrap_err());
    assert_eq!(fault.code, ErrorCode::AuthorizationFailure);
    assert!(fault.message.contains("\\u{202e}") && !fault.message.contains('\n'), "{}", fault.message);
}

proptest! {
    #[test]
    fn no_name_with_an_injectors_mark_is_admitted(before in "[ -~]{0,8}", after in "[ -~]{0,8}", core: bool) {
        let name = format!("{before}{}{after}", if core { "Virtual core" } else { "XTEST" });
        prop_assert!(EnrolledDevices::new([name.clone()]).admits(&click(Some(&name))).is_err());
    }
}
