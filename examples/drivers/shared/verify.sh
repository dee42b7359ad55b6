# Holds the driver that `start.sh` has started to every rule of the contract. MACHINIST says how machinist is called, if not by its name.
exec ${MACHINIST:-machinist} driver verify --address="unix://$PWD/run/driver.sock" \
  --class=proof/class.yaml --secret=proof/secret.yaml --bad-class=proof/bad-class.yaml --bad-secret=proof/bad-secret.yaml \
  --restart-command='sh proof/restart.sh' --untagged-vm-command='sh proof/untagged-vm.sh' "$@"
