//! What the tests of the whole share: where the checkout is, and the real binary. It tests
//! nothing itself.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The root of the checkout.
///
/// # Panics
/// Never: the manifest of this package lies one folder below it.
pub fn root() -> &'static Path {
    match Path::new(env!("CARGO_MANIFEST_DIR")).parent() {
        Some(root) => root,
        None => unreachable!("tests/Cargo.toml has a folder above it"),
    }
}

/// The real `midturn` binary, in the target folder and the profile of the test that asks. cargo
/// builds it once per test process, so it is never older than the sources; `MIDTURN_BIN` names
/// another one that is taken as it is.
///
/// # Panics
/// It can't be built: the compiler's own messages are above.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| match std::env::var_os("MIDTURN_BIN") {
        Some(given) => PathBuf::from(given),
        None => build(),
    })
}

fn build() -> PathBuf {
    let folder = profile_folder();
    let (Some(profile), Some(target)) = (folder.file_name(), folder.parent()) else {
        panic!("{} is not a folder of a target folder", folder.display());
    };
    // What cargo calls `dev` lies in `debug`.
    let profile = if profile == "debug" { "dev".as_ref() } else { profile };
    let built = clean_cargo()
        .current_dir(root())
        // With a test beside it the features are those of `cargo test --workspace`: after that
        // there is nothing left to compile, while `--package midturn` would begin anew.
        .args(["build", "--quiet", "--workspace", "--bin", "midturn", "--test", "tidy"])
        .arg("--target-dir")
        .arg(target)
        .arg("--profile")
        .arg(profile)
        .status();
    match built {
        Ok(status) if status.success() => folder.join("midturn"),
        Ok(status) => panic!("cargo build --bin midturn ended with {status}"),
        Err(error) => panic!("cargo can't be started: {error}"),
    }
}

/// cargo, without what the cargo that runs the test has said of the test's package: build scripts (ring's)
/// look at it, and half of what is there would be compiled again, each time that another package asks.
fn clean_cargo() -> Command {
    let mut command = Command::new(cargo());
    let of_the_package = |name: &OsStr| {
        name.to_str()
            .is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
    };
    for (name, _) in std::env::vars_os().filter(|(name, _)| of_the_package(name)) {
        command.env_remove(name);
    }
    command
}

/// `target/PROFILE`: a test program lies in its `deps`.
fn profile_folder() -> PathBuf {
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => panic!("this program doesn't know where it lies: {error}"),
    };
    match program.ancestors().nth(2) {
        Some(folder) => folder.to_owned(),
        None => panic!("{} is in no target folder", program.display()),
    }
}

/// The cargo that runs the tests; the one on the path when a test program is run by hand.
pub fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_does_not_depend_on_the_package_that_asks() {
        let command = clean_cargo();
        let removed = |name: &str| command.get_envs().any(|(key, value)| key == name && value.is_none());
        assert!(removed("CARGO_MANIFEST_DIR") && removed("CARGO_PKG_NAME"), "{command:?}");
        let kept = ["CARGO_HOME", "CARGO_INCREMENTAL", "CARGO_TERM_COLOR", "CARGO_TARGET_DIR"];
        assert!(kept.iter().all(|name| !removed(name)), "{command:?}");
    }
}
