//! The small commands: they print something and end.

use std::fs::File;
use std::io::{Error, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::pin::Pin;

use clap::CommandFactory;
use midturn_tools::programs;

use crate::args::{Cli, ConfigArgs, Format, InitArgs, LayerArgs};
use crate::config::{self, Config, Whose};
use crate::env::{self, Env};
use crate::failure::{End, Failure};
use crate::secrets;

/// `midturn config`.
///
/// # Errors
/// [`Failure::Usage`]: the configuration is not sound.
pub(crate) fn config(args: &ConfigArgs, env: &Env) -> Result<End, Failure> {
    let config = load(&args.layer, &work_folder(&args.layer)?, env)?;
    let keys = config::keys_set(&config, env);
    let text = if args.json {
        format!("{:#}\n", config::shown_as_json(&config, &keys))
    } else {
        config::shown(&config, &keys)
    };
    print(&text)
}

/// `midturn init`.
///
/// # Errors
/// [`Failure::Usage`]: there is such a file, or no place for it. [`Failure::Failed`]: it can't be written.
pub(crate) fn init(args: &InitArgs, env: &Env) -> Result<End, Failure> {
    let nowhere = || Failure::usage("neither XDG_CONFIG_HOME nor HOME names a folder for your own file");
    let (folder, whose) = match args.user {
        true => (env.config_folder().ok_or_else(nowhere)?, Whose::Person),
        false => {
            let layer = LayerArgs { cwd: args.cwd.clone(), ..LayerArgs::default() };
            (work_folder(&layer)?, Whose::Project)
        }
    };
    let path = folder.join(config::FILE_NAME);
    let fail = |error: Error| match error.kind() {
        ErrorKind::AlreadyExists => {
            Failure::usage(format!("{} is there already; nothing was changed", path.display()))
        }
        _ => Failure::failed(format!("{} can't be written: {error}", path.display())),
    };
    std::fs::create_dir_all(&folder).map_err(fail)?;
    let mut file = File::create_new(&path).map_err(fail)?;
    file.write_all(config::template(whose).as_bytes()).map_err(fail)?;
    print(&format!(
        "{}: written, with all keys commented out; `midturn config` shows what holds\n",
        path.display()
    ))
}

/// `midturn completions SHELL`.
///
/// # Errors
/// Standard output can't be written.
pub(crate) fn completions(shell: clap_complete::Shell) -> Result<End, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "midturn", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// `midturn schema FORMAT`.
///
/// # Errors
/// Standard output can't be written.
pub(crate) fn schema(format: Format) -> Result<End, Failure> {
    let schema = match format {
        Format::Scenario => midturn_scenario::schema(),
        Format::Config => config::schema(),
        Format::Events => midturn_core::rules::event::schema(),
    };
    print(&format!("{schema:#}\n"))
}

/// The configuration as the options of a command leave it.
///
/// # Errors
/// [`Failure::Usage`]: see [`Config::load`].
pub(crate) fn load(layer: &LayerArgs, folder: &Path, env: &Env) -> Result<Config, Failure> {
    // Before anything of ours is run: an agent of an earlier session may have left programs here.
    let state = env.state_folder();
    let whole = env::repository(folder);
    programs::keep_out_of([folder].into_iter().chain(whole).chain(state.as_deref()));
    let config = Config::load(folder, env, layer)?;
    programs::keep_out_of(config.general.sandbox.writable().iter().map(PathBuf::as_path));
    let texts = config.entries.iter().filter_map(|(key, entry)| Some((key.as_str(), entry.value.as_str()?)));
    secrets::hide_passwords(texts)?;
    secrets::hide(secrets::of_variables(env, config.key_variables()))?;
    Ok(config)
}

/// The folder that a command works in, as an absolute path.
///
/// # Errors
/// [`Failure::Usage`]: it is not there, or is not a folder.
pub(crate) fn work_folder(layer: &LayerArgs) -> Result<PathBuf, Failure> {
    let asked = layer.cwd.clone().unwrap_or_else(|| PathBuf::from("."));
    let complain = |what: String| Failure::usage(format!("the working folder {}: {what}", asked.display()));
    let folder = asked.canonicalize().map_err(|error| complain(error.to_string()))?;
    if folder.is_dir() { Ok(folder) } else { Err(complain("is not a folder".to_owned())) }
}

/// Writes to standard output, without secrets. A reader that has gone away has read what it wanted.
///
/// # Errors
/// Standard output can't be written.
pub(crate) fn print(text: &str) -> Result<End, Failure> {
    print_whole(&secrets::clean(text))
}

/// As [`print()`], but as it is: a patch with something else in a secret's place would be a wrong one.
///
/// # Errors
/// Standard output can't be written.
pub(crate) fn print_whole(text: &str) -> Result<End, Failure> {
    put(text).map(|_| End::Finished)
}

/// Whether somebody reads what is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    There,
    Gone,
}

/// Writes a part of what there is to say, as it is.
///
/// # Errors
/// Standard output can't be written.
pub(crate) fn put(text: &str) -> Result<Reader, Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(Reader::There),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => Err(Failure::failed(format!("standard output can't be written: {error}"))),
    }
}

/// Waits for what a command without threads of its own has to wait for.
///
/// # Errors
/// [`Failure::Failed`]: the system has no room for it.
pub(crate) fn block_on<'a, T>(future: impl Future<Output = T> + 'a) -> Result<T, Failure> {
    // One type for all commands: else tokio's whole runtime is compiled for each of them.
    let future: Pin<Box<dyn Future<Output = T> + 'a>> = Box::pin(future);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| Failure::failed(format!("the runtime can't be started: {error}")))?;
    Ok(runtime.block_on(future))
}
