//! Which system calls an agent's commands are refused: those that reach other processes, make
//! namespaces or mounts, speak to the kernel's innards, put words into a terminal, or make a
//! program that runs with its owner's rights whoever starts it.
//!
//! Refused calls fail as they would on a system without them, so that programs go on; calls of
//! another architecture (32 bit) end the process. What is not listed is allowed: this is the
//! second wall, behind namespaces or Landlock, not the first.

use std::collections::BTreeMap;
use std::sync::Arc;

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Width, SeccompCmpOp as Is, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, sock_filter,
};

/// Which sockets can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sockets {
    /// Those of the internet.
    pub(crate) network: bool,
    /// Those of this machine, by which one speaks to its services; a pair of sockets is no
    /// such, and is always allowed.
    pub(crate) unix: bool,
}

/// Whose processes and kernel objects commands meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Around {
    /// Their own: they are in namespaces.
    Own,
    /// All that the machine has.
    Machine,
}

/// A compiled filter, instruction by instruction. It travels to the supervisor. All sessions share it:
/// it has some 5 KB.
pub(crate) type Filter = Arc<[(u16, u8, u8, u32)]>;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;
type Made<T> = Result<T, seccompiler::BackendError>;

/// Not in the libraries' lists yet.
const OPEN_TREE_ATTR: i64 = 467;

const REFUSED: &[i64] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    // Namespaces, mounts.
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    OPEN_TREE_ATTR,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_quotactl,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    // Keys, which are shared by all processes of a user.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // The kernel itself.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_reboot,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];

/// "There is no such call": programs fall back to others, which can be looked into. The flags
/// of `clone3` are behind a pointer, so is the mode of `openat2`; what `io_uring` does passes by
/// every filter.
const ABSENT: &[i64] = &[
    libc::SYS_clone3,
    libc::SYS_openat2,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// Not in the libraries' lists of all processors yet.
const FCHMODAT2: i64 = 452;

/// Calls that give a file its mode, with the argument that it is.
const MODES: &[(i64, u8)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
    (libc::SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
];

/// Calls that do so only if they make the file: with the arguments that say so and that are the
/// mode. In other calls there may be anything in its place.
const MODES_OF_NEW: &[(i64, u8, u8)] = &[
    (libc::SYS_openat, 2, 3),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1, 2),
];

/// The bits of a mode by which a program runs as its owner, or its group, whoever starts it.
const AS_OWNER: [u64; 2] = [0o4000, 0o2000];

/// The flags with which a file is made; of the second, what doesn't only say that it is in a folder.
const MAKES: [i32; 2] = [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY];

/// What outlives whoever made it, and belongs to all processes of a user: shared memory, queues,
/// semaphores. As on a system that was built without them; `/dev/shm` and `memfd` are others.
const LASTING: &[i64] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// How another process is scheduled; the first argument says which, 0 is the caller.
const OTHERS_SCHEDULING: &[i64] = &[
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
];

/// As before; the first argument says whether a process, a group or all of a user is meant, the
/// second says which, and the last number of these is the one for a user's.
const OTHERS_PRIORITY: &[(i64, u64)] = &[(libc::SYS_setpriority, 2), (libc::SYS_ioprio_set, 3)];

const NAMESPACES: &[i32] = &[
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// `CLONE_NEWTIME`; in `clone` it is a part of the signal's number.
const NEW_TIME: i32 = 0x80;

/// Put words into the terminal's input, as if a person had typed them.
const TERMINAL: &[u64] = &[libc::TIOCSTI, libc::TIOCLINUX, libc::TIOCSETD];

/// What each compiled filter begins with: the check of the processor (three), and the call's number is loaded.
const PREAMBLE: usize = 4;

const JUMP: u16 = 0x05;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;

/// From here on the second interface of 64 bit processors has numbers of its own, which no rule
/// would match.
const X32: u32 = 0x4000_0000;

/// The filter for commands that may make these sockets and meet these processes.
///
/// # Errors
/// When one for this machine's processor can't be made.
pub(crate) fn filter(sockets: Sockets, around: Around) -> Result<Filter, String> {
    let failed = |error: &dyn std::fmt::Display| {
        format!("system calls can't be filtered on {}: {error}", std::env::consts::ARCH)
    };
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|e| failed(&e))?;
    join(calls(sockets, around).map_err(|e| failed(&e))?, arch).map_err(|e| failed(&e))
}

/// Applies a filter to this process and all it will start, for good.
pub(crate) fn apply(filter: &Filter) -> Result<(), seccompiler::Error> {
    seccompiler::apply_filter(&unpack(filter))
}

/// What becomes of each call that isn't simply allowed: the rules by which it is refused, and with which error.
fn calls(sockets: Sockets, around: Around) -> Made<BTreeMap<u32, (Vec<SeccompRule>, i32)>> {
    let mut all = vec![
        (refused()?, libc::EPERM),
        (as_owner()?, libc::EPERM),
        (whole(ABSENT), libc::ENOSYS),
        (no_socket_but(sockets)?, libc::EAFNOSUPPORT),
    ];
    if around == Around::Machine {
        all.extend([(to_others()?, libc::EPERM), (whole(LASTING), libc::ENOSYS)]);
    }
    let flat = all.into_iter().flat_map(|(rules, errno)| rules.into_iter().map(move |rule| (rule, errno)));
    Ok(flat.map(|((call, rules), errno)| (number(call), (rules, errno))).collect())
}

fn number(call: i64) -> u32 {
    u32::try_from(call).unwrap_or(u32::MAX)
}

/// What becomes of the calls from a number on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Goal {
    /// This answer.
    Answer(u32),
    /// What the instructions from this place on say.
    Place(usize),
}

