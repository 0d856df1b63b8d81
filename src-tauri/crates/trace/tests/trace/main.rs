//! What the log promises, tested through its public interface and on its files.

mod crash;
mod export;
mod intents;
mod machine;
mod storage;
mod tamper;
mod world;
