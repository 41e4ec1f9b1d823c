//! What is looked at besides the sandbox: configuration, keys, git, the store, the project's
//! state, and who holds it. Values of keys are never looked at.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use midturn_core::rules::id::AgentName;
use midturn_tools::programs::{self, Program};

use super::{Finding, joined, sandbox};
use crate::args::{LayerArgs, StoreArgs};
use crate::config::{Config, keys_set};
use crate::env::Env;
use crate::project::Project;
use crate::run::{models, names, prepare};
use crate::{agents, commands, history};

/// Everything, in the order in which a run would meet it.
pub(super) async fn all(layer: &LayerArgs, store: &StoreArgs, folder: &Path, env: &Env) -> Vec<Finding> {
    let mut findings = Vec::new();
    match commands::load(layer, folder, env) {
        Ok(config) => {
            findings.extend(configuration(&config));
            findings.push(model(&config, env));
            findings.push(keys(&config, env));
            findings.extend(definitions(folder, env));
            findings.extend(sandbox::findings(&config).await);
        }
        Err(failure) => findings.push(Finding::missing("configuration", failure.to_string())),
    }
    findings.push(git());
    findings.extend(joined::findings(folder, env));
    findings.extend(programs::skipped().into_iter().map(skipped));
    match Project::named_by(folder, store, env) {
        Ok(project) => match project.look() {
            Ok(()) => {
                findings.push(self::store(&project).await);
                findings.push(state(&project));
                findings.extend(
                    project
                        .look_at_socket()
                        .err()
                        .map(|failure| Finding::missing("socket", failure.to_string())),
                );
                findings.push(holder(&project));
            }
            // Nothing there is looked at any further: another user could have put it there.
            Err(failure) => findings.push(Finding::missing("state", failure.to_string())),
        },
        Err(failure) => findings.push(Finding::missing("store", failure.to_string())),
    }
    findings
}

fn configuration(config: &Config) -> Vec<Finding> {
    let read: Vec<String> = config
        .looked
        .iter()
        .filter(|looked| looked.found)
        .map(|looked| looked.path.display().to_string())
        .collect();
    let read = if read.is_empty() { "no file is there: defaults hold".to_owned() } else { read.join(", ") };
    let mut findings = vec![Finding::ok("configuration", read)];
    findings.extend(prepare::notes(config).into_iter().map(|note| Finding::weak("configuration", note)));
    findings
}

/// Whether the lead's model can be had, as far as can be known without asking its server.
fn model(config: &Config, env: &Env) -> Finding {
    let Some(name) = &config.general.model else {
        return Finding::weak("model", "none is configured").mended_by("set `model`, or give --model NAME");
    };
    match names::model(name, &config.general.aliases).and_then(|name| models::can_be_had(&name, config, env))
    {
        Ok(name) => {
            let proxied = models::proxied(config, &name).map(|told| format!("; {told}")).unwrap_or_default();
            Finding::ok("model", name + &proxied)
        }
        Err(why) => Finding::missing("model", why),
    }
}

fn keys(config: &Config, env: &Env) -> Finding {
    let said = |(name, is_set)| format!("{name} is {}", if is_set { "set" } else { "not set" });
    let all: Vec<String> = keys_set(config, env).into_iter().map(said).collect();
    Finding::ok("keys", all.join(", "))
}

fn definitions(folder: &Path, env: &Env) -> Vec<Finding> {
    let found = agents::definitions(folder, env);
    let names: Vec<&str> = found.definitions.keys().map(AgentName::as_str).collect();
    let remarks: Vec<_> =
        found.definitions.values().flat_map(|definition| definition.remarks.clone()).collect();
    let told = found.left_out.into_iter().chain(agents::told(&remarks));
    let usable = (!names.is_empty()).then(|| Finding::ok("agents", names.join(", ")));
    usable.into_iter().chain(told.map(|told| Finding::weak("agents", told))).collect()
}

fn git() -> Finding {
    let program = match programs::find(Program::Git) {
        Ok(program) => program,
        Err(none) => return Finding::missing("git", none.to_string()).mended_by("apt install git"),
    };
    match Command::new(program).arg("--version").stdin(Stdio::null()).output() {
        Ok(said) if said.status.success() => {
            let version = String::from_utf8_lossy(&said.stdout);
            Finding::ok("git", version.trim().trim_start_matches("git version ").to_owned())
        }
        Ok(_) => Finding::missing("git", "`git --version` fails").mended_by("apt install git"),
        Err(error) => {
            Finding::missing("git", format!("can't be started: {error}")).mended_by("apt install git")
        }
    }
}

/// What comes first in `PATH` and could be an agent's.
fn skipped(what: String) -> Finding {
    Finding::weak("programs", what).mended_by("look what it is: agents could have put it there")
}

async fn store(project: &Project) -> Finding {
    let place = project.store();
    match history::read_only(project).await {
        Ok(Some(archive)) => match archive.sessions().await {
            Ok(sessions) => Finding::ok("store", format!("{place}, sessions kept: {}", sessions.len())),
            Err(error) => Finding::missing("store", format!("{place}: {error}")),
        },
        Ok(None) => Finding::ok("store", format!("{place}, made by the first session")),
        Err(failure) => Finding::missing("store", failure.to_string()),
    }
}

/// The folder that holds the token: nobody else may look into it.
fn state(project: &Project) -> Finding {
    let folder = project.state();
    let shown = folder.display();
    match folder.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Finding::ok("state", format!("{shown}, made by the first session"))
        }
        Err(error) => Finding::missing("state", format!("{shown}: {error}")),
        Ok(found) if found.permissions().mode() & 0o077 != 0 => {
            Finding::weak("state", format!("others can look into {shown}"))
                .mended_by(format!("chmod 700 {shown}"))
        }
        Ok(_) => Finding::ok("state", format!("{shown}, for you alone")),
    }
}

fn holder(project: &Project) -> Finding {
    match project.interface() {
        Ok(None) => Finding::ok("holder", "no process carries this project's sessions now"),
        Ok(Some(interface)) if Path::new("/proc").join(interface.pid.to_string()).exists() => {
            let (pid, version) = (interface.pid, interface.version);
            Finding::ok(
                "holder",
                format!("process {pid} (version {version}) carries this project's sessions"),
            )
        }
        Ok(Some(interface)) => {
            let pid = interface.pid;
            Finding::ok("holder", format!("process {pid} carried this project's sessions and is gone"))
        }
        Err(failure) => Finding::missing("holder", failure.to_string()),
    }
}