/// One program: it finds the call by halves, since the system tries all calls there are when a filter is applied, for
/// each command; and then looks at the call's arguments, where those decide.
fn join(calls: BTreeMap<u32, (Vec<SeccompRule>, i32)>, arch: TargetArch) -> Made<Filter> {
    let nothing = Rules::from([(0, Vec::new())]);
    let mut head = compile(nothing, libc::EPERM, arch)?;
    head.truncate(PREAMBLE);
    head.push(instruction(JUMP_IF_AT_LEAST, 0, 1, X32));
    head.push(instruction(RETURN, 0, 0, libc::SECCOMP_RET_KILL_PROCESS));
    let allowed = Goal::Answer(SeccompAction::Allow.into());
    let (mut areas, mut body) = (vec![(0, allowed)], Vec::new());
    for (call, (rules, errno)) in calls {
        let goal = if rules.is_empty() {
            Goal::Answer(refusal(errno).into())
        } else {
            let place = body.len();
            body.extend(compile(Rules::from([(call.into(), rules)]), errno, arch)?.drain(PREAMBLE..));
            Goal::Place(place)
        };
        enter(&mut areas, call, goal);
        enter(&mut areas, call + 1, allowed);
    }
    let behind = head.len() + length_of_search(areas.len());
    search(&areas, behind, &mut head)?;
    Ok(pack(&[head, body].concat()))
}

/// From this number on that holds, until another one is entered.
fn enter(areas: &mut Vec<(u32, Goal)>, from: u32, goal: Goal) {
    areas.pop_if(|(start, _)| *start == from);
    if areas.last().is_none_or(|(_, last)| *last != goal) {
        areas.push((from, goal));
    }
}

/// Goes by halves to what becomes of the number. The places are those `behind` the search.
fn search(areas: &[(u32, Goal)], behind: usize, head: &mut Vec<sock_filter>) -> Made<()> {
    let (low, high) = areas.split_at(areas.len() / 2);
    match (low, high) {
        (_, []) => {}
        ([], [(_, Goal::Answer(answer)), ..]) => head.push(instruction(RETURN, 0, 0, *answer)),
        ([], [(_, Goal::Place(place)), ..]) => {
            // Counted from behind this one.
            let far = fit(behind + place - (head.len() + 1))?;
            head.push(instruction(JUMP, 0, 0, far));
        }
        (_, [(start, _), ..]) => {
            let far = fit(length_of_search(low.len()))?;
            head.push(instruction(JUMP_IF_AT_LEAST, far, 0, *start));
            search(low, behind, head)?;
            search(high, behind, head)?;
        }
    }
    Ok(())
}

/// An end for each area, and a question between any two.
fn length_of_search(areas: usize) -> usize {
    (2 * areas).saturating_sub(1)
}

