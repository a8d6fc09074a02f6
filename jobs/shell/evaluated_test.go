package shell

import (
	"fmt"
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
		`: & wait -p {} $!`, `: & wait -n -p {}`,
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
	{Unenclosed, []string{
		`[ {} -eq 1 ]`, `[ -n {} ]`, `[ -o {} ]`, `[ -t {} ]`, `test {} = -v`, `[[ {} == {} ]]`, `[[ a =~ {} ]]`,
		`[[ -n {} ]]`, `[[ -o {} ]]`, `[[ {} -nt {} ]]`,
		`read x <<< {}`, `mapfile {} <<< 1`, `mapfile -O {} x <<< 1`,
		`printf {}`, `printf %d {}`, `printf %b {}`, `printf %q {}`, `printf -v x %s {}`, `printf -vx {}`,
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
		`: > {}`, `: {}>x`, `: < {}`, `: &> {}`, `: <&{}`, `: 2>&{}`, `: <<< {}`, `IFS={}`, `SECONDS={}`, `TMOUT={}`,
	}},
}

// hostileValues are values that create a file if bash evaluates them, as the name of a variable, an
// assignment, the elements of an array, or a command.
var hostileValues = []string{"a[$(>%s)0]", "a[$(>%s)0]=1", "([$(>%s)]=1)", "$(>%s)"}

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
		run := exec.Command(bash)
		run.Dir, run.Stdin = dir, strings.NewReader(script.String())
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
				if err == nil && ran != (c.want == evaluated) {
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
		`trap {} EXIT`, `mapfile -C {} -c 1 x`, `{}`, `{} x`} {
		t.Run(command, func(t *testing.T) {
			from := strings.Index(command, "{}")
			if got := Enclosures(command, [][]int{{from, from + 2}})[0]; got != Unenclosed {
				t.Errorf("{} is %v", got)
			}
		})
	}
}
