//! The command line of Midturn: arguments, configuration, and the wiring of the other crates.
//!
//! It decides nothing about messages: that is `midturn-core`'s. It is the only crate that
//! knows its siblings, the terminal, and exit statuses.
//!
//! Its one public item is [`main`], so that the compiler sees what nobody uses any more. Tests go
//! through the binary, or stand beside the code; the crash harness has `planted`, behind a feature.

mod afterwards;
mod agents;
mod args;
mod client;
mod commands;
mod config;
mod doctor;
mod env;
mod export;
mod failure;
mod files;
mod flat;
mod history;
mod hooks;
mod host;
mod joined;
mod log;
mod meanwhile;
mod models;
mod notify;
mod pictures;
#[cfg(feature = "crash-tests")]
pub mod planted;
mod prices;
mod project;
mod replay;
mod run;
mod screen;
mod secrets;
mod telemetry;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command, SessionsArgs, SessionsCommand};
use env::Env;
use failure::{End, Failure};
use midturn_bridges::claude::{exec, hook};
use midturn_tools::process::{SUPERVISE, supervise_main};

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    // It is started for every command of a Claude Code that has us installed: nothing comes before it.
    if let Some(end) = exec::main() {
        return end;
    }
    let mut words = std::env::args_os().skip(1);
    match words.next() {
        // Before anything else: this process may be the supervisor of a command, started by our tools.
        Some(word) if word == SUPERVISE => return supervise_main(),
        // Or a hook, which holds up the session of the program that has started it.
        Some(word) if word == "hook" => return hook::main(&words.collect::<Vec<_>>()),
        _ => {}
    }
    // clap leaves by itself with status 2 on bad arguments and 0 on `--help`.
    let cli = Cli::parse();
    log::start();
    let env = Env::of_process();
    match secrets::hide(secrets::of_environment(&env)).and_then(|()| dispatch(cli.command, &env)) {
        Ok(end) => end.into(),
        Err(failure) => {
            eprintln!("midturn: {}", secrets::clean(&failure.to_string()));
            failure.end().into()
        }
    }
}

fn dispatch(command: Command, env: &Env) -> Result<End, Failure> {
    match command {
        Command::Run(args) => project::recover(&args.work, env).and_then(|()| run::run(&args, env)),
        Command::Serve(args) => project::recover(&args.work, env).and_then(|()| host::serve(&args, env)),
        Command::Resume(args) => project::recover(&args.work, env).and_then(|()| host::resume(&args, env)),
        Command::Export(args) => export::export(&args, env),
        Command::Sessions(SessionsArgs { command: Some(SessionsCommand::Rm(args)), .. }) => {
            afterwards::remove(&args, env)
        }
        Command::Sessions(args) => history::sessions(&args, env),
        Command::Prune(args) => afterwards::prune(&args, env),
        Command::Log(args) => history::log(&args, env),
        Command::Undo(args) => history::undo(&args, env),
        Command::Show(args) => history::conversation(&args, env),
        Command::Client(command) => client::run(&command, env),
        Command::Hooks(args) => hooks::hooks(&args, env),
        Command::Replay(args) => replay::replay(&args, env),
        Command::Schema { format } => commands::schema(format),
        Command::Models(args) => models::models(&args, env),
        Command::Init(args) => commands::init(&args, env),
        Command::Config(args) => commands::config(&args, env),
        Command::Doctor(args) => doctor::doctor(&args, env),
        Command::Completions { shell } => commands::completions(shell),
    }
}
