//! The tools themselves, one file each: what the model is told, the arguments, the work.

pub(crate) mod bash;
pub(crate) mod commit;
pub(crate) mod edit;
pub(crate) mod glob;
pub(crate) mod grep;
pub(crate) mod network;
mod on_files;
pub(crate) mod read;
mod search;
pub(crate) mod write;
