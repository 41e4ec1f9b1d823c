//! What a sandboxed command can and can't do, in every kind of sandbox that this machine has
//! (semantics.md, sections 5 and 9).

#![allow(clippy::unwrap_used, reason = "this is all test code")]

mod support;

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;

use midturn_tools::process::ExitStatus;
use midturn_tools::sandbox::{Confinement, NetworkState, TreeLimits};
use support::sandboxed::{Fixture, has_a_view, run, sandboxes, sandboxes_with_a_view, says};
use support::{has_python, has_python_for_a_part};

#[tokio::test]
async fn a_command_does_its_work_in_its_folders() {
    let rows = [
        ("pwd -P | sed \"s:$G::\"", "/w/src\n"),
        (
            "echo a > file && cat file && mv file moved && rm moved && mkdir -p a/b && rmdir a/b a && echo ok",
            "a\nok\n",
        ),
        ("echo b > $TMPDIR/x && cat $TMPDIR/x", "b\n"),
        ("cat $G/other/file", "of another"),
        (
            "echo discarded > /dev/null; head -c 3 /dev/zero | wc -c; [ -r /dev/urandom ] && echo ok",
            "3\nok\n",
        ),
        ("echo out >/dev/stderr; echo x | tee /dev/stdout | wc -l", "out\n2\n"),
        ("cat; read -t 0 x; exit 3", ""),
        ("mkfifo f && rm f && ln -s x y && rm y && ln $G/w/src/../.git/config z 2>/dev/null; echo $?", "1\n"),
    ];
    for sandbox in sandboxes(false, TreeLimits::default()).await {
        let fixture = Fixture::new();
        for (text, output) in rows {
            assert_eq!(says(&sandbox, &fixture, text).await, output, "{}: {text}", sandbox.in_force());
        }
    }
}

#[tokio::test]
async fn a_command_writes_nowhere_else() {
    let rows = [
        "echo x > $G/other/file",
        "echo x > $G/new",
        "rm -f $G/other/file",
        "mv $G/other $G/moved",
        "mkdir $G/folder",
        "ln -s /etc $G/link",
        "ln $G/other/file $G/w/src/hard && echo x > $G/w/src/hard",
        "ln -s $G/other w && echo x > w/file",
        "echo x > /proc/self/root$G/other/file",
        "echo x > /proc/self/cwd/../../other/file",
        "echo x > $G/w/.git/hooks/pre-commit",
        "mv $G/w/.git $G/w/moved && mkdir -p $G/w/.git/hooks && echo x > $G/w/.git/hooks/pre-commit",
        "rm -rf $G/w/.git && mkdir -p $G/w/.git/hooks && echo x > $G/w/.git/hooks/pre-commit",
        "truncate -s 0 $G/other/file",
        "for p in /proc/[0-9]*; do echo x > $p/root$G/other/file; done",
        "echo x > /etc/midturn-test",
        "echo x > /proc/sys/kernel/hostname",
        "cat /proc/sys/kernel/core_pattern > /proc/sys/kernel/core_pattern",
        "echo h > /proc/sysrq-trigger",
        "echo x > /sys/kernel/midturn-test",
        "unshare -Urm sh -c 'mount --bind /tmp /etc'",
        "mount -o remount,rw /",
        "umount $G/w/.git/hooks",
        "umount -l /",
        "mknod disk b 8 0",
        "chroot /",
        "nsenter -t 1 -m true",
    ];
    for sandbox in sandboxes(false, TreeLimits::default()).await {
        for text in rows {
            let fixture = Fixture::new();
            let output = says(&sandbox, &fixture, &format!("{text}; echo \"status $?\"")).await;
            let claim = format!("{}: {text}: {output}", sandbox.in_force());
            assert!(!output.ends_with("status 0\n"), "{claim}");
            assert_eq!(fs::read_to_string(fixture.at("other/file")).unwrap(), "of another", "{claim}");
            assert!(!fixture.at("w/.git/hooks/pre-commit").exists(), "{claim}");
            for path in ["new", "moved", "folder", "link"] {
                assert!(fixture.at(path).symlink_metadata().is_err(), "{claim}");
            }
        }
    }
}

