# Ignores every signal that can be ignored, in several sessions.
trap '' TERM HUP INT QUIT USR1 USR2 PIPE
for _ in 1 2 3; do
    setsid bash -c "trap '' TERM HUP INT QUIT; end=\$((SECONDS + 60)); while [ \$SECONDS -lt \$end ]; do sleep 1; done" &
done
echo done
end=$((SECONDS + 60))
while [ $SECONDS -lt $end ]; do sleep 1; done
