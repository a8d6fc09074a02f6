#!/bin/sh
# Workstations that are switched off or asleep, as instances of a [[provider]] of dcs-tui: each is
# woken by wake-on-LAN when a run needs it, and put to sleep when it was idle.
#
#   workstation.sh create NAME FILE   wake a free workstation of the list in FILE
#   workstation.sh list PREFIX        print the name and the address of each that is in use
#   workstation.sh terminate NAME     put it to sleep, unless somebody else uses it
#
# Each line of FILE has the name by which ssh reaches a workstation, and its MAC address.
# A file in $DCS_WORKSTATIONS (default ~/.dcs-workstations) for each workstation in use holds the
# name of its instance. Users who share this directory do not get the same workstation.
set -eu
base=${DCS_WORKSTATIONS:-$HOME/.dcs-workstations}
mkdir -p "$base/used"

# From another network, send the packet from a machine beside the workstations: "ssh gate wakeonlan".
wake() { ${DCS_WAKE:-wakeonlan} "$1" >/dev/null; }

# The user needs the right to suspend a workstation, for example by a line in /etc/sudoers.d there:
#   %lab ALL = (root) NOPASSWD: /usr/bin/systemctl suspend
# Not while a person is logged in, or while another user of dcs-tui has jobs there.
fall_asleep='who | grep -q . || ps -C dcs-tui-slot -o uid= | grep -qv "^ *$(id -u)$" || sudo -n systemctl suspend'

# The workstations of a list, beginning after the one that was woken last: one that does not
# answer is not tried again before the others.
candidates() {
	awk -v last="$(cat "$base/last" 2>/dev/null || true)" '
		/^[ \t]*(#|$)/ || NF < 2 { next }
		{ if (found) after = after $1 " " $2 "\n"; else before = before $1 " " $2 "\n" }
		$1 == last { found = 1 }
		END { printf "%s%s", after, before }' "$1"
}

create() {
	name=$1
	# shellcheck disable=SC2046 # words
	set -- $(candidates "$2")
	[ $# -gt 0 ] || { echo "there is no workstation in the list" >&2; exit 1; }
	new="$base/new.$$"
	echo "$name" >"$new"
	while [ $# -ge 2 ]; do
		# The link is made only if there is none: nobody else gets this workstation.
		if ln "$new" "$base/used/$1" 2>/dev/null; then
			rm -f "$new"
			echo "$1" >"$base/last"
			wake "$2" || { rm -f "$base/used/$1"; echo "$1 could not be woken" >&2; exit 1; }
			return
		fi
		shift 2
	done
	rm -f "$new"
	echo "all workstations are in use" >&2
	exit 1
}

terminate() {
	for use in "$base"/used/*; do
		[ -e "$use" ] && [ "$(cat "$use")" = "$1" ] || continue
		host=${use##*/}
		status=0
		ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=5 -o ServerAliveCountMax=2 \
			"$host" "$fall_asleep" </dev/null >/dev/null 2>>"$base/log" || status=$?
		# 255: it cannot be reached, so it is off or already asleep.
		[ "$status" = 0 ] || [ "$status" = 255 ] || echo "$host stays awake: its command failed with $status" >>"$base/log"
		rm -f "$use"
	done
}

case ${1-} in
create) create "$2" "$3" ;;
terminate) terminate "$2" ;;
list)
	for use in "$base"/used/*; do
		[ -e "$use" ] || continue
		case $(cat "$use") in "$2"-*) echo "$(cat "$use") ${use##*/}" ;; esac
	done
	;;
*)
	echo "usage: workstation.sh create NAME FILE | list PREFIX | terminate NAME" >&2
	exit 2
	;;
esac
