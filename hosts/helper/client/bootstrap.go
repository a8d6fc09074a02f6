package client

// bootstrapText is the script of the only command line that is ever sent to a host.
// Its argument is the nonce. Everything else that varies follows as lines on its
// standard input: sha256 of the program; its size in bytes; work_dir (empty:
// ~/.dcs-tui); RUN/HOST, the name of the spool; and the directories to try before
// work_dir, joined by colons (empty: the usual two).
//
// The lines are sent only after the script's first answer. A startup file that
// reads standard input finds nothing there, so it can neither swallow nor execute
// what is meant for the script.
//
// Login shells: bash, dash, ash, zsh, ksh, fish, tcsh. So the text has no
// newline, no single quote within the quotes, and no exclamation mark, which csh
// expands everywhere. The variables begin with d_ so that none that the user
// exports is changed for the jobs; the umask is put back for the same reason.
//
// It needs sh, uname, id, mkdir, chmod, wc, rm, find, head, cat, dd and
// mv, and uses gzip and timeout when they are there.
//
// Every answer is a line "NONCE word …". An echo of the command line is not taken
// for an answer, because a newline follows the nonce there.
//
//	path PATH             uname was not found there, so nothing can be done
//	sys KERNEL MACHINE    the output of uname; the lines may be sent now
//	have DIR              the binary is in DIR/bin
//	need gzip|plain DIR   it is not: send "gzip N" or "plain N", a newline, and N bytes
//	ok                    it arrived, ran, and gave the right checksum of itself
//	skip PLACE: WHY       this place cannot be used
//	bad PLACE: WHAT       what arrived there does not run or has another checksum
//	none                  no place is left
//	go                    the helper's own stream begins after this line
const bootstrapText = `d_n=$1; ` +
	`say() { printf "%s %s\n" "$d_n" "$*"; }; ` +
	`d_e=$(uname -sm) || { say path "$PATH"; exit 8; }; ` +
	`say sys $d_e; ` +
	// If a link is cut silently, a read from it blocks for hours.
	`d_g=; command -v timeout >/dev/null 2>&1 && d_g="timeout 90"; ` +
	// hear N: reads so many lines into d_l, each with "=" in front. Some old timeouts take
	// the 90 for a program, and read nothing.
	`hear() { d_l=$($d_g /bin/sh -c "d_k=$1; while [ \$d_k -gt 0 ]; do IFS= read -r d_l || exit 9; printf \"=%s\n\" \"\$d_l\"; d_k=\$((d_k-1)); done") || case $d_g$? in timeout*12[567]) d_g=; hear $1;; *) rm -f "$d_x"; exit 9;; esac; }; ` +
	`d_x=; hear 5; d_k=$(printf "\n."); IFS=${d_k%.}; set -f; set -- $d_l; set +f; unset IFS; ` +
	`d_h=${1#=} d_z=${2#=} d_w=${3#=} d_r=${4#=} d_c=${5#=}; ` +
	`d_u=$(umask); umask 077; ` +
	`case "$d_w" in "") d_w="$HOME/.dcs-tui";; "~") d_w="$HOME";; "~/"*) d_w="$HOME/${d_w#??}";; esac; ` +
	`d_i=$(id -u); [ -n "$d_c" ] || d_c="/var/tmp/dcs-$d_i:/tmp/dcs-$d_i"; ` +
	`start() { umask "$d_u"; cd /; say go; exec "$d_f" __host; exit 126; }; ` +
	// try PLACE: returns only when the place cannot be used.
	`try() { cd /; ` +
	`[ -d "$1" ] || d_e=$(mkdir -p -m 700 "$1" 2>&1) || { say skip "$1: $d_e"; return; }; ` +
	// From here on "." is one certain directory, whoever renames what.
	`cd -P "$1" 2>/dev/null || { say skip "$1: cannot be entered"; return; }; ` +
	`d_b=$(pwd -P); ` +
	`[ "$1" = "$d_w" ] || case "$d_b" in */"${1##*/}");; *) say skip "$1: is a symbolic link"; return;; esac; ` +
	`[ -O . ] || { say skip "$1: belongs to somebody else"; return; }; ` +
	`d_f="$d_b/bin/dcs-tui-$d_h"; ` +
	`if [ -f "$d_f" ] && [ -x "$d_f" ] && [ -O "$d_f" ] && [ "$(wc -c <"$d_f")" -eq "$d_z" ]; then say have "$d_b"; start; fi; ` +
	`[ "$1" = "$d_w" ] || chmod 700 .; ` +
	`d_e=$({ mkdir -p bin && chmod 700 bin; } 2>&1) || { say skip "$1: $d_e"; return; }; ` +
	`d_x="bin/.new-$d_n"; ` +
	// An empty file is a program for sh, unless the file system is mounted noexec.
	`d_e=$({ : >"$d_x" && chmod 700 "$d_x"; } 2>&1) || { say skip "$1: $d_e"; return; }; ` +
	`d_e=$("./$d_x" 2>&1) || { rm -f "$d_x"; say skip "$1: programs cannot be run there (mounted noexec?)"; return; }; ` +
	// What senders that were cut off left behind, and versions that nobody has used for a month.
	`find bin -name ".new-*" -mmin +60 -exec rm -f {} + 2>/dev/null; ` +
	`find bin -name "dcs-tui-*" -mtime +30 -exec rm -f {} + 2>/dev/null; ` +
	`d_m=plain; command -v gzip >/dev/null 2>&1 && d_m=gzip; say need $d_m "$d_b"; ` +
	`hear 1; d_m=${d_l#=}; d_k=${d_m#* }; d_m=${d_m%% *}; ` +
	// The second cat takes what is left when the disk is full, so that the stream stays in step.
	`d_e=$({ while [ "$d_k" -gt 0 ]; do d_s=65536; [ "$d_k" -ge $d_s ] || d_s=$d_k; ` +
	`$d_g head -c $d_s || { kill -9 $$; exit; }; d_k=$((d_k-d_s)); done; } | { if [ "$d_m" = gzip ]; then gzip -dc; else cat; fi 2>&1 >"$d_x"; d_s=$?; cat >/dev/null; exit $d_s; }) ` +
	`|| { rm -f "$d_x"; say skip "$1: $d_e"; return; }; ` +
	// To the disk before it gets its name: a copy that a power cut left empty would be taken for good.
	`d_e=$(dd of="$d_x" conv=notrunc,fsync </dev/null 2>&1) || { rm -f "$d_x"; say skip "$1: $d_e"; return; }; ` +
	`d_e=$("./$d_x" __sum 2>&1); ` +
	`[ "$d_e" = "$d_h" ] || { rm -f "$d_x"; say bad "$1: $d_e"; return; }; ` +
	`d_e=$(mv -f "$d_x" "$d_f" 2>&1) || { rm -f "$d_x"; say skip "$1: $d_e"; return; }; ` +
	`say ok; start; }; ` +
	`IFS=:; set -f; set -- $d_c "$d_w"; set +f; unset IFS; ` +
	// The place that holds this run's spool comes first, then one that has the
	// binary, so that a host does not change its spool between two connections.
	`for d_p in 1 2 3; do for d_t do d_a=3; ` +
	`[ -f "$d_t/bin/dcs-tui-$d_h" ] && d_a=2; [ -d "$d_t/runs/$d_r" ] && d_a=1; ` +
	`[ $d_a = $d_p ] && try "$d_t"; done; done; ` +
	`say none; exit 8`

// bootstrap returns the command line that starts the helper on a host. The nonce is
// hexadecimal.
func bootstrap(nonce string) string {
	return "exec /bin/sh -c '" + bootstrapText + "' dcs-tui " + nonce
}
