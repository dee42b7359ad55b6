# Ends the driver as a crash would, and starts it again.
pid=$(cat run/pid) && kill -9 "$pid" || exit 1
# Until it has gone with all its threads, whether somebody takes note of that or not (Z).
for _ in $(seq 300); do
  kill -0 "$pid" 2>/dev/null || break
  grep -qs '^State:.Z' "/proc/$pid/status" && grep -qs '^Threads:.[01]$' "/proc/$pid/status" && break
  sleep 0.1
done
exec sh start.sh
