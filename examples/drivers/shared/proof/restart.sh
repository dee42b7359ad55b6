# Ends the driver as a crash would, and starts it again.
pid=$(cat run/pid) && kill -9 "$pid" || exit 1
# Until it has gone; 5 s where nobody takes note of dead processes.
for _ in $(seq 50); do
  kill -0 "$pid" 2>/dev/null || break
  sleep 0.1
done
exec sh start.sh
