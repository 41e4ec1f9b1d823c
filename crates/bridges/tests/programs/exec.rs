//! `midturn-exec` alone, for this crate's tests. The real one is `midturn` itself under that name.

use std::process::ExitCode;

fn main() -> ExitCode {
    midturn_bridges::claude::exec::main().unwrap_or(ExitCode::FAILURE)
}
