# Starts the driver in the background, as `sh run.sh` with flags does in the foreground. What it keeps and says is in run/.
mkdir -p run
sh run.sh --address="unix://$PWD/run/driver.sock" --state-directory=run/state --cloud=run/cloud "$@" >>run/log 2>&1 &
for _ in $(seq 30); do
  sleep 0.1
  kill -0 $! 2>/dev/null || { echo "it has ended; the end of run/log:" >&2; tail -n 5 run/log >&2; exit 1; }
  [ -S run/driver.sock ] && break
done
echo $! >run/pid