#[tokio::test]
async fn with_a_view_not_even_modes_and_times_change_elsewhere() {
    let rows =
        ["chmod 777 $G/other/file", "touch $G/other/file", "chmod 777 $G/w/.git/hooks", "chown 1 /usr"];
    for sandbox in &sandboxes_with_a_view().await {
        let fixture = Fixture::new();
        for text in rows {
            let output = says(sandbox, &fixture, &format!("{text} && echo done")).await;
            assert!(output.contains("Read-only file system"), "{}: {text}: {output}", sandbox.in_force());
        }
    }
}

#[tokio::test]
async fn what_is_hidden_cannot_be_read_by_any_way() {
    let rows = [
        "cat $G/token $G/secret/key",
        "cat $G/secret/* $G/tok*",
        "ln -s $G/secret s; cat s/key; cat ../../token",
        "cat /proc/self/root$G/token",
        "for p in /proc/[0-9]*; do cat $p/root$G/token $p/cwd/../../token $p/environ; done",
        "cp $G/token copy && cat copy",
        "ln $G/token hard && cat hard",
        "mv $G/token moved; cat moved",
        "mv $G $G.moved; cat $G.moved/token",
    ];
    for sandbox in sandboxes(false, TreeLimits::default()).await {
        for text in rows {
            let fixture = Fixture::new();
            let output = says(&sandbox, &fixture, text).await;
            let claim = format!("{}: {text}: {output}", sandbox.in_force());
            assert!(!output.contains("the secret") && !output.contains("the token"), "{claim}");
            assert!(!output.contains("CARGO"), "our own environment: {claim}");
            assert_eq!(fs::read_to_string(fixture.at("token")).unwrap(), "the token", "{claim}");
        }
    }
}

#[tokio::test]
async fn a_protected_place_that_does_not_exist_cannot_be_made() {
    let rows = [
        "mkdir -p $G/w/.claude && echo x > $G/w/.claude/settings.json",
        "echo x > $G/w/.claude/settings.json",
        "echo x > $G/w/.claude",
        "mv $G/w/src $G/w/.claude",
        "ln -s /etc $G/w/.claude",
        "rmdir $G/w/.claude; mkdir $G/w/.claude && echo x > $G/w/.claude/settings.json",
    ];
    for sandbox in sandboxes(false, TreeLimits::default()).await {
        for text in rows {
            let fixture = Fixture::new();
            let mut confinement = fixture.confinement();
            confinement.read_only.push(fixture.at("w/.claude/settings.json"));
            let (_, output) = run(&sandbox, &fixture.command(text, confinement)).await.unwrap();
            let claim = format!("{}: {text}: {output}", sandbox.in_force());
            assert!(fixture.at("w/.claude").symlink_metadata().is_err(), "{claim}");
        }
    }
}

#[tokio::test]
async fn of_two_places_the_lower_one_holds() {
    for sandbox in sandboxes(false, TreeLimits::default()).await {
        let fixture = Fixture::new();
        fs::create_dir_all(fixture.at("state/mine/.git")).unwrap();
        fs::create_dir_all(fixture.at("state/theirs")).unwrap();
        fs::write(fixture.at("state/theirs/file"), "theirs").unwrap();
        let confinement = Confinement {
            writable: vec![fixture.at("state/mine")],
            read_only: vec![fixture.at("state/mine/.git")],
            hidden: vec![fixture.at("state")],
            readable: vec![fixture.at("w")],
            temporary: fixture.at("temporary"),
            ..Confinement::default()
        };
        let text = "touch $G/state/mine/.git/x; cat $G/state/theirs/file; mkdir -p $G/state/mine/new; ls $G/state/mine";
        let (_, output) = run(&sandbox, &fixture.command(text, confinement)).await.unwrap_or_else(|error| {
            // The folder it would run in is none of its own, but can be seen.
            panic!("{}: {error}", sandbox.in_force())
        });
        assert!(
            !output.contains("theirs\n") || output.contains("denied"),
            "{}: {output}",
            sandbox.in_force()
        );
        assert!(!fixture.at("state/mine/.git/x").exists(), "{}: {output}", sandbox.in_force());
        assert_eq!(fixture.at("state/mine/new").exists(), has_a_view(&sandbox), "{}", sandbox.in_force());
    }
}

