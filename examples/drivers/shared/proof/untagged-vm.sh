# Makes a VM as another tool did: named as its machine, and without our tags.
id="folder-driver:///untagged/$MACHINE_NAME"
file=$(printf %s "$id" | sha256sum | cut -d ' ' -f 1)
cat >"run/cloud/$file.json" <<EOF
{ "providerID": "$id", "cluster": "", "namespace": "$MACHINE_NAMESPACE", "className": "$MACHINE_CLASS", "machineName": "$MACHINE_NAME" }
EOF
