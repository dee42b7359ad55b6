# Starts the driver in the background. What it keeps and says is in run/.
mkdir -p run
./folder-driver --address="unix://$PWD/run/driver.sock" --state-directory=run/state --cloud=run/cloud "$@" >>run/log 2>&1 &
echo $! >run/pid
