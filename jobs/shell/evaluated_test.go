package shell

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"dcs-tui/internal/text"
)

// evaluatedCases are commands by what bash does with a value in the placeholder: whether it evaluates
// the value after it has removed the quotes.
var evaluatedCases = []struct {
	want     Enclosure
	commands []string
}{
	{evaluated, []string{
		`[ -v {} ]`, `[ ! -v {} ]`, `[ a = a -a -v {} ]`, `[ "-v" {} ]`, `test -v {}`, `\test -v {}`,
		`builtin test -v {}`, `command test -v {}`, `[[ -v {} ]]`, `[[ ! -v {} ]]`,
		`unset {}`, `unset -v {}`, `'unset' {}`,
		`read {} <<< 1`, `read -r x {} <<< '1 2'`,
		`printf -v {} x`, `printf -v{} x`,
		`: & wait -p {} $!`, `: & wait -n -p {}`, `: & wait -np {}`, `: & wait -np{}`, `unset -- {}`, `unset x -f {}`,
		`read -t 1 {} <<< 1`, `read -t1 -- {} <<< 1`, `read -d '' {} <<< 1`, `compgen -abW {}`, `compgen -C 'echo '{}`,
		`OPTS=-e; bash $OPTS -c 'echo '{}`, `bash ${OPTS} -c 'echo '{}`, `bash $(echo -e) -c 'echo '{}`,
		`builtin let {}`, `command let x={}`,
		`declare {}`, `declare -g {}`, `declare -x x {}`, `command declare {}`, `typeset {}`,
		`f() { local {}; }; f`, `f() { local x=1 {}; }; f`,
		`declare {}=1`, `f() { local {}=1; }; f`,
		`declare -i x={}`, `declare -gi x={}`, `declare -a x={}`, `declare -A x={}`, `readonly -a x={}`,
		`typeset -i x={}`, `f() { local -i x={}; }; f`, `declare -n x={}; x=1`, `declare -i x=({})`,
		`declare -i i; i={}`, `declare -i i; i+={}`, `declare -n x; x={}; x=1`, `declare -A h; declare h={}`,
		`RANDOM={}`, `SRANDOM={}`, `OPTIND={}`, `HISTCMD={}`, `export RANDOM={}`, `for RANDOM in 1 {}; do :; done`,
		`PS4={}; set -x; :`, `BASH_ENV={} bash -c :`,
		`eval x=1 {}`, `eval echo {}`, `eval x\ {}`, `command eval echo {}`,
		`sh -c 'echo '{}`, `bash -ec "echo "{}`, `/bin/sh -c x{}`, `env sh -e -c 'echo '{}`,
		`bash -o pipefail -c 'echo '{}`, `bash +x -ec 'echo '{}`, `bash -c -e 'echo '{}`, `bash -c -- 'echo '{}`,
		`env bash /dev/null; env bash -c x\;{}`, `bash --rcfile x -c 'echo '{}`,
		`trap 'echo '{} EXIT`, `mapfile -c 1 -C : x <<< 1; mapfile -c 1 -C ': '{} x <<< 1`,
		`compgen -W {}`, `compgen -W 'x '{}`,
		`: >&{}`, `: 1>&{}`, `exec {a[{}]}>/dev/null`,
	}},
	{remote, []string{
		`ssh h : {}`, `ssh h ': '{}`, `ssh -t -p 22 u@h ': '{}`, `ssh h -p 22 : {}`, `ssh h -- : {}`,
		`ssh -p22 -v h x{}`,
		`command ssh h : {}`, `timeout 5 ssh h : {}`, `sshpass -p x ssh h : {}`, `ssh h bash -c : {}`,
		`sudo ssh h : {}`, `/usr/bin/env ssh h : {}`, `flock x ssh h : {}`, `taskset 1 ssh h : {}`,
	}},
	{Unenclosed, []string{
		`[ {} -eq 1 ]`, `[ -n {} ]`, `[ -o {} ]`, `[ -t {} ]`, `test {} = -v`, `[[ {} == {} ]]`, `[[ a =~ {} ]]`,
		`[[ -n {} ]]`, `[[ -o {} ]]`, `[[ {} -nt {} ]]`,
		`read x <<< {}`, `mapfile {} <<< 1`, `mapfile -O {} x <<< 1`,
		`printf {}`, `printf %d {}`, `printf %b {}`, `printf %q {}`, `printf -v x %s {}`, `printf -vx {}`,
		`wait {}`, `: & wait -n {}`, `wait -f {}`, `wait -- {}`, `: & wait -p x {}`,
		`unset -f {}`, `unset -f f_{}`, `unset -f -- {}`, `unset -n {}`, `unset -fv {}`,
		`read -t {} x <<< 1`, `read -rt {} x <<< 1`, `read -t{} x <<< 1`, `read -d {} x <<< 1`, `read -u {} x <<< 1`,
		`read -n {} x <<< 1`, `read -N {} x <<< 1`, `read -p {} x <<< 1`, `read -i {} x <<< 1`, `read -a {} <<< 1`,
		`declare -f {}`, `declare -F {}`, `declare -p {}`, `declare -pi x={}`, `declare -fi x={}`, `declare -pa x={}`,
		`command declare -f {}`, `typeset -f {}`, `f() { local -f {}; }; f`, `export -f {}`, `readonly -f {}`,
		`compgen -A function {}`, `compgen -P {} -W x`, `compgen -F {} x`, `compgen -X {} -W x`, `compgen -W 'a b' {}`,
		`s=/dev/null; bash "$s" -c x{}`,
		`getopts {} x -a`, `getopts a {} -a`, `getopts a x {}`, `wait $(: {})`,
		`x={}`, `x+={}`, `x={} :`, `x=({})`, `x[0]={}`, `a={}`, `declare x={}`, `typeset x+={}`,
		`f() { local x={}; }; f`, `export {}`, `export x={}`, `export -n {}`, `readonly {}`, `readonly x={}`,
		`declare -a x=(1 2 {})`, `declare -A x=([k]={})`, `f() { local -a x=({}); }; f`, `declare -a x; x+=({})`,
		`declare -a x; x={}`, `declare -A x; x[k]={}`, `declare -a x; for x in {}; do :; done`,
		`bash /dev/null -c x{}`, `bash -e /dev/null -c x{}`,
		`bash -o pipefail /dev/null -c x{}`, `sh -- /dev/null -c x{}`,
		`. {}`, `source {}`, `. /dev/null {}`, `sh -c : {}`, `bash -c : _ {}`, `set -- {}`, `set -o {}`, `shopt {}`,
		`alias {}`, `hash {}`, `type {}`, `command -v {}`, `exec -a {} true`, `ulimit -n {}`, `umask {}`, `shift {}`,
		`exit {}`, `return {}`, `for i in 1; do break {}; done`, `cd {}`, `kill -s {} $$`, `trap : {}`,
		`for x in {}; do :; done`, `case {} in {}) ;; esac`, `: ${x:={}}`, `: ${x:-{}}`, `: ${HOME/b/{}}`,
		`ssh {} :`, `ssh -p {} h :`, `ssh -o {} h :`, `ssh -vp {} h :`, `echo ssh h {}`, `ssh h : < {}`,
		`timeout 5 rsync -e ssh x {} h:`, `sudo rsync -aze ssh {} x h:`,
		`: > {}`, `: {}>x`, `: < {}`, `: &> {}`, `: <&{}`, `: 2>&{}`, `: <<< {}`, `IFS={}`, `SECONDS={}`, `TMOUT={}`,
	}},
}

