//! A picture as lines of text, for a terminal.
