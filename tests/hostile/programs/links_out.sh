# Makes links that lead out of the worktree, for the coordinator's own tools to follow, and writes
# through them itself, unless there is a $4. $1: a folder outside, $2: a file there, $3: a secret.
ln -s "$1" folder
ln -s "$2" file
ln -s "$3" secret
ln -s "$1/new-through-a-link" new
ln -s /proc/self/root/etc/hostname by-proc
ln -s "/proc/self/root$1" folder-by-proc
mkdir -p deep/er
ln -s ../../folder deep/er/there
ln -s loop loop
mkfifo pipe
[ -n "$4" ] && echo done && exit
ln "$2" hard 2>/dev/null && echo "escaped: a hard link to $2"
echo hostile >>folder/by-shell && echo "did: write through folder"
echo hostile >>file && echo "did: write through file"
echo hostile >>new && echo "did: write through new"
echo done
