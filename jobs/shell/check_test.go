package shell

import (
	"os/exec"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

// TestIncompleteCommandsAreRefused checks that a line that is only a part of a command is refused.
func TestIncompleteCommandsAreRefused(t *testing.T) {
	for _, command := range []string{
		"cat <<EOF", "cat <<-'EOF' >x", `echo "a`, `b"`, "echo 'a", "for i in 1 2", "for i in 1 2; do",
		"while true; do echo $i",
		"if true; then", "true && if true", "( cd x", "{ cd x;", "x=$(date", "echo `date", "case $x in", "f() {",
		"echo ${x", "echo $((1+",
		`["echo 1", "echo 2"]`, `{"command": "true"}`, "echo 1\recho 2\recho 3", "until false; do",
		`echo "'" 'a`, `(echo ")"`, `x="$(date`, "echo a |", "echo a &&", "false ||", "cat <<EOF | sort",
		"(cat <<EOF)", "cat <<EOF; echo a", "[",
	} {
		t.Run(command, func(t *testing.T) {
			for _, shell := range []string{"", "/bin/sh", "/bin/bash", "dash", "ksh"} {
				if Checker(shell)(command) == nil {
					t.Errorf("%s accepts %q", shell, command)
				}
			}
		})
	}
	if Checker("/usr/bin/fish") != nil || Checker("python3") != nil || Checker("zsh") != nil {
		t.Error("commands of a shell whose language is not known are checked")
	}
}

// TestValidCommandsAreAccepted checks that no complete command is refused. The shells themselves
// say what is complete.
func TestValidCommandsAreAccepted(t *testing.T) {
	for _, command := range []string{
		`echo it\'s`, `echo "it's"`, `echo '"'`, `echo \"`, `echo a # it's a "comment`, "echo a#b", `echo ")"`,
		`echo \(`, "echo '('", `echo "{"`,
		"case x in x) echo 1;; esac",
		"case x in (x) echo 1;; esac",
		"if true; then echo 1; fi",
		"for i in 1 2; do echo $i; done",
		"while false; do :; done", "until true; do :; done", "{ echo a; }", "(echo a)", "f() { echo a; }; f",
		"f() (echo a); f",
		"echo $((1<<2))", "echo $(( (1<<2) + 3 ))", "echo ${x:-')'}", `echo "${x:-a}"`, `echo "$(echo "a")"`,
		"echo `echo a`", "echo `echo \\`echo a\\``",
		`echo "${x:-"a b"}"`, "echo for if while", "echo ;: for", "echo {", "echo }", "echo {}", "echo {a", "echo a}",
		"echo [ ]", "[ a = a ]", "! false",
		"true && { echo a; }", "true & wait", "echo a > /dev/null 2>&1", "x=1 true", "x='a b' true",
		"echo $# $? $$ $! $-", "echo ${#x}", "echo $'", "echo \"$'\"",
		"echo '' \"\" ``", "echo \"a\\\"b\"", `awk 'BEGIN { print "it" }'`, `sed -e 's/a/b/;s/"/x/' /dev/null`,
		"printf '%s\\n' \"a'b\"", "echo a\\", "echo 'a\nb'",
		"cat <<E\na\nE\n", "cat <<E\n$(echo ')')\nE", "cat <<E\na", "cat <<E\n", "set -- a b; echo \"$@\"",
		"echo ~ * ?", "trap 'echo a' EXIT", "eval 'echo \"a\"'", "exec 3>/dev/null",
		"echo \"$(case x in x) echo 1;; esac)\"", "echo $(case x in (x) echo 1;; esac)", "echo $(echo a # b\n)",
		": ${x:=${y:-'}'}}", "printf 'a\rb'", "true;", "true ;", "#", ": '#' #'",
		"echo <<<", "cat <<< 'a b'", "[[ a < b ]]", "[[ a =~ (a|b) ]]", "[[ a == !(b) ]]", "echo $'it\\'s'",
		`echo $"a"`, "diff <(echo a) <(echo a)", "a=(1 2 3); echo ${a[@]}", "((i=1<<2)); echo $i",
		"for ((i=0;i<2;i++)); do echo $i; done", "select x in a; do break; done </dev/null",
		"function f { echo a; }; f", "echo {1..3} {a,b}", "echo ${x//\\'/}", "echo ${x//\"'\"/}", "coproc cat",
		"x=$((2#11))", "time true",
		"echo \"${x%\\}}\"", "echo ${x#(}", "if [[ a == *\\)* ]]; then :; fi", "echo $[1+1]",
		"declare -A m=([a]=1); echo ${m[a]}", "echo a |& cat", "case x in x) ;& y) :;; esac",
		"echo a \\|", "echo 'a |'", "echo a \\<<E", "echo '<<' a", "echo \"<<E\"", "true # <<E", "echo $((x<<1))",
		"((1<<2)) && echo a", "echo a &", "echo '(' \")\"",
	} {
		for _, shell := range []string{"sh", "bash", "dash", "ksh"} {
			path, err := exec.LookPath(shell)
			if err != nil {
				continue
			}
			refused := Checker(shell)(command)
			if out, err := exec.Command(path, "-n", "-c", command).CombinedOutput(); err == nil &&
				(len(out) == 0 || strings.Contains(command, "\n")) && refused != nil {
				t.Errorf("%s accepts %q: %v", shell, command, refused)
			}
		}
	}
}

// FuzzScanFindsIncompleteCommands checks that the quick scan never passes a command that every
// language of a shell finds incomplete.
func FuzzScanFindsIncompleteCommands(f *testing.F) {
	for _, s := range scanSeeds {
		f.Add(s)
	}
	names := []string{"sh", "bash", "ksh"}
	parsers := map[string][]*syntax.Parser{}
	for _, name := range names {
		for _, lang := range variants(name) {
			parsers[name] = append(parsers[name], syntax.NewParser(syntax.Variant(lang)))
		}
	}
	f.Fuzz(func(t *testing.T, command string) {
		if isSuspicious(command) || hasLoneCR(command) || strings.ContainsRune(command, 0) || len(command) > 1000 {
			return
		}
		for _, name := range names {
			missing := ""
			for _, p := range parsers[name] {
				if missing = findMissing(command, p); missing == "" {
					break
				}
			}
			if missing != "" {
				t.Errorf("the scan passes %q, which lacks in %s: %s", command, name, missing)
			}
		}
	})
}

// scanSeeds are commands that are not complete although their quotes and parentheses are, or that
// have their ends in a place where they mean nothing.
var scanSeeds = []string{
	"for i in 1; do echo $i", "time for i in 1; do a", "time -p while a", "! while a; do", "coproc for i in 1; do",
	"{ echo a }", "a && { b }", "[[ a == b", "[[ a == b ] ]",
	"a && # b", "a | # b", "( # )", "{ # }", "a |&", "a >", "a <", "a 2>&", "f()", "f ( )", "function f", "$'a\\'",
	"echo $'\\''", "echo $[1", "a=(1", "a[1", "${x", "echo ${x:-'}'",
	"if a; then b; fi; for x in 1; do echo", "true && for x in 1; do echo", "$(for i in 1; do echo)", "\"$(if a)\"",
	"`if a`", "echo $((1+", "((1+", "let a=(", "case x in", "select x",
	"until a", "a; if b", "a & if b", "a\nif b", "a \\", "<(if a)", "@(a", "[[ a =~ (b ]]", "echo ${x/'/}", "x=`a",
	"x=\"`a\"", "function f {", "f() (", "echo \"${x:-\"", "echo {", "}", "'a' 'b",
}

// BenchmarkCheck measures the check of a usual command.
func BenchmarkCheck(b *testing.B) {
	check := Checker("")
	for b.Loop() {
		if check("./simulate --seed 17 --name 'a b' --out results/17.csv") != nil {
			b.Fatal("refused")
		}
	}
}
