//! The terminal: who does what, and a sentence into the right ear (faces.md, section 2).
//!
//! A pure [`update`](update::update) and a pure [`draw`](draw::draw), and a thin loop around them that waits. It is a
//! client of the interface, also in the process that carries the session: it decides nothing about messages.

pub mod changes;
pub mod composer;
pub mod draw;
mod editor;
pub mod effect;
pub mod keys;
pub mod layouts;
pub mod look;
pub mod older;
mod perform;
pub mod player;
pub mod run;
mod screen;
pub mod settings;
pub mod state;
pub mod update;
pub mod what_if;

pub use screen::give_back;
