//! The engine: it waits, and carries out what the rules decide.
pub mod ports;