// hostileValues are values that create a file if bash evaluates them, as the name of a variable, an
// assignment, the elements of an array, or a command.
var hostileValues = []string{"a[$(>%s)0]", "a[$(>%s)0]=1", "([$(>%s)]=1)", "$(>%s)"}

// remotePrograms are scripts that treat their arguments as these programs do, without another machine.
var remotePrograms = map[string]string{
	"ssh": `
options() {
	while [ "${1#-}" != "$1" ]; do
		case $1 in --) shift; break;; -p | -vp | -o) shift;; esac
		shift
	done
	if [ "$host" ]; then exec bash -c "$*"; fi
	host=$1; shift; options "$@"
}
options "$@"`,
	"sshpass": `shift 2; exec "$@"`,
	"flock":   `shift; exec "$@"`,
	"taskset": `shift; exec "$@"`,
	"sudo":    `exec "$@"`,
	"rsync":   `:`,
}

// TestWordsThatBashEvaluates checks that a value in a placeholder is refused exactly where bash would
// run code in it.
func TestWordsThatBashEvaluates(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err == nil {
		version, _ := exec.Command(bash, "-c", `echo $((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1]))`).Output()
		if strings.TrimSpace(string(version)) < "502" {
			err = fmt.Errorf("bash %s", version)
		}
	}
	dir := t.TempDir()
	created := func(i int) bool {
		files, _ := filepath.Glob(filepath.Join(dir, fmt.Sprintf("ran.%d.*", i)))
		return len(files) > 0
	}
	var script strings.Builder // one process for all: a subshell for each command and value
	i := 0
	for _, c := range evaluatedCases {
		for _, command := range c.commands {
			for n, value := range hostileValues {
				value = fmt.Sprintf(value, fmt.Sprintf("ran.%d.%d", i, n))
				code := "a=(1 2)\n" + strings.ReplaceAll(command, "{}", text.ShellWord(value))
				fmt.Fprintf(&script, "(eval %s) </dev/null >/dev/null 2>&1\n", text.ShellWord(code))
			}
			i++
		}
	}
	if err == nil {
		programs := t.TempDir()
		for name, text := range remotePrograms {
			if err := os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh\n"+text), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		run := exec.Command(bash)
		run.Dir, run.Stdin = dir, strings.NewReader(script.String())
		run.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"))
		if out, err := run.CombinedOutput(); err != nil && run.ProcessState.ExitCode() < 0 {
			t.Fatalf("%v: %s", err, out)
		}
	}
	i = 0
	for _, c := range evaluatedCases {
		for _, command := range c.commands {
			ran := created(i)
			i++
			t.Run(command, func(t *testing.T) {
				from := strings.LastIndex(command, "{}")
				if got := Enclosures(command, [][]int{{from, from + 2}})[0]; got != c.want {
					t.Errorf("{} is %v, want %v", got, c.want)
				}
				if err == nil && ran != (c.want != Unenclosed) {
					t.Errorf("bash runs code in a value: %t", ran)
				}
			})
		}
	}
}

// TestCommandInAPlaceholder checks that a placeholder that is a whole command gets any value: the value
// is meant to run.
func TestCommandInAPlaceholder(t *testing.T) {
	for _, command := range []string{`eval {}`, `command eval {}`, `sh -c {}`, `bash -lc {} _ x`, `env sh -e -c {}`,
		`trap {} EXIT`, `mapfile -C {} -c 1 x`, `compgen -C {}`, `ssh host {}`, `ssh -p 22 host {}`, `{}`, `{} x`} {
		t.Run(command, func(t *testing.T) {
			from := strings.Index(command, "{}")
			if got := Enclosures(command, [][]int{{from, from + 2}})[0]; got != Unenclosed {
				t.Errorf("{} is %v", got)
			}
		})
	}
}
