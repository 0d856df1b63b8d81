//! The phrase on the decision bar, by which a person tells the real bar from a picture of one.

use bodyguard_trace::{ChangeNote, Log, LogError, SettingChange};

use crate::init::PHRASE;

const FIRST: [&str; 32] = [
    "amber", "brisk", "calm", "copper", "dusty", "early", "faint", "gentle", "golden", "green", "hidden", "hollow",
    "humble", "ivory", "jolly", "keen", "late", "little", "mellow", "misty", "narrow", "noble", "patient", "plain",
    "quiet", "rapid", "round", "silver", "steady", "tidy", "velvet", "winter",
];
const SECOND: [&str; 32] = [
    "anchor", "bridge", "candle", "cedar", "comet", "creek", "falcon", "garden", "harbour", "heron", "island",
    "kettle", "lantern", "maple", "meadow", "mill", "orchard", "otter", "paddle", "pebble", "pepper", "quarry",
    "ribbon", "river", "saddle", "sparrow", "thimble", "tunnel", "valley", "walnut", "willow", "window",
];

/// Chooses a phrase where the person hasn't chosen one yet.
pub(crate) async fn ensure(log: &Log) -> Result<(), LogError> {
    if log.reader().value(PHRASE).await?.is_some() {
        return Ok(());
    }
    let [first, second, ..] = crate::ask::nonce().unwrap_or_default();
    let word = |list: &[&str; 32], byte: u8| list[usize::from(byte) % 32].to_owned();
    let value = format!("{} {}", word(&FIRST, first), word(&SECOND, second));
    log.change(SettingChange::Value { key: PHRASE.into(), value }, ChangeNote::by("bodyguard")).await.map(drop)
}
