# Leads the coordinator's own git to another repository, or to another branch, or has it look into a
# repository in the repository. $1: the way, $2: where a program that ran leaves its evidence.
evil=$PWD/evil.sh
printf '#!/bin/sh\necho "$0 $*" >>%s\ncat\n' "$2" >"$evil"
chmod 755 "$evil"
export GIT_AUTHOR_NAME=h GIT_AUTHOR_EMAIL=h@example.org GIT_COMMITTER_NAME=h GIT_COMMITTER_EMAIL=h@example.org
planted() { # a repository whose settings are programs
    git -C "$1" config core.fsmonitor "$evil"
    git -C "$1" config filter.evil.clean "$evil clean"
    git -C "$1" config filter.evil.smudge "$evil smudge"
    git -C "$1" config filter.evil.process "$evil process"
    git -C "$1" config diff.evil.command "$evil diff"
    git -C "$1" config diff.external "$evil"
    git -C "$1" config core.hooksPath "$PWD"
    printf '* filter=evil diff=evil\n' >"$1/.gitattributes"
}
for hook in pre-commit post-commit post-checkout reference-transaction post-index-change; do cp "$evil" $hook; done
# A repository that looks like the one it takes the place of: the same branch, the same files.
branch=$(git symbolic-ref HEAD)
alike() { # $1: the work tree, and what its git needs
    git "${@:2}" symbolic-ref HEAD "$branch" && git "${@:2}" add . 2>/dev/null && git "${@:2}" commit --quiet --message first
}
case $1 in
replaced) # the worktree's `.git` is a repository of its own
    rm -rf .git 2>/dev/null || mv .git gone 2>/dev/null
    git init --quiet . && alike . && planted .
    ;;
pointed) # it names another folder
    export GIT_DIR=$PWD/fake GIT_WORK_TREE=$PWD
    git init --quiet && alike .
    planted .
    unset GIT_DIR GIT_WORK_TREE
    rm -f .git 2>/dev/null || mv .git gone 2>/dev/null
    printf 'gitdir: %s/fake\n' "$PWD" >.git
    ;;
linked) # it is a link
    git init --quiet other && cp README key.txt other && alike other -C other && planted other
    rm -f .git 2>/dev/null || mv .git gone 2>/dev/null
    ln -s other/.git .git && cp other/.gitattributes .
    ;;
nested) # a repository in it, in its index
    git init --quiet nested && echo a >nested/a && git -C nested add a && git -C nested commit --quiet --message first
    planted nested
    git -c core.fsmonitor=false add nested 2>/dev/null
    printf '[submodule "nested"]\n\tpath = nested\n\turl = ./nested\n\tignore = none\n' >.gitmodules
    # As long as before and newer: whoever looks has to run the filter.
    printf 'b\n' >nested/a; touch -d '+1 hour' nested/a
    ;;
main) # the branch of the person
    git symbolic-ref HEAD refs/heads/main
    ;;
neighbour) # the branch of another agent
    git symbolic-ref HEAD "$(git for-each-ref --format='%(refname)' | grep '/neighbour$' | head -n 1)"
    ;;
work-tree) # git shall work on another folder
    git config --worktree core.worktree "$3" || git config core.worktree "$3"
    ;;
esac
echo change >change.txt
echo changed! >README; touch -d '+1 hour' key.txt README
rm -f "$2" 2>/dev/null # what I did myself is no evidence
echo done
