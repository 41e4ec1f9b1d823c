//! What people read of a session (faces.md, section 1). Pure: no clock, no file, no terminal.
//!
//! [`fold`] is a session with its conversations, entry by entry. [`words`] has a line for each event that people wait for; [`clean`] makes inert what models, tools and
//! names say. Whoever shows a session to a person says it with these, so that the same thing is called the
//! same everywhere.

pub mod clean;
pub mod fold;
pub mod words;
