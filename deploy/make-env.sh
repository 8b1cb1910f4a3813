#!/bin/sh
# Writes the secrets of one deployment to .env next to docker-compose.yml. All containers share them. Run it once.
set -eu
file=$(dirname "$0")/../.env
if [ -e "$file" ]; then
  echo "make-env: $file already exists and was not changed" >&2
  exit 1
fi
umask 077
# An Ed25519 private key is this prefix, followed by 32 random bytes (RFC 8410).
seal_key=$({ printf '\060\056\002\001\000\060\005\006\003\053\145\160\004\042\004\040' && head -c 32 /dev/urandom; } | base64)
cat >"$file.new" <<END
# Keep this key: without it, everything that it encrypts is lost.
FUEL_MASTER_KEY=$(head -c 32 /dev/urandom | base64)
# Signs checkpoints of the log.
FUEL_SEAL_KEY='-----BEGIN PRIVATE KEY-----\\n$seal_key\\n-----END PRIVATE KEY-----\\n'
FUEL_IMAGES_SECRET_ACCESS_KEY=$(head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n')
END
mv "$file.new" "$file"
echo "make-env: wrote $file"
