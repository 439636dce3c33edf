#!/usr/bin/env bash
# Unpacks RabbitMQ, the Erlang that it runs on, and pika (Python's AMQP client) from Debian's packages. They go to a
# cache of their own: nothing of the system is changed, no service is started, and no root is needed.
set -euo pipefail

version=1 # as in configure.go; another one is another folder
root=${XDG_CACHE_HOME:-$HOME/.cache}/aip-gateway/rabbitmq-$version
[ ! -e "$root" ] || exit 0
command -v apt-get > /dev/null && command -v dpkg > /dev/null || {
	echo "the tests of groups need RabbitMQ from Debian's packages, and this system has no apt-get" >&2
	exit 1
}

packages=(rabbitmq-server python3-pika erlang-base erlang-asn1 erlang-crypto erlang-eldap erlang-inets erlang-mnesia
	erlang-os-mon erlang-parsetools erlang-public-key erlang-runtime-tools erlang-ssl erlang-syntax-tools erlang-tools
	erlang-xmerl)
mkdir -p "$(dirname "$root")"
new=$(mktemp -d "$root.XXXXXX")
trap 'rm -rf "$new"' EXIT
mkdir -p "$new/debs" "$new/lists/partial" "$new/cache/archives/partial"
cd "$new/debs"
# The system's lists of packages may be missing, or too old: then lists of our own are fetched.
own=(-o "Dir::State::Lists=$new/lists" -o "Dir::Cache=$new/cache" -o APT::Sandbox::User="$(id -un)")
apt-get -qq -o APT::Sandbox::User="$(id -un)" download "${packages[@]}" 2> /dev/null || {
	apt-get -qq "${own[@]}" update
	apt-get -qq "${own[@]}" download "${packages[@]}"
}
for deb in *.deb; do
	dpkg -x "$deb" "$new/root"
done
mv -T "$new/root" "$root" 2> /dev/null || [ -e "$root" ] # another one may have been faster
