# DRIVER_NODE: another one than the first of the PATH.
node=${DRIVER_NODE:-node}
if ! "$node" -e 'const [major, minor] = process.versions.node.split(".").map(Number); process.exit(major > 24 || (major === 24 && minor >= 12) ? 0 : 1)'; then
  echo "this driver needs Node 24.12 or newer, but $node is $("$node" --version): set DRIVER_NODE to the path of a newer one" >&2
  exit 1
fi
exec "$node" main.ts "$@"
