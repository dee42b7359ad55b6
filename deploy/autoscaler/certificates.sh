#!/bin/sh
# Makes an authority, and certificates of a year for Machinist's port and for the cluster-autoscaler, in the folder that is given; with
# further arguments, for autoscalers of these names instead. Run again with that folder, it makes them anew and keeps the authority.
set -eu
umask 077
mkdir -p "$1"
cd "$1"
shift
[ $# -gt 0 ] || set -- cluster-autoscaler

key() { # file
  openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1"
}

issue() { # whom for, what for, the alternative name
  mkdir -p "$1"
  key "$1/tls.key"
  printf 'extendedKeyUsage=%s\nsubjectAltName=DNS:%s\n' "$2" "$3" >"$1/extensions"
  openssl req -new -key "$1/tls.key" -subj "/CN=$1" |
    openssl x509 -req -CA ca.crt -CAkey ca.key -CAcreateserial -days 365 -extfile "$1/extensions" -out "$1/tls.crt"
  rm "$1/extensions"
  cp ca.crt "$1/ca.crt"
}

if [ ! -e ca.key ]; then
  key ca.key
  openssl req -x509 -key ca.key -subj /CN=machinist-autoscaler-ca -days 3650 -out ca.crt
fi
issue machinist serverAuth machinist-autoscaler.machinist.svc
for client in "$@"; do
  issue "$client" clientAuth "$client"
done
