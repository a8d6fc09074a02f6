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
		`X=-e; bash $X -c 'echo '{}`, `X=-ec; bash "$X" 'echo '{}`, `X=bash; $X -c 'echo '{}`,
		`X=a Y=-e; bash ${Y} -c 'echo '{}`,
		`env bash /dev/null; env bash -c x\;{}`, `bash --rcfile x -c 'echo '{}`,
		`trap 'echo '{} EXIT`, `mapfile -c 1 -C : x <<< 1; mapfile -c 1 -C ': '{} x <<< 1`,
		`compgen -W {}`, `compgen -W 'x '{}`,
		`: >&{}`, `: 1>&{}`, `exec {a[{}]}>/dev/null`,
	}},
	{ifOption, []string{
		`: ${X:=-e}; bash $X -c 'echo '{}`, `bash ${X} -c 'echo '{}`, `bash $(echo -e) -c 'echo '{}`,
		`: ${X:=-e}; bash "$X" -c 'echo '{}`, `: ${X:=-e}; bash "${X}" -e -c 'echo '{}`, `bash "${X[@]}" -c 'echo '{}`,
		`bash -e$X -c 'echo '{}`, `bash -c$X 'echo '{}`, `bash $X$Y -c 'echo '{}`,
		`X=/dev/null; X=$Y; bash $X -c 'echo '{}`,
		`X=; bash $X -c 'echo '{}`, `X=' -e'; bash $X -c 'echo '{}`, `X=x; X=; bash $X -c 'echo '{}`,
		`X=/dev/null; : ; X=-e; bash $X -c 'echo '{}`, `(X=/dev/null); bash $X -c 'echo '{}`,
		`X=/dev/null | :; bash $X -c 'echo '{}`,
		`X=/dev/null & bash $X -c 'echo '{}`, `X=/dev/null bash $X -c 'echo '{}`, `X=x; bash ${X#x} -c 'echo '{}`,
		`X=/dev/null; unset X; bash $X -c 'echo '{}`, `_=/dev/null; bash $_ -c 'echo '{}`,
		`FUNCNAME=/dev/null; bash $FUNCNAME -c 'echo '{}`, `BASH_SOURCE=/dev/null; bash $BASH_SOURCE -c 'echo '{}`,
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
		`X=/dev/null; bash $X -c x{}`, `X=/dev/null; bash "$X" -e -c x{}`, `X=/dev/null; bash ${X} -c x{}`,
		`X=/dev/null Y=1; bash $X -c x{} | cat`, `X=/dev/null; bash $X -c x{} && :`, `bash $X/dev/null -c x{}`,
		`bash "$X/dev/null" -c x{}`, `bash ./x$X -c x{}`, `bash x$X -c x{}`, `bash -- $X -c x{}`, `bash $(:)/x -c x{}`,
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
var hostileValues = []string{"a[$(: >%s)0]", "a[$(: >%s)0]=1", "([$(: >%s)]=1)", "$(: >%s)"}

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

// kornCommands are commands of zsh and mksh. One of these shells runs code in a value, or a similar one
// does.
var kornCommands = []string{
	`export {}`, `export {}=1`, `readonly {}`, `local {}`, `private {}`, `typeset {}`, `nameref x={}; x=1`,
	`integer x={}`, `float x={}`, `integer x; x={}`, `x={}; typeset -i x`, `typeset -i10 x={}`, `typeset -F x={}`,
	`shift {}`, `exit {}`, `builtin exit {}`, `noglob exit {}`, `return {}`, `f() { return {}; }; f`,
	`logout {}`, `bye {}`,
	`for i in 1; do break {}; done`, `for i in 1; do continue {}; done`, `repeat {} echo`,
	`read {}`, `read -t {} x`, `read -u {} x`, `getln {}`, `vared {}`, `getopts a {} -a`, `set -A {} x`, `unset {}`,
	`[ {} -eq 1 ]`, `[ 1 -lt {} ]`, `[ -t {} ]`, `[[ -t {} ]]`, `[ ! -t {} ]`, `printf %d {}`, `printf '%s %x' a {}`,
	`ulimit -n {}`, `SECONDS={}`, `TMOUT={}`, `LINES={}`, `HISTSIZE={}`, `LISTMAX={}`, `PPID={}`, `export LINES={}`,
	`for SECONDS in {}; do :; done`, `for LINES in {}; do :; done`,
}

// commandsOf returns the commands of the test for a shell.
func commandsOf(isBash bool) (commands []string, wants []Enclosure) {
	for _, c := range evaluatedCases {
		for _, command := range c.commands {
			commands, wants = append(commands, command), append(wants, c.want)
		}
	}
	if isBash {
		return commands, wants
	}
	for range kornCommands {
		wants = append(wants, kornEvaluated)
	}
	return append(commands, kornCommands...), wants
}

// evaluatedIn returns for each command whether it runs code in a hostile value. It returns an error if the
// shell cannot be asked.
func evaluatedIn(t *testing.T, shell []string, commands []string) (ran []bool, err error) {
	t.Helper()
	program, err := exec.LookPath(shell[0])
	if err != nil {
		return nil, err
	}
	dir, programs := t.TempDir(), t.TempDir()
	for name, text := range remotePrograms {
		if err := os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh\n"+text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	array := "a=(1 2)\n"
	if shell[0] == "dash" || shell[0] == "busybox" {
		array = ""
	}
	var script strings.Builder // one process for all: a subshell for each command and value
	for i, command := range commands {
		for n, value := range hostileValues {
			value = fmt.Sprintf(value, fmt.Sprintf("ran.%d.%d", i, n))
			code := array + strings.ReplaceAll(command, "{}", text.ShellWord(value))
			fmt.Fprintf(&script, "(eval %s) </dev/null >/dev/null 2>&1\n", text.ShellWord(code))
		}
	}
	run := exec.Command(program, shell[1:]...)
	run.Dir, run.Stdin = dir, strings.NewReader(script.String())
	run.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"))
	if out, err := run.CombinedOutput(); err != nil && run.ProcessState.ExitCode() < 0 {
		t.Fatalf("%v: %s", err, out)
	}
	for i := range commands {
		files, _ := filepath.Glob(filepath.Join(dir, fmt.Sprintf("ran.%d.*", i)))
		ran = append(ran, len(files) > 0)
	}
	return ran, nil
}

// TestWordsThatBashEvaluates checks that a value in a placeholder is refused exactly where bash would
// run code in it.
func TestWordsThatBashEvaluates(t *testing.T) {
	commands, wants := commandsOf(true)
	var ran []bool
	version, err := exec.Command("bash", "-c", `echo $((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1]))`).Output()
	if err == nil && strings.TrimSpace(string(version)) >= "502" {
		ran, err = evaluatedIn(t, []string{"bash"}, commands)
	}
	for i, command := range commands {
		t.Run(command, func(t *testing.T) {
			from := strings.LastIndex(command, "{}")
			if got := Enclosures("", command, [][]int{{from, from + 2}})[0]; got != wants[i] {
				t.Errorf("{} is %v, want %v", got, wants[i])
			}
			if err == nil && ran != nil && ran[i] != (wants[i] != Unenclosed) {
				t.Errorf("bash runs code in a value: %t", ran[i])
			}
		})
	}
}

// TestWordsThatOtherShellsEvaluate checks that a value is refused wherever another shell would run code in
// it, and that it is not refused where only bash would have to be asked: for zsh and Korn shells, a refusal
// names them.
func TestWordsThatOtherShellsEvaluate(t *testing.T) {
	for _, shell := range [][]string{{"zsh", "-f"}, {"mksh"}, {"ksh93"}, {"dash"}, {"busybox", "sh"}} {
		t.Run(shell[0], func(t *testing.T) {
			isBash := !evaluatesMore(strings.Join(shell, " "))
			commands, wants := commandsOf(isBash)
			ran, err := evaluatedIn(t, shell, commands)
			if err != nil {
				t.Logf("not run: %v", err)
				ran = make([]bool, len(commands))
			}
			for i, command := range commands {
				from := strings.LastIndex(command, "{}")
				got := Enclosures(strings.Join(shell, " "), command, [][]int{{from, from + 2}})[0]
				if ran[i] && got == Unenclosed {
					t.Errorf("%s runs code in a value: %s", shell[0], command)
				}
				if got == Unenclosed && wants[i] != Unenclosed {
					t.Errorf("{} is %v, want %v: %s", got, wants[i], command)
				}
			}
		})
	}
}

// TestShellsThatEvaluateMore checks which values of --shell are zsh or a Korn shell, also behind a program
// that starts them. An unknown shell counts as one.
func TestShellsThatEvaluateMore(t *testing.T) {
	for shell, want := range map[string]bool{"": false, "/bin/sh": false, "bash -l": false,
		"krenew -t -- /bin/sh": false, "apptainer exec --nv lab.sif /bin/bash": false,
		"/usr/bin/zsh": true, "nice mksh": true, "ksh93": true,
		"busybox sh": false, "fish": true} {
		if got := evaluatesMore(shell); got != want {
			t.Errorf("%q: %t, want %t", shell, got, want)
		}
	}
}

// TestScriptInAVariable checks that a word is refused that a shell evaluates only if the variable before -c
// is an option, and that the refusal names what rules it out.
func TestScriptInAVariable(t *testing.T) {
	got := Enclosures("", "bash $SCRIPT -c x{}", [][]int{{17, 19}})[0]
	if got != ifOption || !got.IsEvaluated() || !strings.Contains(got.String(), "-- before that") {
		t.Errorf("it is %v", got)
	}
	if got := Enclosures("", "bash -- $SCRIPT -c x{}", [][]int{{20, 22}})[0]; got != Unenclosed {
		t.Errorf("behind --, it is %v", got)
	}
}

// TestCommandInAPlaceholder checks that a placeholder that is a whole command gets any value: the value
// is meant to run.
func TestCommandInAPlaceholder(t *testing.T) {
	for _, command := range []string{`eval {}`, `command eval {}`, `sh -c {}`, `bash -lc {} _ x`, `env sh -e -c {}`,
		`trap {} EXIT`, `mapfile -C {} -c 1 x`, `compgen -C {}`, `ssh host {}`, `ssh -p 22 host {}`, `{}`, `{} x`} {
		t.Run(command, func(t *testing.T) {
			from := strings.Index(command, "{}")
			if got := Enclosures("", command, [][]int{{from, from + 2}})[0]; got != Unenclosed {
				t.Errorf("{} is %v", got)
			}
		})
	}
}
