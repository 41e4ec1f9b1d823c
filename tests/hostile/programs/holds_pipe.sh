# Ends at once and leaves others that hold its output open.
sleep 60 &
setsid sleep 60 &
(setsid sleep 60 2>&1 &)
echo done
