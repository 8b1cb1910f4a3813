#!/bin/sh
# Writes the secrets of one deployment to .env beside docker-compose.yml, once: all containers share them.
set -eu
file=$(dirname "$0")/../.env
if [ -e "$file" ]; then
  echo "make-env: $file is there already and stays as it is" >&2
  exit 1
fi
umask 077
cat >"$file.new" <<END
# Keep it: what is encrypted with the master key is lost without it.
FUEL_MASTER_KEY=$(head -c 32 /dev/urandom | base64)
FUEL_IMAGES_SECRET_ACCESS_KEY=$(head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n')
END
mv "$file.new" "$file"
echo "make-env: wrote $file"
