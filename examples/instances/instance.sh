#!/bin/sh
# Instances for a [[provider]] of dcs-tui: each is an sshd on a loopback port of this machine.
# It shows what the commands of a provider have to do, and it is what the tests use.
#
#   instance.sh setup                 make the keys and the ssh_config, once
#   instance.sh create NAME SECONDS   start an instance that ends itself when it is unused for so long
#   instance.sh list PREFIX           print name, address and port of each instance
#   instance.sh terminate NAME        end an instance and everything that runs on it
#
# Everything is kept in $DCS_INSTANCES (default ~/.dcs-instances): the key by which the
# instances are reached, an ssh_config that knows them, and a directory for each instance.
set -eu
umask 077
base=${DCS_INSTANCES:-$HOME/.dcs-instances}
mkdir -p "$base"

setup() {
	for key in identity host; do
		[ -e "$base/$key" ] || ssh-keygen -q -t ed25519 -N '' -C dcs-instances -f "$base/$key"
	done
	printf 'Host *\n\tUserKnownHostsFile %s\n' "$base/known_hosts" >"$base/ssh_config"
}

# Processes of an instance: helpers and supervisors inherit DCS_INSTANCE from sshd; jobs are
# their descendants.
processes() {
	roots=$(grep -lzx "DCS_INSTANCE=$1" /proc/[0-9]*/environ 2>/dev/null | tr -cd '0-9\n')
	[ -z "$roots" ] || ps -eo pid=,ppid= | awk -v roots="$(echo $roots)" '
		BEGIN { n = split(roots, r, " "); for (i = 1; i <= n; i++) of[r[i]] = 1 }
		{ parent[$1] = $2 }
		END {
			do {
				more = 0
				for (p in parent) if (!(p in of) && (parent[p] in of)) { of[p] = 1; more = 1 }
			} while (more)
			for (p in of) print p
		}'
}

alive() { [ -s "$base/$1/pid" ] && kill -0 "$(cat "$base/$1/pid")" 2>/dev/null; }

terminate() {
	[ -d "$base/$1" ] || return 0 # it is gone already
	if alive "$1"; then kill -9 "$(cat "$base/$1/pid")" || true; fi
	for round in 1 2 3; do
		for p in $(processes "$1"); do kill -9 "$p" 2>/dev/null || true; done
	done
	rm -rf "${base:?}/$1"
}

# A machine that nobody pays attention to must not live on: if no dispatcher is connected and
# no job runs for so many seconds, it ends itself.
watch() {
	unused=0
	while alive "$1"; do
		sleep 1
		if [ -n "$(processes "$1")" ]; then unused=0; else unused=$((unused + 1)); fi
		if [ "$unused" -ge "$2" ]; then terminate "$1"; fi
	done
}

create() {
	if alive "$1"; then return; fi
	mkdir -p "$base/$1"
	[ "$(id -u)" != 0 ] || mkdir -p /run/sshd # sshd insists on it
	for try in 1 2 3 4 5 6 7 8 9; do
		port=$((20000 + $(od -An -N2 -tu2 /dev/urandom) % 10000))
		echo "$port" >"$base/$1/port"
		cat >"$base/$1/sshd_config" <<-END
			ListenAddress 127.0.0.1
			Port $port
			PidFile $base/$1/pid
			HostKey $base/host
			AuthorizedKeysFile $base/identity.pub
			PasswordAuthentication no
			StrictModes no
			MaxStartups 100
			SetEnv DCS_INSTANCE=$1 HOME=$base/$1
		END
		"$(PATH=$PATH:/usr/sbin command -v sshd)" -f "$base/$1/sshd_config" -E "$base/$1/log"
		for wait in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
			if alive "$1"; then
				echo "[127.0.0.1]:$port $(cat "$base/host.pub")" >>"$base/known_hosts"
				watch "$1" "$2" </dev/null >/dev/null 2>&1 &
				return
			fi
			sleep 0.1
		done # the port was taken
	done
	cat "$base/$1/log" >&2
	exit 1
}

case ${1-} in
setup) setup ;;
create) create "$2" "$3" ;;
terminate) terminate "$2" ;;
list)
	for dir in "$base/$2"-*/; do
		name=$(basename "$dir")
		if alive "$name"; then echo "$name 127.0.0.1 $(cat "$dir/port")"; fi
	done
	;;
*)
	echo "usage: instance.sh setup | create NAME SECONDS | list PREFIX | terminate NAME" >&2
	exit 2
	;;
esac
