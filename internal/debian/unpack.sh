# unpack <name> unpacks Debian's packages into ~/.cache/aip-gateway/<name>, for tests that need the real programs. Nothing
# of the system is changed, no service is started, and no root is needed. What is there is kept: another set of packages
# needs another name. The script that sources this file defines the function packages: it prints the names of the
# packages, and gets the options by which apt finds its lists.
unpack() {
	root=${XDG_CACHE_HOME:-$HOME/.cache}/aip-gateway/$1
	[ ! -e "$root" ] || return 0
	command -v apt-get > /dev/null && command -v dpkg > /dev/null || {
		echo "the tests need programs from Debian's packages, and this system has no apt-get" >&2
		return 1
	}
	mkdir -p "$(dirname "$root")"
	new=$(mktemp -d "$root.XXXXXX")
	trap 'rm -rf "$new"' EXIT
	mkdir -p "$new/debs" "$new/lists/partial" "$new/cache/archives/partial"
	cd "$new/debs"
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
}

fetch() {
	local names
	names=$(packages "$@") || return 1
	# shellcheck disable=SC2086 # one word for each package
	apt-get -qq "$@" -o APT::Sandbox::User="$(id -un)" download $names
}
