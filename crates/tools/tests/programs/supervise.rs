//! The supervisor alone, for this crate's tests. The real one is `midturn` itself, executed
//! again with the same hidden argument.

use std::process::ExitCode;

fn main() -> ExitCode {
    midturn_tools::process::supervise_main()
}
