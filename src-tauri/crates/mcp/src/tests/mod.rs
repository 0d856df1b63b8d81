//! The doors from outside: real sockets, real HTTP, raw bytes, and the protocol library's client.

mod bridged;
mod http;
mod mutations;
mod real;
mod schemas;
mod scripted;
mod stdio;
mod waiting;
mod wire;
