# Makes a VM as another tool did: named as its machine, and without our tags, neither cluster nor namespace, class or UID.
id="folder-driver:///untagged/$MACHINE_NAME"
file=$(printf %s "$id" | sha256sum | cut -d ' ' -f 1)
cat >"run/cloud/$file.json" <<EOF
{ "providerID": "$id", "cluster": "", "namespace": "", "className": "", "machineName": "$MACHINE_NAME" }
EOF
