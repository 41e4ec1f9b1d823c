# What a command says plainly: its environment, and a key that lies in a file of the project.
env
cat key.txt
cat key.txt >&2
printf 'in pieces: '; while IFS= read -r -n 1 c; do printf '%s' "$c"; sleep 0.001; done <key.txt; echo
echo done
