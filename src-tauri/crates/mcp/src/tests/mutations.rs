//! Whatever comes, the next valid call is answered.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;

use super::scripted::{House, session_of};
use super::wire::{Wire, call, initialize};

fn seeds() -> Vec<Vec<u8>> {
    let session = session_of("alice");
    let action = json!({"type": "file_read", "target": "/w/a", "params": {"limit": 5}});
    [
        initialize(5),
        json!({"jsonrpc": "2.0", "id": 5, "method": "tools/list"}),
        call(5, "body_os_ensure_session", json!({"workspace": "w"})),
        call(5, "body_os_perceive", json!({"session_id": session, "mode": "git", "depth": 3})),
        call(5, "body_os_act", json!({"session_id": session, "action": action, "wait_ms": 0})),
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}),
    ]
    .iter()
    .map(|message| message.to_string().into_bytes())
    .collect()
}

#[derive(Debug, Clone)]
enum Change {
    Flip(usize, u8),
    Cut(usize),
    Insert(usize, Vec<u8>),
    Repeat(usize, usize),
}

const PIECES: &[&[u8]] = &[
    b"\"id\":5,",
    b"{",
    b"}",
    b"[",
    b"\\u0000",
    b"1e999",
    b"null",
    b"\r\n",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\"__proto__\":{},",
    b"-0",
    b"\"",
];

fn change() -> impl Strategy<Value = Change> {
    let piece = prop_oneof![
        proptest::collection::vec(any::<u8>(), 1..8),
        proptest::sample::select(PIECES).prop_map(<[u8]>::to_vec),
    ];
    prop_oneof![
        (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Change::Flip(at, byte)),
        any::<usize>().prop_map(Change::Cut),
        (any::<usize>(), piece).prop_map(|(at, piece)| Change::Insert(at, piece)),
        (any::<usize>(), 1_usize..40).prop_map(|(at, len)| Change::Repeat(at, len)),
    ]
}

fn apply(text: &mut Vec<u8>, change: &Change) {
    let place = |at: usize, text: &[u8]| at % (text.len() + 1);
    match change {
        Change::Flip(at, byte) => {
            if !text.is_empty() {
                let at = at % text.len();
                text[at] = *byte;
            }
        }
        Change::Cut(at) => text.truncate(place(*at, text)),
        Change::Insert(at, piece) => {
            let at = place(*at, text);
            text.splice(at..at, piece.iter().copied());
        }
        Change::Repeat(at, len) => {
            let at = place(*at, text);
            let piece = text[at..(at + len).min(text.len())].to_vec();
            text.splice(at..at, piece);
        }
    }
}

#[test]
fn mutated_messages_never_end_the_connection() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (house, wire) = runtime.block_on(async {
        let house = House::new().await;
        let wire = Wire::ready(&house).await;
        (house, wire)
    });
    let wire = tokio::sync::Mutex::new(wire);
    let marker = std::cell::Cell::new(1_000_000_u64);
    let lines =
        proptest::collection::vec((proptest::sample::select(seeds()), proptest::collection::vec(change(), 0..5)), 1..6);
    let mut runner = TestRunner::new(Config { cases: 400, failure_persistence: None, ..Config::default() });
    runner
        .run(&lines, |lines| {
            let id = marker.get() + 1;
            marker.set(id);
            runtime.block_on(async {
                let mut wire = wire.lock().await;
                for (mut text, changes) in lines {
                    changes.iter().for_each(|change| apply(&mut text, change));
                    text.push(b'\n');
                    wire.raw(&text).await;
                }
                wire.send(&call(id, "body_os_encode_state", json!({"session_id": session_of("alice")}))).await;
                loop {
                    let answer = wire.next().await;
                    assert_eq!(answer["jsonrpc"], "2.0");
                    if answer["id"] == id {
                        assert_eq!(answer["result"]["isError"], false);
                        break;
                    }
                }
            });
            Ok(())
        })
        .unwrap();
    drop(house);
}
