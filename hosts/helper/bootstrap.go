package helper

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"dcs-tui/hosts"
)

// bootstrapText is the script of the only command line that is ever sent to a host. Its
// argument is a nonce. Everything else that varies follows as lines on its standard input:
// the id of the program; its size in bytes; work_dir (empty: ~/.dcs-tui); RUN/HOST, the
// name of the spool; and the directories to try before work_dir, joined by colons (empty: the
// usual two).
//
// The lines are sent only after the script's first answer. A startup file that reads standard
// input finds nothing there, so it can neither consume nor execute them.
//
// The login shell may be bash, dash, ash, zsh, ksh, fish, or tcsh. Therefore the text has no
// newline, no single quote within the quotes, and no exclamation mark, which csh expands
// everywhere. The variables begin with d_, so that no variable that the user exports is
// changed for the jobs. The umask is restored for the same reason.
//
// It needs sh, uname, id, mkdir, chmod, wc, rm, find, head, cat, dd, and mv. It uses gzip and
// timeout if they exist.
//
// Every answer is a line "NONCE word …". An echo of the command line is not mistaken for an
// answer, because the nonce is followed by a newline there.
//
//	path PATH             uname was not found in PATH, so nothing can be done
//	sys KERNEL MACHINE    the output of uname; the lines may be sent now
//	space KB              the limit of the address space; only if there is one
//	have DIR              the program is in DIR/bin
//	need gzip|plain DIR   it is not: send "gzip N SUM" or "plain N SUM", a newline, and N bytes;
//	                      SUM is the SHA-256 of the program in hex
//	ok                    it arrived, ran, and printed the right checksum of itself
//	skip PLACE: WHY       this place cannot be used
//	bad PLACE: WHAT       what arrived there does not run or has another checksum
//	none                  no place is left
//	go                    the stream of the helper begins after this line
const bootstrapText = `d_n=$1; ` +
	`say() { printf "%s %s\n" "$d_n" "$*"; }; ` +
	`d_e=$(uname -sm) || { say path "$PATH"; exit 8; }; ` +
	`say sys $d_e; ` +
	`d_e=$(ulimit -v 2>/dev/null); case "$d_e" in ""|unlimited) ;; *) say space "$d_e";; esac; ` +
	// If a link is cut silently, a read from it blocks for hours.
	`d_g=; command -v timeout >/dev/null 2>&1 && d_g="timeout 90"; ` +
	// hear N reads N lines into d_l, each prefixed with "=". Some old versions of timeout take the
	// 90 for a program and read nothing.
	`hear() { d_l=$($d_g /bin/sh -c "d_k=$1; while [ \$d_k -gt 0 ]; do IFS= read -r d_l || exit 9; ` +
	`printf \"=%s\n\" \"\$d_l\"; d_k=\$((d_k-1)); done") || case $d_g$? in timeout*12[567]) d_g=; hear $1;; ` +
	`*) rm -f "$d_x"; exit 9;; esac; }; d_x=; hear 5; d_k=$(printf "\n."); IFS=${d_k%.}; set -f; set -- $d_l; ` +
	`set +f; unset IFS; d_h=${1#=} d_z=${2#=} d_w=${3#=} d_r=${4#=} d_c=${5#=}; d_u=$(umask); umask 077; ` +
	`case "$d_w" in "") d_w="$HOME/.dcs-tui";; "~") d_w="$HOME";; "~/"*) d_w="$HOME/${d_w#??}";; esac; ` +
	`d_i=$(id -u); [ -n "$d_c" ] || d_c="/var/tmp/dcs-$d_i:/tmp/dcs-$d_i"; ` +
	// Without a spool, the helper could do nothing, and could not use the next place. The helper makes
	// it, because a bootstrap that comes late must leave nothing of a run that has ended.
	`spool() { [ -d "runs/$d_r" ] || ` +
	`d_e=$({ mkdir -p runs && : >"runs/.new-$d_n" && rm -f "runs/.new-$d_n"; } 2>&1) || ` +
	`{ say skip "$1: $d_e"; return 1; }; }; ` +
	`start() { umask "$d_u"; cd /; say go; exec "$d_f" __host; exit 126; }; ` +
	// try PLACE returns only if the place cannot be used.
	`try() { cd /; ` +
	`[ -d "$1" ] || d_e=$(mkdir -p -m 700 "$1" 2>&1) || { say skip "$1: $d_e"; return; }; ` +
	// From here on "." is one certain directory, even if somebody renames it.
	`cd -P "$1" 2>/dev/null || { say skip "$1: cannot be entered"; return; }; ` +
	`d_b=$(pwd -P); ` +
	`[ "$1" = "$d_w" ] || case "$d_b" in */"${1##*/}");; *) say skip "$1: is a symbolic link"; return;; esac; ` +
	`[ -O . ] || { say skip "$1: belongs to somebody else"; return; }; ` +
	`d_f="$d_b/bin/dcs-tui-$d_h"; ` +
	`if [ -f "$d_f" ] && [ -x "$d_f" ] && [ -O "$d_f" ] && [ "$(wc -c <"$d_f")" -eq "$d_z" ]; ` +
	`then spool "$1" || return; say have "$d_b"; start; fi; [ "$1" = "$d_w" ] || chmod 700 .; ` +
	`d_e=$({ mkdir -p bin && chmod 700 bin; } 2>&1) || { say skip "$1: $d_e"; return; }; ` +
	`d_x="bin/.new-$d_n"; ` +
	// An empty file is a program for sh, unless the file system is mounted noexec.
	`d_e=$({ : >"$d_x" && chmod 700 "$d_x"; } 2>&1) || { say skip "$1: $d_e"; return; }; ` +
	`d_e=$("./$d_x" 2>&1) || { rm -f "$d_x"; d_e=$(df -P . 2>/dev/null | sed -n "\$s/.* //p"); ` +
	`say skip "$1: programs cannot be run there (is ${d_e:-it} mounted noexec?)"; return; }; ` +
	// Remove what interrupted transfers left behind, and versions that were not used for a month.
	`find bin -name ".new-*" -mmin +60 -exec rm -f {} + 2>/dev/null; ` +
	`find bin -name "dcs-tui-*" -mtime +30 -exec rm -f {} + 2>/dev/null; ` +
	`d_m=plain; command -v gzip >/dev/null 2>&1 && d_m=gzip; say need $d_m "$d_b"; ` +
	`hear 1; d_m=${d_l#=}; d_v=${d_m##* }; d_k=${d_m#* }; d_k=${d_k%% *}; d_m=${d_m%% *}; ` +
	// The second cat consumes the rest when the disk is full, so that the stream stays in step.
	// Each piece starts two programs, so it is large, and has 15 minutes on a slow link.
	`d_e=$({ while [ "$d_k" -gt 0 ]; do d_s=1048576; [ "$d_k" -ge $d_s ] || d_s=$d_k; ` +
	`${d_g:+timeout 900} head -c $d_s || { kill -9 $$; exit; }; d_k=$((d_k-d_s)); done; ` +
	`} | { if [ "$d_m" = gzip ]; then gzip -dc; else cat; fi 2>&1 >"$d_x"; d_s=$?; cat >/dev/null; exit $d_s; }) ` +
	// $d_e is not quoted, because an error of gzip begins with a newline.
	`|| { rm -f "$d_x"; say skip "$1:" $d_e; return; }; ` +
	// Fsync before the rename: an empty copy, left by a power failure, would be used forever.
	`d_e=$(dd of="$d_x" conv=notrunc,fsync </dev/null 2>&1) || { rm -f "$d_x"; say skip "$1: $d_e"; return; }; ` +
	`d_e=$("./$d_x" __sum 2>&1); ` +
	`[ "$d_e" = "$d_v" ] || { rm -f "$d_x"; say bad "$1: $d_e"; return; }; ` +
	`d_e=$(mv -f "$d_x" "$d_f" 2>&1) || { rm -f "$d_x"; say skip "$1: $d_e"; return; }; ` +
	`spool "$1" || return; say ok; start; }; ` +
	`IFS=:; set -f; set -- $d_c "$d_w"; set +f; unset IFS; ` +
	// Try the place with this run's spool first, then one with the program, so that a host keeps
	// its spool across connections.
	`for d_p in 1 2 3; do for d_t do d_a=3; ` +
	`[ -f "$d_t/bin/dcs-tui-$d_h" ] && d_a=2; [ -d "$d_t/runs/$d_r" ] && d_a=1; ` +
	`[ $d_a = $d_p ] && try "$d_t"; done; done; ` +
	`say none; exit 8`

