#!/usr/bin/env bash
# Unpacks the programs that check the files of this folder, and their libraries, from Debian's packages.
set -euo pipefail
. "$(dirname "$0")/../internal/debian/unpack.sh"

packages() {
	echo haproxy liblua5.3-0 libopentracing-c-wrapper0 libopentracing1 nginx libnginx-mod-stream \
		systemd libsystemd-shared libapparmor1 libip4tc2 libkmod2 libseccomp2 libgcc-s1 libssl3 libstdc++6 zlib1g prometheus
}

unpack contrib-2 # as in test/e2e/site/debian.go; another set of packages needs another number
