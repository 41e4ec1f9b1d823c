//! The screen, drawn from the state and from nothing else.

pub mod call;
pub mod diff;
pub mod markdown;
mod table;
pub mod text;

#[cfg(test)]
mod tests;
