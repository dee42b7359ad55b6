# Ends the driver as a crash would, and starts it again.
pid=$(cat run/pid) && kill -9 "$pid" || exit 1
# Until it has gone, whether somebody takes note of that or not (Z).
for _ in $(seq 50); do
  kill -0 "$pid" 2>/dev/null && ! grep -qs '^State:.Z' "/proc/$pid/status" || break
  sleep 0.1
done
exec sh start.sh
