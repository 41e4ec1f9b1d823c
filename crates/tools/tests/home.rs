//! What commands see of a person's machine: a root from a list, a home of their own, caches that stay as they are,
//! folders in memory that are bounded. In every kind of sandbox that this machine has.

#![allow(clippy::unwrap_used, reason = "this is all test code")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;

use midturn_tools::sandbox::{Cache, Confinement, Exceeded, InMemory, Own, Sandbox, TreeLimits};
use support::has_python;
use support::sandboxed::{Fixture, has_a_view, run, sandboxes, sandboxes_with_a_view};

/// What a person has at home: keys of programs that nobody thought of, a tool, a cache.
fn at_home() -> (Fixture, Confinement) {
    let fixture = Fixture::new();
    let files = [
        ".gemini/oauth_creds.json",
        ".config/rclone/rclone.conf",
        ".config/midturn/midturn.toml",
        ".whatever/token",
        ".npm/.npmrc",
        ".npm/kept",
        ".tools/bin/tool",
    ];
    for file in files {
        let path = fixture.at("home").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "of the person\n").unwrap();
    }
    fs::create_dir(fixture.at("own")).unwrap();
    fs::write(fixture.at("home/.tools/bin/tool"), "#!/bin/sh\necho a tool\n").unwrap();
    fs::set_permissions(fixture.at("home/.tools/bin/tool"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut confinement = fixture.confinement();
    confinement.readable.push(fixture.at("home/.tools"));
    confinement.own.push(Own { at: fixture.at("home"), from: fixture.at("own") });
    confinement.caches.push(Cache { at: fixture.at("home/.npm"), above: fixture.at("above") });
    confinement.hidden.push(fixture.at("home/.npm/.npmrc"));
    (fixture, confinement)
}

async fn said(sandbox: &Sandbox, fixture: &Fixture, confinement: &Confinement, text: &str) -> String {
    match run(sandbox, &fixture.command(text, confinement.clone())).await {
        Ok((_, output)) => output,
        Err(error) => panic!("{}: {error}", sandbox.in_force()),
    }
}

/// C14.
#[tokio::test]
async fn of_a_home_nothing_can_be_read_but_what_is_let_in() {
    let rows = [
        ("cat $G/home/.gemini/oauth_creds.json $G/home/.config/rclone/rclone.conf; echo .", "."),
        ("cat $G/home/.whatever/token $G/home/.config/midturn/midturn.toml $G/home/.npm/.npmrc; echo .", "."),
        ("grep -rs 'of the person' $G/home --exclude=kept; echo .", "."),
        ("cat /proc/self/root$G/home/.whatever/token; cat ../../home/.whatever/token; echo .", "."),
        ("$G/home/.tools/bin/tool", "a tool"),
        ("cat $G/home/.npm/kept", "of the person"),
        ("echo x > $G/home/.tools/bin/tool; echo x > $G/home/.tools/new; echo .", "."),
    ];
    for sandbox in sandboxes(false, TreeLimits::default()).await {
        let (fixture, confinement) = at_home();
        for (text, last) in rows {
            let output = said(&sandbox, &fixture, &confinement, &format!("{text} 2>/dev/null")).await;
            let claim = format!("{}: {text}: {output}", sandbox.in_force());
            assert_eq!(output.lines().next_back(), Some(last), "{claim}");
            assert_eq!(output.contains("of the person"), last == "of the person", "{claim}");
        }
        assert!(!fixture.at("home/.tools/new").exists());
    }
}

#[tokio::test]
async fn what_is_in_no_list_is_not_there() {
    for sandbox in &sandboxes_with_a_view().await {
        let (fixture, confinement) = at_home();
        let text = "ls / | tr '\\n' ' '; echo; ls -A $G | tr '\\n' ' '; echo; ls -A /srv /sys /boot /mnt 2>/dev/null";
        let output = said(sandbox, &fixture, &confinement, text).await;
        let [root, own] = [0, 1].map(|line| output.lines().nth(line).unwrap().split(' ').collect::<Vec<_>>());
        for name in ["boot", "media", "mnt", "srv", "sys", "sbin/init"] {
            assert!(!root.contains(&name), "{}: {name}: {output}", sandbox.in_force());
        }
        for name in ["usr", "etc", "bin", "proc", "dev", "tmp"] {
            assert!(root.contains(&name), "{}: {name}: {output}", sandbox.in_force());
        }
        assert_eq!(own, ["home", "other", "temporary", "w", ""], "{}: {output}", sandbox.in_force());
        assert_eq!(output.lines().count(), 2, "{}: {output}", sandbox.in_force());
    }
}

#[tokio::test]
async fn a_home_of_its_own_stays_between_commands_and_the_persons_is_as_it_was() {
    for sandbox in &sandboxes_with_a_view().await {
        let (fixture, confinement) = at_home();
        let first = "ls -A $G/home; mkdir $G/home/.config && echo mine > $G/home/.config/x; \
            mv $G/home/.npm $G/home/x; rmdir $G/home/.npm; mv $G/home/.tools $G/home/y; echo .";
        let output = said(sandbox, &fixture, &confinement, &format!("({first}) 2>/dev/null")).await;
        assert_eq!(output, ".npm\n.tools\n.\n", "{}", sandbox.in_force());
        let output = said(sandbox, &fixture, &confinement, "cat $G/home/.config/x").await;
        assert_eq!(output, "mine\n", "{}", sandbox.in_force());
        assert!(!fixture.at("home/.config/x").exists());
        assert_eq!(fs::read_to_string(fixture.at("own/.config/x")).unwrap(), "mine\n");
        // What the agent puts in the place of something stays, and is not gone through.
        fs::remove_dir(fixture.at("own/.tools")).unwrap();
        std::os::unix::fs::symlink(fixture.at("secret"), fixture.at("own/.tools")).unwrap();
        let output = said(sandbox, &fixture, &confinement, "ls -A $G/home/.tools/ 2>/dev/null; echo .").await;
        assert_eq!(output, ".\n", "{}", sandbox.in_force());
        assert_eq!(fs::read_dir(fixture.at("secret")).unwrap().count(), 1);
    }
}

#[tokio::test]
async fn a_cache_is_added_to_and_stays_as_it_was() {
    for sandbox in &sandboxes(false, TreeLimits::default()).await {
        let (fixture, confinement) = at_home();
        let text =
            "cd $G/home/.npm && cat kept && echo mine > new && echo changed > kept && mkdir d && rm kept";
        let output = said(sandbox, &fixture, &confinement, &format!("({text}) 2>&1; ls $G/home/.npm")).await;
        let claim = format!("{}: {output}", sandbox.in_force());
        let person = fixture.at("home/.npm");
        assert_eq!(fs::read_to_string(person.join("kept")).unwrap(), "of the person\n", "{claim}");
        assert!(!person.join("new").exists() && !person.join("d").exists(), "{claim}");
        let can_be_added_to =
            has_a_view(sandbox) && sandbox.in_force().tier != midturn_tools::sandbox::Tier::Bubblewrap;
        if can_be_added_to {
            assert_eq!(output, "of the person\nd\nnew\n", "{claim}");
            let again =
                said(sandbox, &fixture, &confinement, "cat $G/home/.npm/new; cat $G/home/.npm/.npmrc").await;
            assert_eq!(again, "mine\n", "{claim}");
        } else {
            assert!(output.contains("Read-only") || output.contains("denied"), "{claim}");
            assert!(sandbox.in_force().notes.iter().any(|note| note.contains("caches")), "{claim}");
        }
        // What the system needs beside it would keep the folder from being removed. It goes with its anchor.
        while fixture.at("above/work/work").exists() {
            tokio::task::yield_now().await;
        }
    }
}

/// C6: by place, not by name.
#[tokio::test]
async fn sockets_that_are_let_in_with_their_folder_lead_nowhere() {
    if !has_python() {
        return;
    }
    for sandbox in sandboxes(false, TreeLimits::default()).await {
        let (fixture, mut confinement) = at_home();
        let _listed = UnixListener::bind(fixture.at("home/.tools/listed")).unwrap();
        let _cached = UnixListener::bind(fixture.at("home/.npm/cached")).unwrap();
        // Places that nobody lets in, by names that nobody knows.
        let _elsewhere = UnixListener::bind(fixture.at("before")).unwrap();
        fs::create_dir(fixture.at("elsewhere")).unwrap();
        fs::rename(fixture.at("before"), fixture.at("elsewhere/after")).unwrap();
        // The list covers it, however it is called by now.
        let _moved = UnixListener::bind(fixture.at("home/.tools/before")).unwrap();
        fs::rename(fixture.at("home/.tools/before"), fixture.at("home/.tools/after")).unwrap();
        confinement.hidden.push(fixture.at("home/.tools/after"));
        let python = "import socket, os\n\
            for name in ['home/.tools/listed', 'home/.npm/cached', 'elsewhere/after', 'home/.tools/after']:\n\
            \x20   try:\n\
            \x20       s = socket.socket(socket.AF_UNIX); s.connect(os.environ['G'] + '/' + name); print('reached', name)\n\
            \x20   except OSError as e: print('refused')\n";
        fs::write(fixture.at("w/reach.py"), python).unwrap();
        let output = said(&sandbox, &fixture, &confinement, "python3 ../reach.py").await;
        assert_eq!(output, "refused\n".repeat(4), "{}", sandbox.in_force());
    }
}

/// C16.
#[tokio::test]
async fn folders_in_memory_are_bounded_and_a_full_one_is_said() {
    let limits = TreeLimits { memory: 128 << 20, ..TreeLimits::default() };
    for sandbox in sandboxes(false, limits).await.iter().filter(|sandbox| has_a_view(sandbox)) {
        let fixture = Fixture::new();
        let text = "head -c 300M /dev/zero > /dev/shm/x 2>/dev/null; stat -c %s /dev/shm/x";
        let (ended, output) = run(sandbox, &fixture.command(text, fixture.confinement())).await.unwrap();
        let claim = format!("{}: {output}", sandbox.in_force());
        assert_eq!(output, format!("{}\n", 32 << 20), "{claim}");
        assert_eq!(ended.exceeded, Some(Exceeded::Folder(InMemory::Shared, 32 << 20)), "{claim}");
        let (ended, output) =
            run(sandbox, &fixture.command("ls -A /dev/shm", fixture.confinement())).await.unwrap();
        assert_eq!((ended.exceeded, &*output), (None, ""), "{claim}");
    }
}

/// Where places are below `/tmp`, it is in memory, too.
#[tokio::test]
async fn a_tmp_in_memory_is_bounded() {
    let limits = TreeLimits { memory: 128 << 20, ..TreeLimits::default() };
    for sandbox in sandboxes(false, limits).await.iter().filter(|sandbox| has_a_view(sandbox)) {
        let fixture = Fixture::new();
        let there = tempfile::tempdir_in("/tmp").unwrap();
        let mut confinement = fixture.confinement();
        confinement.writable.push(there.path().to_owned());
        let text = "head -c 300M /dev/zero > /tmp/x 2>/dev/null; stat -c %s /tmp/x";
        let (ended, output) = run(sandbox, &fixture.command(text, confinement)).await.unwrap();
        let claim = format!("{}: {output}", sandbox.in_force());
        assert_eq!(output, format!("{}\n", 32 << 20), "{claim}");
        assert_eq!(ended.exceeded, Some(Exceeded::Folder(InMemory::Temporary, 32 << 20)), "{claim}");
    }
}