// bootstrap returns the command line that starts the helper on a host. The nonce must be
// hexadecimal.
func bootstrap(nonce string) string {
	return "exec /bin/sh -c '" + bootstrapText + "' dcs-tui " + nonce
}

// maxNoise is the number of bytes that a login shell and the bootstrap may print before the
// stream of the helper.
const maxNoise = 64 << 10

// errNoise is returned when the far end never stops printing.
var errNoise = errors.New("never stops printing")

// errTerminal is returned when a terminal on the way would change our bytes.
var errTerminal = errors.New("the command allocates a terminal on the host")

// answers reads the answers of the bootstrap and skips other lines.
type answers struct {
	r         *bufio.Reader // on stream, of maxNoise
	stream    io.Reader
	nonce     []byte // including the blank after it
	bytesRead int
	noise     string // the first line that was no answer
}

func newAnswers(r io.Reader, nonce string) *answers {
	return &answers{r: bufio.NewReaderSize(r, maxNoise), stream: r, nonce: []byte(nonce + " ")}
}

// rest returns what follows the answers that were read. It does not keep the buffer of the answers.
func (a *answers) rest() io.Reader {
	early, _ := a.r.Peek(a.r.Buffered()) // never fails
	return io.MultiReader(bytes.NewReader(bytes.Clone(early)), a.stream)
}

