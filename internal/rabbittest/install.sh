#!/usr/bin/env bash
# Unpacks RabbitMQ, the Erlang that it runs on, Python with pika (its AMQP client), and the libraries of both from
# Debian's packages. They go to a cache of their own: nothing of the system is changed, no service is started, and no
# root is needed.
set -euo pipefail

version=2 # as in configure.go; another one is another folder
root=${XDG_CACHE_HOME:-$HOME/.cache}/aip-gateway/rabbitmq-$version
[ ! -e "$root" ] || exit 0
command -v apt-get > /dev/null && command -v dpkg > /dev/null || {
	echo "the tests of groups need RabbitMQ from Debian's packages, and this system has no apt-get" >&2
	exit 1
}

packages=(rabbitmq-server python3-pika erlang-base erlang-asn1 erlang-crypto erlang-eldap erlang-inets erlang-mnesia
	erlang-os-mon erlang-parsetools erlang-public-key erlang-runtime-tools erlang-ssl erlang-syntax-tools erlang-tools
	erlang-xmerl libexpat1 libffi8 libgcc-s1 libssl3 libstdc++6 libtinfo6 zlib1g)
mkdir -p "$(dirname "$root")"
new=$(mktemp -d "$root.XXXXXX")
trap 'rm -rf "$new"' EXIT
mkdir -p "$new/debs" "$new/lists/partial" "$new/cache/archives/partial"
cd "$new/debs"

# fetch downloads the packages by the lists of packages that its options name.
fetch() {
	local python
	python=$(apt-cache "$@" depends python3-minimal | grep -om 1 'python3\.[0-9]*') || return 1
	apt-get -qq "$@" -o APT::Sandbox::User="$(id -un)" download \
		"${packages[@]}" "$python-minimal" "lib$python-minimal" "lib$python-stdlib"
}

# The system's lists of packages may be missing, or too old: then lists of our own are fetched.
own=(-o "Dir::State::Lists=$new/lists" -o "Dir::Cache=$new/cache")
fetch 2> /dev/null || {
	apt-get -qq "${own[@]}" -o APT::Sandbox::User="$(id -un)" update
	fetch "${own[@]}"
}
for deb in *.deb; do
	dpkg -x "$deb" "$new/root"
done
mv -T "$new/root" "$root" 2> /dev/null || [ -e "$root" ] # another one may have been faster
