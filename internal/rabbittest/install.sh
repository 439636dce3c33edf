#!/usr/bin/env bash
# Unpacks RabbitMQ, the Erlang that it runs on, Python with pika (its AMQP client), and the libraries of both from
# Debian's packages.
set -euo pipefail
. "$(dirname "$0")/../debian/unpack.sh"

packages() {
	local python
	python=$(apt-cache "$@" depends python3-minimal | sed -n 's/^.*Depends: \(python3\.[0-9]*\)-minimal$/\1/p' | sort -u)
	[ -n "$python" ] || return 1
	echo rabbitmq-server python3-pika erlang-base erlang-asn1 erlang-crypto erlang-eldap erlang-inets erlang-mnesia \
		erlang-os-mon erlang-parsetools erlang-public-key erlang-runtime-tools erlang-ssl erlang-syntax-tools \
		erlang-tools erlang-xmerl libexpat1 libffi8 libgcc-s1 libssl3 libstdc++6 libtinfo6 zlib1g \
		"$python-minimal" "lib$python-minimal" "lib$python-stdlib"
}

unpack rabbitmq-2 # as in configure.go; another set of packages needs another number