/// How far a jump goes, as an instruction has it.
fn fit<T: TryFrom<usize>>(far: usize) -> Made<T> {
    T::try_from(far).map_err(|_| seccompiler::BackendError::FilterTooLarge(far))
}

fn refusal(errno: i32) -> SeccompAction {
    SeccompAction::Errno(errno.unsigned_abs())
}

fn compile(rules: Rules, errno: i32, arch: TargetArch) -> Made<BpfProgram> {
    BpfProgram::try_from(SeccompFilter::new(rules, SeccompAction::Allow, refusal(errno), arch)?)
}

fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

fn whole(calls: &[i64]) -> Rules {
    calls.iter().map(|&call| (call, Vec::new())).collect()
}

fn refused() -> Made<Rules> {
    let mut rules = whole(REFUSED);
    let flags = |flags: &[i32]| -> Made<Vec<SeccompRule>> {
        let flags = flags.iter().map(|flag| u64::from(flag.cast_unsigned()));
        flags.map(|flag| rule([has(0, flag)?])).collect()
    };
    rules.insert(libc::SYS_clone, flags(NAMESPACES)?);
    rules.insert(libc::SYS_unshare, flags(&[NAMESPACES, &[NEW_TIME]].concat())?);
    let terminal: Made<_> = TERMINAL.iter().map(|&call| rule([condition(1, Is::Eq, call)?])).collect();
    rules.insert(libc::SYS_ioctl, terminal?);
    // Another process's limits, by which a program of the same user could end the coordinator.
    let others = [condition(0, Is::Ne, 0)?, SeccompCondition::new(2, Width::Qword, Is::Ne, 0)?];
    rules.insert(libc::SYS_prlimit64, vec![rule(others)?]);
    Ok(rules)
}

/// Where such a program lies below a folder that others may enter, it is theirs.
fn as_owner() -> Made<Rules> {
    let mut rules = Rules::new();
    for &(call, mode) in MODES {
        rules.insert(call, AS_OWNER.into_iter().map(|bit| rule([has(mode, bit)?])).collect::<Made<_>>()?);
    }
    for &(call, flags, mode) in MODES_OF_NEW {
        let both = MAKES.into_iter().flat_map(|flag| AS_OWNER.map(|bit| (flag, bit)));
        let refused =
            both.map(|(flag, bit)| rule([has(flags, u64::from(flag.cast_unsigned()))?, has(mode, bit)?]));
        rules.insert(call, refused.collect::<Made<_>>()?);
    }
    Ok(rules)
}

fn has(argument: u8, bit: u64) -> Made<SeccompCondition> {
    condition(argument, Is::MaskedEq(bit), bit)
}

/// Processes of the same user are others' too; a command's own children are not told apart.
fn to_others() -> Made<Rules> {
    let scheduling =
        OTHERS_SCHEDULING.iter().map(|&call| Ok((call, vec![rule([condition(0, Is::Ne, 0)?])?])));
    let priority = OTHERS_PRIORITY.iter().map(|&(call, user)| {
        let rules = vec![rule([condition(1, Is::Ne, 0)?])?, rule([condition(0, Is::Eq, user)?])?];
        Ok((call, rules))
    });
    scheduling.chain(priority).collect()
}

fn no_socket_but(sockets: Sockets) -> Made<Rules> {
    let network: &[i32] =
        if sockets.network { &[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK] } else { &[] };
    let unix: &[i32] = if sockets.unix { &[libc::AF_UNIX] } else { &[] };
    let allowed = network.iter().chain(unix).map(|family| u64::from(family.cast_unsigned()));
    let others: Vec<_> = allowed.map(|family| condition(0, Is::Ne, family)).collect::<Made<_>>()?;
    // Without a condition there is no rule, and then the whole call is refused.
    let rules = if others.is_empty() { Vec::new() } else { vec![SeccompRule::new(others)?] };
    Ok(Rules::from([(libc::SYS_socket, rules)]))
}

/// The kernel looks at the lower half only of these arguments.
fn condition(argument: u8, is: Is, value: u64) -> Made<SeccompCondition> {
    SeccompCondition::new(argument, Width::Dword, is, value)
}

fn rule<const N: usize>(conditions: [SeccompCondition; N]) -> Made<SeccompRule> {
    SeccompRule::new(conditions.into())
}

fn pack(program: &[sock_filter]) -> Filter {
    program.iter().map(|i| (i.code, i.jt, i.jf, i.k)).collect()
}