#[tokio::test]
async fn nothing_is_reached_that_listens() {
    if !has_python() {
        return;
    }
    for sandbox in sandboxes(false, TreeLimits::default()).await {
        let fixture = Fixture::new();
        let _file = UnixListener::bind(fixture.at("other/socket")).unwrap();
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = tcp.local_addr().unwrap().port();
        let name = format!("midturn-test-{}", std::process::id());
        let address = {
            use std::os::linux::net::SocketAddrExt as _;
            std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap()
        };
        let _abstract = UnixListener::bind_addr(&address).unwrap();
        let python = format!(
            "import socket, os\n\
             for family, to in [(socket.AF_UNIX, os.environ['G'] + '/other/socket'), (socket.AF_UNIX, '\\0{name}'),\n\
             \x20   (socket.AF_INET, ('127.0.0.1', {port})), (socket.AF_INET, ('169.254.169.254', 80))]:\n\
             \x20   try:\n\
             \x20       s = socket.socket(family); s.settimeout(5); s.connect(to); print('reached', to)\n\
             \x20   except OSError as e: print('refused')\n"
        );
        fs::write(fixture.at("w/reach.py"), python).unwrap();
        let output = says(&sandbox, &fixture, "python3 ../reach.py").await;
        assert_eq!(output, "refused\n".repeat(4), "{}", sandbox.in_force());
    }
}

#[tokio::test]
async fn an_open_network_opens_nothing_else() {
    if !has_python() {
        return;
    }
    for sandbox in sandboxes(true, TreeLimits::default()).await {
        assert_eq!(sandbox.in_force().network, NetworkState::Open);
        let fixture = Fixture::new();
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = tcp.local_addr().unwrap().port();
        let name = format!("midturn-open-{}", std::process::id());
        let address = {
            use std::os::linux::net::SocketAddrExt as _;
            std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap()
        };
        let _abstract = UnixListener::bind_addr(&address).unwrap();
        let _file = UnixListener::bind(fixture.at("other/socket")).unwrap();
        let python = format!(
            "import socket, os\n\
             for family, to in [(socket.AF_INET, ('127.0.0.1', {port})), (socket.AF_UNIX, '\\0{name}'),\n\
             \x20   (socket.AF_UNIX, os.environ['G'] + '/other/socket')]:\n\
             \x20   try:\n\
             \x20       s = socket.socket(family); s.connect(to); print('reached')\n\
             \x20   except OSError as e: print('refused')\n"
        );
        fs::write(fixture.at("w/reach.py"), python).unwrap();
        let output = says(&sandbox, &fixture, "python3 ../reach.py").await;
        assert_eq!(output, "reached\nrefused\nrefused\n", "{}", sandbox.in_force());
    }
}

#[tokio::test]
async fn no_other_process_can_be_touched() {
    let rows = [
        // Our own number, and the supervisor's.
        "kill -9 $US",
        "kill -STOP $PPID && [ $PPID != 1 ]",
        "prlimit --pid $US --cpu=1:1",
        "cat /proc/$US/environ",
        "cat /proc/$PPID/environ",
        "cat /proc/$PPID/maps",
        "readlink /proc/$PPID/fd/0",
        "echo x > /proc/$PPID/mem",
        "readlink /proc/$US/fd/0",
        "strace -p $PPID",
        "python3 -c 'import os, ctypes; l = ctypes.CDLL(None); exit(l.ptrace(16, os.getppid(), 0, 0) != 0)'",
    ];
    // Without it the last row would hold of anything.
    let rows = if has_python_for_a_part() { &rows[..] } else { &rows[..rows.len() - 1] };
    for sandbox in sandboxes(false, TreeLimits::default()).await {
        let fixture = Fixture::new();
        for text in rows {
            let text = format!("US={}; {text}; echo \"status $?\"", std::process::id());
            let output = says(&sandbox, &fixture, &text).await;
            assert!(!output.ends_with("status 0\n"), "{}: {text}: {output}", sandbox.in_force());
        }
    }
}

