//! What agents try on the project's repository from their own, and what they hand over (issue 13; C1 to C4).
#![allow(clippy::unwrap_used, reason = "this is all test code")]

mod support;

use midturn_core::engine::ports::{Merge, Workplace as _};
use support::name;
use support::own::{ME, Place, bash, ended, sandbox, sandboxes};
use support::project::{content, differences};

/// What an agent tries on the project and on the others (C1 to C3); `$P` is the project's git folder.
const ATTACKS: [&str; 12] = [
    "rm -rf $P/objects/??; rm -rf $P/objects/pack",
    "rm -rf \"$(git rev-parse --git-common-dir)\"/objects/??",
    "f=$P/objects/$(git rev-parse HEAD:a.txt | sed 's|^..|&/|'); chmod u+w $f; cp /bin/true $f; rm -f $f; cp /bin/true $f",
    "for f in $(find $P/objects -type f); do : > $f; mv $f $f.x; ln -f $f here; done",
    "git update-ref refs/heads/main HEAD~0; git branch -f midturn/s1/other HEAD; git push -q $P HEAD:refs/heads/main",
    "echo 0000 > $P/refs/heads/midturn/s1/other; rm -rf $P/refs $P/packed-refs",
    "git --git-dir=$P update-ref -d refs/heads/midturn/s1/other; git --git-dir=$P config core.fsmonitor x",
    "git --git-dir=$P worktree add /tmp/wt; git clone -q $P cloned; git -C $P gc --prune=now",
    "ln -s $P/objects .git/objects/x; mv .git/objects .git/o; ln -s $P/objects .git/objects; git commit -q --allow-empty -m m; echo y | git hash-object -w --stdin; git gc -q --prune=now; git repack -adfq; git prune",
    "rm .git/objects/info/alternates; git fsck; git prune; git gc -q --prune=now",
    "cp -r $P/objects mine; git replace HEAD $(git commit-tree -m r HEAD^{tree}); git filter-branch -f --msg-filter 'cat; echo x' HEAD",
    "echo x > $P/objects/info/alternates; echo x > $P/config; echo x > $P/index; touch $P/objects/pack/x.keep",
];

#[tokio::test]
async fn no_agent_changes_what_is_the_projects_or_anothers() {
    for sandbox in sandboxes().await {
        let place = Place::with_a_commit();
        let workplace = place.workplace(&sandbox);
        bash(&workplace, "other", &format!("echo o > o.txt; git add .; {ME} commit -qm o")).await;
        ended(&workplace, "other").await;
        bash(&workplace, "w", "true").await;
        let own = place.at("project/.git");
        let before = content(&own);
        for attack in ATTACKS {
            let attack = attack.replace("$P", own.to_str().unwrap());
            bash(&workplace, "w", &format!("exec 2>/dev/null; {attack}")).await;
            let changed = differences(&before, &content(&own));
            assert!(changed.is_empty(), "{}: {attack}: {changed:?}", sandbox.in_force());
        }
        place.git(&["fsck", "--strict"]);
    }
}

/// C2: an object that shadows one of the project's is seen by the agent alone, and hides nothing.
#[tokio::test]
async fn a_forged_object_deceives_neither_diff_nor_merge() {
    for sandbox in sandboxes().await {
        let place = Place::with_a_commit();
        let workplace = place.workplace(&sandbox);
        // The evil text under the name of the one that everybody knows.
        let forge = "good=$(git rev-parse HEAD:a.txt); evil=$(echo evil | git hash-object -w --stdin); \
                     of() { echo .git/objects/$(echo $1 | sed 's|^..|&/|'); }; mkdir -p $(dirname $(of $good)); \
                     mv $(of $evil) $(of $good); git cat-file blob $good; echo x > x.txt";
        let output = bash(&workplace, "w", forge).await;
        let claim = format!("{}: {}", sandbox.in_force(), output.text);
        let changes = ended(&workplace, "w").await;
        let diff = workplace.diff(&name("w")).await;
        if let Ok(diff) = &diff {
            assert!(!diff.patch.contains("evil"), "{claim}: {diff:?}");
        }
        let merged = workplace.merge(&name("w")).await;
        assert_eq!(
            std::fs::read_to_string(place.at("project/a.txt")).unwrap(),
            "one\n",
            "{claim}: {merged:?} {changes:?}"
        );
        assert_eq!(place.git(&["show", "midturn/s1/w:a.txt"]), "one", "{claim}");
        place.git(&["fsck", "--strict"]);
    }
}

/// What an agent writes into trees by hand; what is said of it. The branch stays where it was.
const BY_HAND: [(&str, &str, &str); 6] = [
    (
        "a folder of git's",
        "printf '100644 blob %s\\tconfig\\n' $blob | git mktree | xargs printf '040000 tree %s\\t.git\\n' | git mktree",
        "hasDotgit",
    ),
    (
        "the same in another case",
        "printf '100644 blob %s\\tconfig\\n' $blob | git mktree | xargs printf '040000 tree %s\\t.GIT\\n' | git mktree",
        "hasDotgit",
    ),
    (
        "a folder above",
        "printf '100644 blob %s\\tx\\n' $blob | git mktree | xargs printf '040000 tree %s\\t..\\n' | git mktree",
        "hasDotdot",
    ),
    (
        "orders behind a link",
        "printf '120000 blob %s\\t.gitattributes\\n' $blob | git mktree",
        "takes orders from it",
    ),
    (
        "settings of submodules behind a link",
        "printf '120000 blob %s\\t.gitmodules\\n' $blob | git mktree",
        "gitmodulesSymlink",
    ),
    (
        "an option in place of an address",
        "printf '[submodule \"x\"]\\n\\tpath = x\\n\\turl = -u./evil\\n' | git hash-object -w --stdin | xargs printf '100644 blob %s\\t.gitmodules\\n' | git mktree",
        "gitmodulesUrl",
    ),
];

#[tokio::test]
async fn what_nobody_makes_by_git_add_does_not_come_back() {
    let sandbox = sandbox().await;
    for (claim, tree, says) in BY_HAND {
        let place = Place::with_a_commit();
        let workplace = place.workplace(&sandbox);
        // In a commit that the next one hides.
        let command = format!(
            "blob=$(echo evil | git hash-object -w --stdin); tree=$({tree}); \
             evil=$({ME} commit-tree $tree -p HEAD -m evil); \
             git update-ref refs/heads/midturn/s1/w $({ME} commit-tree HEAD^{{tree}} -p $evil -m good)"
        );
        let output = bash(&workplace, "w", &command).await;
        assert!(!output.is_error, "{claim}: {}", output.text);
        let (tip, before) = (place.git(&["rev-parse", "midturn/s1/w"]), content(&place.at("project/.git")));
        let changes = ended(&workplace, "w").await;
        let notes = changes.notes.join("; ");
        assert!(
            notes.contains(says) && notes.contains("midturn/s1/w stays where it was (commit "),
            "{claim}: {notes}"
        );
        let Merge::Refused(why) = workplace.merge(&name("w")).await.unwrap() else { panic!("{claim}") };
        assert!(why.contains(says), "{claim}: {why}");
        assert_eq!(place.git(&["rev-parse", "midturn/s1/w"]), tip, "{claim}");
        let changed = differences(&before, &content(&place.at("project/.git")));
        assert!(changed.is_empty(), "{claim}: {changed:?}");
    }
}