fn unpack(filter: &Filter) -> BpfProgram {
    filter.iter().map(|&(code, jt, jf, k)| instruction(code, jt, jf, k)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_travels_unchanged() {
        let program = vec![
            sock_filter { code: 0x35, jt: 1, jf: 255, k: 0x4000_0000 },
            sock_filter { code: 0xffff, jt: 0, jf: 2, k: u32::MAX },
        ];
        assert_eq!(unpack(&pack(&program)), program);
    }

    #[test]
    fn every_call_gets_what_its_rule_says() {
        for (network, unix, around) in [
            (false, false, Around::Machine),
            (false, true, Around::Own),
            (true, false, Around::Own),
            (true, true, Around::Machine),
        ] {
            let program = unpack(&filter(Sockets { network, unix }, around).unwrap());
            // The kernel takes no longer program.
            assert!(program.len() <= 4096);
            let answer =
                |call: i64, arguments: [u64; 3]| run(&program, u32::try_from(call).unwrap(), &arguments);
            let errno = |errno: i32| 0x0005_0000 | errno.unsigned_abs();
            for call in REFUSED {
                assert_eq!(answer(*call, [0; 3]), errno(libc::EPERM), "{call}");
            }
            for call in ABSENT {
                assert_eq!(answer(*call, [0; 3]), errno(libc::ENOSYS), "{call}");
            }
            let family = |family: i32, allowed: bool| {
                let expected = if allowed { ALLOW } else { errno(libc::EAFNOSUPPORT) };
                assert_eq!(
                    answer(libc::SYS_socket, [family.unsigned_abs().into(), 0, 0]),
                    expected,
                    "{family}"
                );
            };
            family(libc::AF_INET, network);
            family(libc::AF_UNIX, unix);
            family(libc::AF_VSOCK, false);
            let flag = |flag: i32| [u64::from(flag.cast_unsigned()), 0, 0];
            assert_eq!(
                answer(libc::SYS_clone, flag(libc::CLONE_NEWUSER | libc::SIGCHLD)),
                errno(libc::EPERM)
            );
            assert_eq!(answer(libc::SYS_clone, flag(libc::CLONE_VM | libc::SIGCHLD)), ALLOW);
            assert_eq!(answer(libc::SYS_ioctl, [0, libc::TIOCSTI | 1 << 32, 0]), errno(libc::EPERM));
            assert_eq!(answer(libc::SYS_ioctl, [0, libc::TCGETS, 0]), ALLOW);
            assert_eq!(answer(libc::SYS_prlimit64, [7, 0, 1 << 40]), errno(libc::EPERM));
            assert_eq!(answer(libc::SYS_prlimit64, [7, 0, 0]), ALLOW);
            let shared = |errno_of: i32| if around == Around::Machine { errno(errno_of) } else { ALLOW };
            for call in LASTING {
                assert_eq!(answer(*call, [0; 3]), shared(libc::ENOSYS), "{call}");
            }
            for call in OTHERS_SCHEDULING {
                assert_eq!(answer(*call, [7, 0, 0]), shared(libc::EPERM), "{call}");
                assert_eq!(answer(*call, [0, 7, 7]), ALLOW, "{call}");
            }
            for (call, user) in OTHERS_PRIORITY {
                for arguments in [[0, 7, 0], [*user - 1, 7, 0], [*user, 0, 0]] {
                    assert_eq!(answer(*call, arguments), shared(libc::EPERM), "{call} {arguments:?}");
                }
                assert_eq!(answer(*call, [*user - 1, 0, 7]), ALLOW, "{call}");
            }
            let ours = |call: i64| [REFUSED, ABSENT, LASTING].iter().any(|calls| calls.contains(&call));
            for call in (0..600).filter(|call| !ours(*call) && *call != libc::SYS_socket) {
                assert_eq!(answer(call, [0; 3]), ALLOW, "{call}");
            }
            assert_eq!(run(&program, X32, &[0; 3]), libc::SECCOMP_RET_KILL_PROCESS);
        }
    }

    /// F2: what counts is how many instructions a call takes.
    #[test]
    fn a_call_is_found_by_halves() {
        for around in [Around::Own, Around::Machine] {
            let program = unpack(&filter(Sockets { network: false, unix: true }, around).unwrap());
            let calls = 0..460_u32;
            let steps: usize = calls.clone().map(|call| counted(&program, call, &[0; 3]).1).sum();
            assert!(
                program.len() <= 600 && steps <= 13 * calls.len(),
                "{} long, {steps} in all",
                program.len()
            );
        }
    }

    #[test]
    fn every_compiled_filter_begins_alike() {
        let arch = TargetArch::try_from(std::env::consts::ARCH).unwrap();
        let made = |rules| compile(rules, libc::EPERM, arch).unwrap();
        let (whole, some) = (made(whole(&[libc::SYS_mount])), made(refused().unwrap()));
        assert_eq!(whole[..PREAMBLE], some[..PREAMBLE]);
        assert_ne!(whole[PREAMBLE], some[PREAMBLE]);
    }

    /// C18.
    #[test]
    fn no_call_makes_a_program_that_runs_as_its_owner() {
        let program = unpack(&filter(Sockets { network: true, unix: true }, Around::Own).unwrap());
        for (call, arguments, refused) in modes() {
            let expected = if refused { 0x0005_0000 | libc::EPERM.unsigned_abs() } else { ALLOW };
            assert_eq!(
                run(&program, u32::try_from(call).unwrap(), &arguments),
                expected,
                "{call} {arguments:?}"
            );
        }
    }

    /// Calls that give such a mode, and others that look like it.
    fn modes() -> Vec<(i64, [u64; 4], bool)> {
        let (creates, temporary, none) = (0o102, 0o20_200_002, 0o2_000_002);
        let mut rows = Vec::new();
        for (mode, refused) in
            [(0o755, false), (0o101_644, false), (0o4755, true), (0o2711, true), (0o106_000, true)]
        {
            rows.extend([
                (libc::SYS_fchmod, [0o4000, mode, 0o4000, 0], refused),
                (libc::SYS_fchmodat, [0o4000, 0o4000, mode, 0o4000], refused),
                (FCHMODAT2, [0o4000, 0o4000, mode, 0o4000], refused),
                (libc::SYS_mknodat, [0o4000, 0o4000, mode, 0], refused),
                (libc::SYS_openat, [0o4000, 0o4000, creates, mode], refused),
                (libc::SYS_openat, [0o4000, 0o4000, temporary, mode], refused),
                (libc::SYS_openat, [0o4000, 0o4000, none, mode], false),
            ]);
            #[cfg(target_arch = "x86_64")]
            rows.extend([
                (libc::SYS_chmod, [0o4000, mode, 0o4000, 0], refused),
                (libc::SYS_mknod, [0o4000, mode, 0o4000, 0], refused),
                (libc::SYS_creat, [0o4000, mode, 0o4000, 0], refused),
                (libc::SYS_open, [0o4000, creates, mode, 0], refused),
                (libc::SYS_open, [0o4000, none, mode, 0], false),
            ]);
        }
        rows
    }

    const ALLOW: u32 = 0x7fff_0000;

    /// As the kernel would: only what a filter is made of.
    fn run(program: &[sock_filter], call: u32, arguments: &[u64]) -> u32 {
        counted(program, call, arguments).0
    }

    /// With how many instructions that took.
    fn counted(program: &[sock_filter], call: u32, arguments: &[u64]) -> (u32, usize) {
        let arch = match std::env::consts::ARCH {
            "x86_64" => 0xc000_003e,
            "aarch64" => 0xc000_00b7,
            _ => 0xc000_00f3,
        };
        let mut data = vec![call, arch, 0, 0];
        for argument in arguments {
            data.extend([*argument as u32, (argument >> 32) as u32]);
        }
        data.resize(16, 0);
        let (mut at, mut value, mut steps) = (0, 0, 0);
        loop {
            let i = &program[at];
            at += 1;
            steps += 1;
            let jump = |holds: bool| usize::from(if holds { i.jt } else { i.jf });
            match i.code {
                0x20 => value = data[i.k as usize / 4],
                0x54 => value &= i.k,
                0x05 => at += i.k as usize,
                0x15 => at += jump(value == i.k),
                0x25 => at += jump(value > i.k),
                0x35 => at += jump(value >= i.k),
                0x06 => return (i.k, steps),
                other => panic!("{other:#x}"),
            }
        }
    }
}
