//! Has the linker do two things that it knows how to where we build, or not: each is tried before it is asked for.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::{env, fs};

/// What is tried.
const TRIED: [&str; 2] = [
    // What the loader relocates is packed (`DT_RELR`): 1.4 MB less of a file that it reads all of. A linker that
    // doesn't know it warns or fails; a glibc before 2.36 doesn't start what has it.
    "-Wl,-z,pack-relative-relocs",
    // Functions of the same code are one: 0.4 MB less. Rust promises no function an address of its own, and
    // Microsoft's linker does it unasked. GNU's doesn't know it.
    "-Wl,--icf=all",
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|set| set == value);
    // Only a program of this machine can be tried.
    let can_be_tried = env::var_os("HOST") == env::var_os("TARGET")
        && is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu");
    if is("PROFILE", "release") && can_be_tried {
        for flag in TRIED.into_iter().filter(|flag| works(flag) == Some(true)) {
            println!("cargo::rustc-link-arg-bins={flag}");
        }
    }
}

/// Whether a program that is linked so can be built here, and starts.
fn works(flag: &str) -> Option<bool> {
    let folder = PathBuf::from(env::var_os("OUT_DIR")?);
    let (source, program) = (folder.join("tried.rs"), folder.join("tried"));
    fs::write(&source, "fn main() {}").ok()?;
    let mut rustc = Command::new(env::var_os("RUSTC")?);
    rustc.arg("--edition=2024").arg(&source).arg("-o").arg(&program);
    rustc.arg("-C").arg(format!("link-arg={flag}"));
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.arg("-C").arg(format!("linker={linker}"));
    }
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    rustc.args(flags.split('\x1f').filter(|flag| !flag.is_empty()));
    Some(succeeds(&mut rustc)? && succeeds(&mut Command::new(program))?)
}

fn succeeds(command: &mut Command) -> Option<bool> {
    let silent = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    silent.status().ok().map(|ended| ended.success())
}