#[tokio::test]
async fn nothing_is_inherited_but_three_streams_and_no_privilege_comes_back() {
    let rows = [
        ("ls /proc/self/fd | tr '\\n' ' '", "0 1 2 3 "),
        ("readlink /proc/self/fd/0", "/dev/null\n"),
        ("grep -E 'Cap(Inh|Prm|Eff|Amb)' /proc/self/status | cut -f2 | sort -u", "0000000000000000\n"),
        ("grep NoNewPrivs /proc/self/status", "NoNewPrivs:\t1\n"),
        ("grep Seccomp: /proc/self/status", "Seccomp:\t2\n"),
        // But for the two that the C library uses itself.
        ("grep -c 'SigIgn:.*[08]0000000$' /proc/self/status", "1\n"),
        ("ulimit -c; ulimit -n", "0\n1024\n"),
        ("unshare -U true 2>/dev/null; echo $?", "1\n"),
        ("keyctl show >/dev/null 2>&1; echo $? | tr -d 0", "127\n"),
        ("tty", "not a tty\n"),
    ];
    // One that is not closed when a program is executed, as a shell might leave us.
    let leaked = fs::File::open("/etc/passwd").unwrap();
    rustix::io::fcntl_setfd(&leaked, rustix::io::FdFlags::empty()).unwrap();
    for sandbox in sandboxes(false, TreeLimits::default()).await {
        let fixture = Fixture::new();
        for (text, output) in rows {
            let said = says(&sandbox, &fixture, text).await;
            // Not everybody has the keys' program; who has it is refused.
            assert!(said == output || text.starts_with("keyctl"), "{}: {text}: {said}", sandbox.in_force());
        }
    }
}

/// C18: such a program would be another user's way to the person's rights.
#[tokio::test]
async fn no_program_is_made_that_runs_as_its_owner() {
    let text = "touch f; for m in 4755 2755 u+s,g+s; do chmod $m f 2>&1 | grep -c permitted; done; \
        install -m 6711 f g 2>/dev/null; chmod 751 f; mkdir -m 1777 d; stat -c '%a %n' f d; find . -perm /6000";
    for sandbox in sandboxes(false, TreeLimits::default()).await {
        let said = says(&sandbox, &Fixture::new(), text).await;
        assert_eq!(said, "1\n1\n1\n751 f\n1777 d\n", "{}", sandbox.in_force());
    }
}

#[tokio::test]
async fn a_view_shows_its_own_processes_and_tmp_only() {
    for sandbox in &sandboxes_with_a_view().await {
        let fixture = Fixture::new();
        let rows = [
            ("cat /proc/1/cmdline | tr '\\0' ' ' | grep -o __supervise", "__supervise\n"),
            ("set /proc/[0-9]*; echo $#", "2\n"),
            ("echo kept > /tmp/midturn-kept; cat $TMPDIR/midturn-kept", "kept\n"),
            ("cat /tmp/midturn-kept", "kept\n"),
            ("ls -A /run | grep -v -e systemd -e current-system -e booted-system -e opengl", ""),
            ("ls /dev | grep -e sd -e vd -e mem -e kmsg", ""),
        ];
        let of_python = [
            ("python3 -c 'import pty; pty.openpty(); print(1)'", "1\n"),
            ("python3 -c 'import multiprocessing as m; m.Lock(); print(1)'", "1\n"),
            (
                "python3 -c 'import socket as s; l = s.socket(); l.bind((\"127.0.0.1\", 0)); l.listen(); \
                 s.create_connection(l.getsockname()); print(1)'",
                "1\n",
            ),
        ];
        let of_python = of_python.into_iter().filter(|_| has_python_for_a_part());
        for (text, output) in rows.into_iter().chain(of_python) {
            assert_eq!(says(sandbox, &fixture, text).await, output, "{}: {text}", sandbox.in_force());
        }
        assert!(!Path::new("/tmp/midturn-kept").exists());
    }
}

#[tokio::test]
async fn what_runs_at_the_same_time_shares_stand_ins() {
    for sandbox in &sandboxes_with_a_view().await {
        let fixture = Fixture::new();
        let mut confinement = fixture.confinement();
        confinement.read_only.push(fixture.at("w/.claude/settings.json"));
        let command = |text: &str| fixture.command(text, confinement.clone());
        let (first, second) = (
            command("mkfifo p; read x < p; touch ../.claude/x"),
            command("touch ../.claude/x; until [ -p p ]; do :; done; echo x > p"),
        );
        let (first, second) = tokio::join!(run(sandbox, &first), run(sandbox, &second));
        assert_eq!(
            (first.unwrap().0.status, second.unwrap().0.status),
            (ExitStatus::Exited(1), ExitStatus::Exited(0))
        );
        assert!(!fixture.at("w/.claude").exists());
    }
}
