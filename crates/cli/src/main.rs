//! The binary: everything is in the library, which other packages' tests can depend on.

use std::process::ExitCode;

fn main() -> ExitCode {
    midturn::main()
}
