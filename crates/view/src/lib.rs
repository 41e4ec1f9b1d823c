//! What people read of a session (faces.md, section 1). Pure: no clock, no file, no terminal.
//!
//! [`fold`] is a session with its conversations, entry by entry. [`words`] has a line for each event that people wait for, [`agents`] says what each
//! agent does, [`mail`] what becomes of a message, [`inbox`] what waits for a person, and [`figures`] how much and how long; [`clean`] makes
//! inert what models, tools and names say, and [`lines`] gives it as lines while it comes. [`patch`] is what was changed, [`review`] what
//! people say to a line of it. [`timeline`] is a picture of who did what when, and of each message; [`svg`] and [`strip`] draw it, and [`what_if`] says
//! what another one would have spared. Whoever shows a session to a person says it with these, so that the same thing is called the
//! same everywhere.

pub mod agents;
pub mod clean;
pub mod figures;
pub mod fold;
pub mod inbox;
pub mod lines;
pub mod mail;
pub mod patch;
pub mod review;
pub mod strip;
pub mod svg;
pub mod timeline;
pub mod what_if;
pub mod words;
