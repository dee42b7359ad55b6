# Starts the driver in the background, as `sh run.sh` with flags does in the foreground. What it keeps and says is in run/.
mkdir -p run
if [ -f run/pid ]; then
  pid=$(cat run/pid)
  # A dead process of which nobody has taken note (Z) is none, once its last thread has ended: until then its socket is open.
  if kill -0 "$pid" 2>/dev/null && ! { grep -qs '^State:.Z' "/proc/$pid/status" && grep -qs '^Threads:.[01]$' "/proc/$pid/status"; }; then
    echo "process $pid of run/pid runs: end it with kill $pid, or remove run/pid if that is another program" >&2
    exit 1
  fi
  rm run/pid
fi
touch run/log
before=$(wc -l <run/log)
sh run.sh --address="unix://$PWD/run/driver.sock" --state-directory=run/state --cloud=run/cloud "$@" >>run/log 2>&1 &
for _ in $(seq 600); do
  sleep 0.1
  if tail -n "+$((before + 1))" run/log | grep -q '"msg":"serving"'; then
    echo $! >run/pid
    exit 0
  fi
  kill -0 $! 2>/dev/null || { echo "it has ended; the end of run/log:" >&2; tail -n 5 run/log >&2; exit 1; }
done
kill -9 $!
echo "it does not say in run/log that it serves" >&2
exit 1
