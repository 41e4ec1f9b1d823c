//! Where our user can go without any privilege, as commands do: for root that is not everywhere.

use std::io;
use std::path::Path;

use rustix::process::{getegid, geteuid, getgroups};

use super::look::Look;

/// Our user and groups.
pub(super) struct Powerless {
    user: u32,
    groups: Vec<u32>,
}

impl Powerless {
    pub(super) fn new() -> io::Result<Self> {
        let groups = getgroups()?.into_iter().chain([getegid()]).map(|group| group.as_raw()).collect();
        Ok(Self { user: geteuid().as_raw(), groups })
    }

    /// Whether all folders above it, to which no link leads, can be entered. Access lists may let in more people than
    /// modes do: a mode's group bits hold for them then.
    pub(super) fn can_reach(&self, path: &Path, look: &Look) -> bool {
        path.ancestors().skip(1).all(|folder| {
            look.found(folder).is_ok_and(|found| self.may_enter(found.user, found.group, found.mode))
        })
    }

    fn may_enter(&self, owner: u32, group: u32, mode: u32) -> bool {
        if owner == self.user {
            mode & 0o100 != 0
        } else if self.groups.contains(&group) {
            mode & 0o010 != 0
        } else {
            mode & 0o011 != 0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_say_who_may_enter_even_to_root() {
        let us = Powerless { user: 0, groups: vec![0, 5] };
        for (owner, group, mode, may) in [
            (0, 0, 0o700, true),
            (0, 0, 0o077, false),
            (7, 5, 0o710, true),
            (7, 5, 0o701, false),
            (7, 7, 0o700, false),
            (7, 7, 0o701, true),
            // Somebody may be let in by name.
            (7, 7, 0o710, true),
        ] {
            assert_eq!(us.may_enter(owner, group, mode), may, "{owner} {group} {mode:o}");
        }
    }
}