// next returns the word and the rest of the next answer. Noise without a newline may precede it
// on the same line.
func (a *answers) next() (word, rest string, err error) {
	for {
		line, err := a.r.ReadSlice('\n')
		a.bytesRead += len(line)
		if a.bytesRead > maxNoise || errors.Is(err, bufio.ErrBufferFull) {
			a.addNoise(line)
			return "", "", errNoise
		}
		if err != nil {
			a.addNoise(line)
			return "", "", err
		}
		if _, after, ok := bytes.Cut(line, a.nonce); ok {
			if bytes.HasSuffix(after, []byte("\r\n")) {
				return "", "", errTerminal
			}
			word, rest, _ = strings.Cut(strings.TrimRight(string(after), "\n"), " ")
			return word, rest, nil
		}
		a.addNoise(line)
	}
}

func (a *answers) addNoise(line []byte) {
	if a.noise == "" {
		a.noise = clean(string(line[:min(len(line), 200)]))
	}
}

// output quotes the first line of noise for an error.
func (a *answers) output() string {
	if a.noise == "" {
		return ""
	}
	return fmt.Sprintf("; it printed %q", a.noise)
}

// followBootstrap follows the bootstrap until the stream of the helper begins, and sends the
// program if it is requested.
func (s *session) followBootstrap() error {
	damaged := false
	s.setStep("looking for a directory for the helper")
	for {
		word, rest, err := s.answers.next()
		if err != nil {
			return s.explainEnd(err)
		}
		switch word {
		case "space":
			if kb, err := strconv.ParseInt(rest, 10, 64); err == nil && kb < minAddressSpace {
				return s.hostError(hosts.Misconfigured,
					"raise it there, in limits.conf or in the startup file that sets it",
					fmt.Errorf("the address space of a process is limited to %d kB (ulimit -v), "+
						"and a Go program such as the helper needs %d kB",
						kb, minAddressSpace))
			}
		case "have", "ok":
			s.timer.Reset(s.c.timeout)
			s.setStep("starting the helper")
		case "need":
			if err := s.deploy(rest); err != nil {
				return err
			}
		case "skip":
			s.skipped = append(s.skipped, clean(rest))
		case "bad":
			damaged = true
			s.skipped = append(s.skipped, clean(rest)+" (the program we sent does not run there, or arrived damaged)")
		case "none":
			return s.explainNoPlace(s.skipped, damaged)
		case "go":
			return nil
		default:
			return s.hostError(hosts.Broken, "", fmt.Errorf("the bootstrap answered %q", clean(word)))
		}
	}
}

// minAddressSpace is the least limit of the address space, in kB, with which the helper starts. The
// runtime of Go reserves about 700,000 kB.
const minAddressSpace = 1_000_000

// explainNoPlace explains why the helper can run nowhere on the host.
func (s *session) explainNoPlace(why []string, damaged bool) error {
	if slices.ContainsFunc(why, IsProcessLimit) {
		return s.hostError(hosts.Broken, limitAdvice, ErrProcessLimit)
	}
	err := fmt.Errorf("there is no usable directory for the helper: %s", strings.Join(why, "; "))
	if damaged {
		return s.hostError(hosts.Broken, "", err)
	}
	return s.hostError(hosts.Misconfigured,
		"give the host a work_dir that is yours, has room, and may run programs", err)
}

// deploy sends the program. rest is what follows "need". Each piece that is written extends the
// deadline.
func (s *session) deploy(rest string) error {
	method, where, _ := strings.Cut(rest, " ")
	s.setStep("sending the helper to " + clean(where))
	s.timer.Reset(stallTimeout)
	if method != "gzip" || s.host.Link == "local" {
		method = "plain"
	}
	sum, err := s.binary.sum()
	var src io.Reader
	n := s.binary.size
	switch {
	case err != nil:
	case method == "plain":
		src, err = s.binary.content()
	default:
		var packed []byte
		packed, err = s.binary.packed()
		src, n = bytes.NewReader(packed), int64(len(packed))
	}
	if err != nil {
		return s.hostError(hosts.Misconfigured, "", err)
	}
	dst := &progressWriter{w: s.stream.Stdin(), progress: func() { s.timer.Reset(stallTimeout) }}
	if _, err = fmt.Fprintf(dst, "%s %d %s\n", method, n, sum); err == nil {
		_, err = io.CopyBuffer(dst, struct{ io.Reader }{src}, make([]byte, 64<<10))
	}
	if err != nil && dst.err == nil {
		return s.hostError(hosts.Misconfigured, "", fmt.Errorf("read the program to send: %w", err))
	}
	// After an error of writing, the far end is gone or about to go. What it prints and how it ends
	// explain more than the error.
	s.timer.Reset(stallTimeout)
	s.setStep("checking the helper in " + clean(where))
	return nil
}

// progressWriter calls progress after each successful write, and keeps the error of a failed one.
type progressWriter struct {
	w        io.Writer
	progress func()
	err      error
}

func (w *progressWriter) Write(p []byte) (n int, err error) {
	n, w.err = w.w.Write(p)
	if w.err == nil {
		w.progress()
	}
	return n, w.err
}
