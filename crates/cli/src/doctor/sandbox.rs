//! Which sandboxes work here, which one would be used, and who holds commands to their limits.

use std::path::Path;

use midturn_core::rules::approval::Mode;
use midturn_tools::sandbox::{Kept, LimitsBy, NetworkState, Tier, Wanted};

use super::Finding;
use crate::config::Config;
use crate::host::safety::{Safety, probe, wanted};

/// How to get a sandbox.
const GET: &str =
    "apt install bubblewrap (dnf, pacman and zypper have it by the same name), or a kernel with Landlock";

/// Says whether AppArmor keeps namespaces from programs without a profile; elsewhere it isn't there.
const APPARMOR: &str = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";

/// All about the sandbox.
pub(super) async fn findings(config: &Config) -> Vec<Finding> {
    let asked = wanted(&config.general.sandbox);
    let mut findings = Vec::new();
    for (tier, about) in [(Tier::Bubblewrap, "bubblewrap"), (Tier::Landlock, "landlock")] {
        findings.push(kind(tier, about, &asked).await);
    }
    let has_namespaces = match Safety::of(config, None).await {
        Ok(safety) => {
            findings.extend(in_force(&safety, config));
            safety.sandbox().in_force().mount_namespace
        }
        Err(why) => {
            findings.push(Finding::missing("sandbox", why.to_string()).mended_by(GET));
            false
        }
    };
    let restricts = std::fs::read_to_string(APPARMOR).unwrap_or_default();
    if let Ok(program) = std::env::current_exe()
        && !has_namespaces
    {
        findings.extend(apparmor(&restricts, &program));
    }
    findings
}

/// Ubuntu lets programs have namespaces, and nothing in them, unless a profile says otherwise.
fn apparmor(restricts: &str, program: &Path) -> Option<Finding> {
    let profile = format!(
        "printf 'abi <abi/4.0>,\\nprofile midturn \"%s\" flags=(unconfined) {{ userns, }}\\n' '{}' | \
         sudo tee /etc/apparmor.d/midturn && sudo apparmor_parser -r /etc/apparmor.d/midturn",
        program.display()
    );
    let finding = Finding::weak("namespaces", "AppArmor keeps them from programs that have no profile");
    (restricts.trim() == "1").then(|| finding.mended_by(profile))
}

/// Whether one kind works. That it doesn't is bad only if no other one does.
async fn kind(tier: Tier, about: &'static str, asked: &Wanted) -> Finding {
    match probe(&Wanted { tier: Some(tier), ..asked.clone() }).await {
        // How it could be better is told of the one that is used.
        Ok(sandbox) => Finding::ok(about, format!("works: {}", Kept(&sandbox.in_force()))),
        Err(why) => Finding::weak(about, briefly(&why)),
    }
}

/// Only what failed: how to get a sandbox is said once, where there is none.
fn briefly(why: &str) -> &str {
    let tried = why.split_once("no command is run. ").map_or(why, |(_, tried)| tried);
    tried.split_once(". To get one: ").map_or(tried, |(tried, _)| tried)
}

/// What of the network commands have, where they have any.
fn network(state: &NetworkState) -> Option<Finding> {
    match state {
        NetworkState::Open => {
            Some(Finding::weak("network", "open to commands (`sandbox.network`): what they read can leave"))
        }
        NetworkState::Hosts(hosts) => {
            let hosts = hosts.written().join(", ");
            let told = format!(
                "of all hosts commands reach {hosts}: what they read can leave to those that take uploads"
            );
            Some(Finding::ok("network", told))
        }
        NetworkState::Off | NetworkState::FilteredBySeccomp => None,
    }
}

fn in_force(safety: &Safety, config: &Config) -> Vec<Finding> {
    let force = safety.sandbox().in_force();
    let mut findings = Vec::new();
    if safety.is_confined() {
        findings.push(Finding::ok("sandbox", format!("used: {}", Kept(&force))));
        // What limits are held by has a line of its own.
        let others = force.notes.iter().filter(|note| !note.contains("systemd-run"));
        let others = others.chain(safety.let_in());
        findings.extend(others.map(|note| Finding::weak("sandbox", note.clone())));
    } else {
        let why = match config.general.approvals.mode {
            Mode::Auto => "none, as it is configured: commands can do all that you can, unasked",
            Mode::AcceptEdits | Mode::Ask | Mode::Plan => {
                "none: commands that you allow can do all that you can"
            }
        };
        findings.push(Finding::weak("sandbox", why).mended_by(GET));
    }
    findings.push(match force.limits {
        LimitsBy::CgroupV2 => {
            Finding::ok("limits", "held by cgroups (version 2) for a command and all it starts")
        }
        LimitsBy::CgroupV1 => {
            Finding::ok("limits", "held by cgroups (version 1) for a command and all it starts")
        }
        LimitsBy::Looking => {
            let how = "memory is checked every 100 ms for a command and all it starts: in between it can exceed its limit";
            let get = "a cgroup that you may write to: `systemd-run --user --scope -p Delegate=yes midturn …`";
            Finding::weak("limits", how).mended_by(get)
        }
    });
    findings.extend(network(&force.network).filter(|_| safety.is_confined()));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_apparmor_keeps_namespaces_from_us_the_profile_is_said() {
        let program = Path::new("/usr/local/bin/midturn");
        let finding = apparmor("1\n", program).unwrap();
        let mend = finding.mend.unwrap();
        assert!(mend.contains("'/usr/local/bin/midturn' | sudo tee /etc/apparmor.d/midturn"), "{mend}");
        assert!(mend.contains("flags=(unconfined) { userns, }"), "{mend}");
        for restricts in ["0\n", ""] {
            assert!(apparmor(restricts, program).is_none(), "{restricts:?}");
        }
    }
}
