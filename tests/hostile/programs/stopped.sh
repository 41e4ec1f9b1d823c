# Stops itself and what it has started: a stopped process takes no SIGTERM.
for _ in 1 2 3; do
    setsid sleep 60 &
    kill -STOP $!
done
echo done
kill -STOP $$
sleep 60
