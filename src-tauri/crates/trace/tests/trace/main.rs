//! What the log promises, tested through its public interface and on its files.

mod crash;
mod export;
mod intents;
mod machine;
mod storage;
mod surprises;
mod tamper;
mod world;
