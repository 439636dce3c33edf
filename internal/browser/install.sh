#!/usr/bin/env bash
# Unpacks a Chromium without a window, its libraries and a font from Debian's packages.
set -euo pipefail
. "$(dirname "$0")/../debian/unpack.sh"

packages() {
	echo chromium-headless-shell chromium-common fontconfig-config fonts-dejavu-core \
		libasound2 libasyncns0 libatk1.0-0 libatspi2.0-0 libblkid1 libbrotli1 libbsd0 libcap2 libdav1d6 libdbus-1-3 \
		libdouble-conversion3 libdrm2 libexpat1 libffi8 libflac12 libfontconfig1 libfreetype6 libgbm1 libgcc-s1 \
		libgcrypt20 libglib2.0-0 libgpg-error0 libgraphite2-3 libharfbuzz-subset0 libharfbuzz0b libjpeg62-turbo liblcms2-2 \
		liblz4-1 liblzma5 libmd0 libminizip1 libmount1 libmp3lame0 libmpg123-0 libnspr4 libnss3 libogg0 libopenh264-7 \
		libopenjp2-7 libopus0 libpcre2-8-0 libpng16-16 libpulse0 libselinux1 libsndfile1 libsqlite3-0 libstdc++6 \
		libsystemd0 libudev1 libvorbis0a libvorbisenc2 libwayland-server0 libx11-6 libx11-xcb1 libxau6 libxcb-randr0 libxcb1 \
		libxcomposite1 libxdamage1 libxdmcp6 libxext6 libxfixes3 libxi6 libxkbcommon0 libxnvctrl0 libxrandr2 libxrender1 \
		libzstd1 zlib1g
}

unpack chromium-1 # as in browser.go; another set of packages needs another number
