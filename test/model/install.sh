#!/usr/bin/env bash
# Unpacks spin, which checks the models of this folder, from Debian's packages.
set -euo pipefail
. "$(dirname "$0")/../../internal/debian/unpack.sh"

packages() {
	echo spin
}

unpack spin-1 # as in model_test.go; another set of packages needs another number
