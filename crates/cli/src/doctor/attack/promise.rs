//! What docs/security.md promises of a row, by the sandbox that is in force. Pure.

use midturn_tools::sandbox::{InForce, LimitsBy, NetworkState, Tier};

use super::met::Met;

/// What is promised of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Promise {
    /// Nothing.
    Nothing,
    /// That it can't be done.
    Held,
    /// That it can't be done, or is taken back.
    HeldOrTakenBack,
}

impl Promise {
    /// Whether it is so.
    pub(super) fn holds(self, met: &Met) -> bool {
        match (self, met) {
            (Self::Nothing, _) => true,
            (Self::Held, Met::TakenBack) => false,
            (Self::Held | Self::HeldOrTakenBack, met) => met.is_held(),
        }
    }
}

/// What a promise depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// Each sandbox holds it.
    Sandbox,
    /// Each does: a view of one's own beforehand, Landlock alone afterwards.
    View,
    /// Only a view of one's own.
    OwnProcesses,
    /// Namespaces, or a Landlock that keeps signals in.
    Signals,
    /// The network, which a person may have opened.
    Network,
    /// A network of one's own, or a Landlock that keeps abstract sockets in.
    AbstractSockets,
    /// Limits, which hold without a sandbox, too.
    Limits,
    /// The number of processes, which the system counts for nobody who is root, and without a sandbox not by itself.
    Processes,
}

impl By {
    /// What is promised by this sandbox; `is_root` is who runs it.
    pub(super) fn promise(self, force: &InForce, is_root: bool) -> Promise {
        let held = |holds: bool| if holds { Promise::Held } else { Promise::Nothing };
        let kept = force.tier != Tier::None;
        let is_open = force.network == NetworkState::Open;
        match self {
            Self::Sandbox => held(kept),
            Self::View if kept && !force.mount_namespace => Promise::HeldOrTakenBack,
            Self::View => held(kept),
            Self::OwnProcesses => held(force.mount_namespace),
            Self::Signals => held(force.mount_namespace || force.scoped),
            Self::Network => held(kept && !is_open),
            Self::AbstractSockets => held(kept && (!is_open || force.scoped)),
            Self::Limits => Promise::Held,
            Self::Processes => match force.limits {
                LimitsBy::CgroupV1 | LimitsBy::CgroupV2 => Promise::Held,
                LimitsBy::Looking => held(kept && !is_root),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [By; 8] = [
        By::Sandbox,
        By::View,
        By::OwnProcesses,
        By::Signals,
        By::Network,
        By::AbstractSockets,
        By::Limits,
        By::Processes,
    ];

    fn force(tier: Tier, mount_namespace: bool, network: NetworkState) -> InForce {
        InForce {
            tier,
            user_namespace: mount_namespace,
            mount_namespace,
            network,
            scoped: false,
            seccomp: tier != Tier::None,
            limits: LimitsBy::Looking,
            notes: Vec::new(),
        }
    }

    #[test]
    fn what_is_promised_follows_from_the_sandbox_that_is_in_force() {
        use Promise::{Held as H, HeldOrTakenBack as T, Nothing as N};
        let filtered = NetworkState::FilteredBySeccomp;
        for (force, is_root, expected) in [
            (force(Tier::Bubblewrap, true, NetworkState::Off), false, [H, H, H, H, H, H, H, H]),
            (force(Tier::Landlock, true, NetworkState::Off), true, [H, H, H, H, H, H, H, N]),
            (force(Tier::Landlock, true, NetworkState::Open), false, [H, H, H, H, N, N, H, H]),
            (force(Tier::Landlock, false, filtered), false, [H, T, N, N, H, H, H, H]),
            (force(Tier::None, false, NetworkState::Open), false, [N, N, N, N, N, N, H, N]),
        ] {
            assert_eq!(ALL.map(|by| by.promise(&force, is_root)), expected, "{force:?}");
        }
        let scoped = InForce { scoped: true, ..force(Tier::Landlock, false, NetworkState::Open) };
        assert_eq!([By::Signals, By::AbstractSockets].map(|by| by.promise(&scoped, false)), [H, H]);
        let grouped = InForce { limits: LimitsBy::CgroupV2, ..force(Tier::None, false, NetworkState::Open) };
        assert_eq!(By::Processes.promise(&grouped, true), H);
    }

    #[test]
    fn what_is_only_taken_back_does_not_hold_where_it_was_to_be_refused() {
        for (promise, met, holds) in [
            (Promise::Held, Met::Refused, true),
            (Promise::Held, Met::TakenBack, false),
            (Promise::HeldOrTakenBack, Met::TakenBack, true),
            (Promise::HeldOrTakenBack, Met::Can, false),
            (Promise::Held, Met::Unanswered, false),
            (Promise::Held, Met::Bounded("1 MiB".to_owned()), true),
        ] {
            assert_eq!(promise.holds(&met), holds, "{promise:?} {met:?}");
        }
    }
}
