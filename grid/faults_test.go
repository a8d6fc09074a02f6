package grid

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"dcs-tui/jobs"
)

// TestErrorsHavePositions checks that a bad template has a clear error with file, line, and column,
// and that no job starts. Each case holds the template, the position of the error, and words of it.
func TestErrorsHavePositions(t *testing.T) {
	const (
		ok    = "a [C]\n[C] 1 2\n"
		three = "a [x]\n[x] 1 2 3\n"
		space = "a [x]\n[x] 0..1\n"
	)
	for _, c := range []struct{ text, at, words string }{
		// The file.
		{"", "t.txt", "no command"},
		{"\n[C] 1\n", "t.txt:1:1", "no command"},
		{"a\x00b", "t.txt:1", "NUL"},
		{"a\nb\x00", "t.txt:2", "NUL"},
		{"\xff\xfea", "t.txt:1:1", "UTF-16"},
		{"#!/bin/sh\na\n", "t.txt:1:1", "script"},
		{"a [C]\n[C] 1 \\", "t.txt:2", "ends inside"},
		{"a \\", "t.txt:1:1", "ends inside"},
		// Unknown parameters.
		{"svm -C [gama]\n[gamma] 1", "t.txt:1:8", "did you mean gamma?"},
		{"svm -C [gamma] -x [foo]\n[gamma] 1", "t.txt:1:19", `(\[foo] is text`},
		{"svm [lr]\n[LR] 1", "t.txt:1:5", "did you mean LR?"},
		{"svm [LR]\n[LR] 1\n@where lr > 1", "t.txt:3:8", `did you mean "LR"?`},
		{"svm [1]\n", "t.txt:1:5", "a line [1] 1, 2, 3 gives it values"},
		{"svm [1] [2]\n[1] 1", "t.txt:1:9", "the parameters are 1"},
		{"svm [2]\n[1] 1", "t.txt:1:5", "no parameter 2"},
		{"a \\\n  é [D] [C]\n[C] 1", "t.txt:2:5", "no parameter D"},
		{"a [C:x]\n[C] 1", "t.txt:1:3", "no form :x"},
		// Lists.
		{"a [C]\n[C]\n", "t.txt:2:4", "no values"},
		{"a [C]\n[C]   \n", "t.txt:2:4", "no values"},
		{"a [C]\n[C] 1,,2", "t.txt:2:7", "before this comma"},
		{"a [C]\n[C] ,2", "t.txt:2:5", "before this comma"},
		{"a [C]\n[C] 1,2,", "t.txt:2:8", "ends in a comma"},
		{"a [C]\n[C] 'x", "t.txt:2:5", "the closing ' is missing"},
		{"a [C]\n[C] 1 \"x\\\"", "t.txt:2:7", `the closing " is missing`},
		{"a [C]\n[C] 'x'y", "t.txt:2:8", "must follow the closing quote"},
		{"a [C]\n[C] x'y'", "t.txt:2:6", "put the whole value in quotes"},
		{"a [C]\n[C] \\\n  1,,2", "t.txt:3:5", "before this comma"},
		{ok + "[C] 3", "t.txt:3:1", "in line 2"},
		{"a [C]\n[C] " + strings.Repeat("x", 1<<17), "t.txt:2:1", "127 KiB"},
		{"a [C]\n[C] = 1 2", "t.txt:2:5", "without ="},
		{"a [C]\n[C] 1 2 # two", "t.txt:2:9", "a line of its own"},
		{"a [C]\n[C] 5, 1 .. 9", "t.txt:2:8", "1..9"},
		{"a [C]\n[C] [1, 2]", "t.txt:2:5", "without [ ]"},
		{"a [C]\n[C] {1..2}", "t.txt:2:5", "without { }"},
		{"a [C]\n[C] $(seq 3)", "t.txt:2:5", "command: seq 3"},
		{"a [C]\n[C] 1 `seq 3`", "t.txt:2:7", "command: seq 3"},
		{"a [C]\n[C] range(1,3)", "t.txt:2:5", "a parenthesis is missing in range(1"},
		{"a [C]\n[C]1 2 3", "t.txt:1:3", "no parameter C"},
		{"a [C]\n[C] 1\n[D]1 2 3", "t.txt:3:1", "a space must follow [D]"},
		{"a \\\n[C] 1 2", "t.txt:2:1", "the line before this one ends in \\"},
		{"a [C]\n[C] 1 \\ \n  2", "t.txt:2:8", "a space follows the \\"},
		{"a [C]\n[C] 1 \\\n 2 \\\t\n", "t.txt:3:5", "a space follows the \\"},
		{ok + "@where C > 1 \\ ", "t.txt:3:15", "a space follows the \\"},
		{"a [C] \\ \n  -x\n[C] 1", "t.txt:1:8", "a space follows the \\"},
		{"#DCS default tries=2\na \\\n [C] \\ \n  -x\n[C] 1", "t.txt:3:7", "a space follows the \\"},
		// Files of results.
		{ok + "@result y file:out_[D].json:acc", "t.txt:3:20", "there is no parameter D"},
		{ok + "@result y file:[c]/[D].txt", "t.txt:3:16", "did you mean C?"},
		{"a [1]\n[1] 1\n@result y file:[2].txt", "t.txt:3:16", "no parameter 2"},
		// Names.
		{ok + "[d-e] 1", "t.txt:3:1", "cannot be the name"},
		{ok + "[1a] 1", "t.txt:3:1", "cannot be the name"},
		{ok + "[] 1", "t.txt:3:1", "cannot be the name"},
		{ok + "[é] 1", "t.txt:3:1", "cannot be the name"},
		{ok + "[" + strings.Repeat("x", 101) + "] 1", "t.txt:3:1", "cannot be the name"},
		{ok + "[d 1 2", "t.txt:3:1", "the ] is missing"},
		{ok + "[d, e] 1 2", "t.txt:3:1", "@zip"},
		{ok + "[d]: 1 2", "t.txt:3:4", "a space must follow [d]"},
		{ok + "[d]= 1 2", "t.txt:3:4", "a space must follow [d]"},
		// Ranges.
		{"a [C]\n[C] 1..", "t.txt:2:5", "never ends"},
		{"a [C]\n[C] 1..inf", "t.txt:2:5", "never ends"},
		{"a [C]\n[C] 0..1 step 0", "t.txt:2:5", "its step is 0"},
		{"a [C]\n[C] 0..1 step -0.1", "t.txt:2:5", "write step 0.1"},
		{"a [C]\n[C] 10..1 step 2", "t.txt:2:5", "write step -2"},
		{"a [C]\n[C] 0..1 step", "t.txt:2:10", "a number must follow step"},
		{"a [C]\n[C] 0..1 step x", "t.txt:2:5", "not a number"},
		{"a [C]\n[C] 0.1..0.9", "t.txt:2:5", "needs a step: write"},
		{"a [C]\n[C] ..9", "t.txt:2:5", "no beginning"},
		{"a [C]\n[C] 1..x", "t.txt:2:5", "x is not a number"},
		{"a [C]\n[C] 1...9", "t.txt:2:5", "two dots stand between its ends, 1..9"},
		{"a [C]\n[C] 1..9 by 2", "t.txt:2:10", "write 1..9 step 2"},
		{"a [C]\n[C] 1..9..2", "t.txt:2:5", "1..9, and step 2 after it"},
		{"a [C]\n[C] 1..9 x5", "t.txt:2:10", "lin 1..9 x5"},
		{"a [C]\n[C] log 1..9", "t.txt:2:5", "needs a number of values"},
		{"a [C]\n[C] log 1..9, x3", "t.txt:2:5", "needs a number of values"},
		{"a [C]\n[C] log 0..9 x3", "t.txt:2:5", "cannot reach or cross 0"},
		{"a [C]\n[C] log -1..9 x3", "t.txt:2:5", "cannot reach or cross 0"},
		{"a [C]\n[C] log 1..9 x1", "t.txt:2:5", "at least 2"},
		{"a [C]\n[C] lin 1..1.0 x3", "t.txt:2:5", "both ends are the same"},
		{"a [C]\n[C] lin 1..2 x999999999999", "t.txt:2:5", "too close"},
		{"a [C]\n[C] 12345678901234567890..99999999999999999999", "t.txt:2:5", "more than 1125899906842624 values"},
		{"a [C]\n[C] 1..1e300", "t.txt:2:5", "more than 1125899906842624 values"}, {"a [C]\n[C] 1..1e3000", "t.txt:2:5",
			"1e3000 is not a number"},
		// Products.
		{"a [C] [D]\n[C] 1..1000\n[D] 1..10000", "t.txt:3:1", "10,000,000 jobs, more than 1,000,000"},
		{"a [C]\nb\n[C] 1..500001", "t.txt:3:1", "1,000,002 jobs"},
		{"a [C] [D] [E]\n[C] 1..10000000\n[D] 1..10000000\n[E] 1..10000000\n@where C=1", "t.txt:2:1", "10^18"},
		{"a [C]\n[C] 1..10000000\n@sample 2000000", "t.txt:3:1", "the sample gives 2,000,000 jobs"},
		// Quotes of commands.
		// Options.
		{"#DCS tires=3\n" + ok, "t.txt:1:6", "did you mean tries?"},
		{"#DCS tries=2 timeout=soonish\n" + ok, "t.txt:1:14", "soonish"},
		{"#DCS timeout=[C]\n" + ok, "t.txt:1:6", "only name=, send=, and return= may hold parameters"},
		{ok + "#DCS tries=3\n", "t.txt:3:1", "no job follows"},
		{"#DCS timeout=x name=timeout\n" + ok, "t.txt:1:6", "timeout"},
		{"#DCS after=1\n" + ok, "t.txt:1:6", "job 1 does not come before"},
		{"b\n#DCS after=eval\n" + ok, "t.txt:2:6", `"eval" is neither`},
		{"# DCS tries=3\n" + ok, "t.txt:1:1", "looks like options"},
		// Directives.
		{ok + "@wehre C > 1", "t.txt:3:1", "did you mean @where?"},
		{ok + "@ C", "t.txt:3:1", "there is no @"},
		// Filters. Package query tests the other errors.
		{ok + "@where", "t.txt:3:7", "a comparison is expected"},
		{ok + "@where C and C > 1", "t.txt:3:10", `a comparison such as = or > is expected after "C"`},
		{ok + "@where [D] > 1", "t.txt:3:8", `no parameter "D"`},
		{ok + "@where C < 'a'", "t.txt:3:12", "have no order"},
		{ok + "@where C > 1.2.3", "t.txt:3:12", `C is a number, and "1.2.3" is not`},
		{"a [k]\n[k] rbf poly\n@where k > 1", "t.txt:3:12", "have no order"},
		{"a [k]\n[k] rbf poly\n@where k * 2 > 1", "t.txt:3:8", `its value "rbf" is not a number`},
		{"a\n@where 1 < 2", "t.txt:2:1", "there is no parameter to filter by"},
		{ok + "@zip C", "t.txt:3:5", "@zip ties"},
		{ok + "@zip C, D", "t.txt:3:9", "no parameter D"},
		{ok + "[D] 1 2 3\n@zip C D", "t.txt:4:1", "[C] has 2 and [D] has 3"},
		{ok + "[D] 1 2\n@zip C D\n@zip D C", "t.txt:5:6", "zipped already, in line 4"},
		{ok + "@sample", "t.txt:3:8", "the number of points is missing"},
		{ok + "@sample 0", "t.txt:3:9", "not a number of points"},
		{ok + "@sample ten", "t.txt:3:9", "not a number of points"},
		{ok + "@sample 2 seed", "t.txt:3:11", "must follow seed"},
		{ok + "@sample 2 seed x", "t.txt:3:16", "not a seed"},
		{ok + "@sample 2 cubic", "t.txt:3:11", "not expected"},
		{ok + "@sample 2 of", "t.txt:3:11", "must follow of"},
		{ok + "@sample 2 of D", "t.txt:3:14", "no parameter D"},
		{ok + "@sample 2 C", "t.txt:3:11", "of C, gamma"},
		{ok + "[D] 1 2\n@sample 3 latin of D", "t.txt:4:1", "only 2 points"},
		{ok + "[D] 1 2\n@sample 2 latin of D\n@where C = D", "t.txt:4:1", "cannot be combined"},
		{ok + "@sample 2\n@sample 1", "t.txt:4:1", "in line 3"},
		{ok + "@sample 2 latin\n@where C=1", "t.txt:3:1", "cannot be combined"},
		{ok + "@sample 3 latin", "t.txt:3:1", "only 2 points"},
		{ok + "@result", "t.txt:3:8", "the name of the result is missing"},
		{ok + "@result C", "t.txt:3:9", "a parameter already"},
		{ok + "@result r\n@result r", "t.txt:4:9", "twice"},
		{ok + "@result r  xml:a", "t.txt:3:12", "the source of r is missing"},
		{ok + "@result r json:", "t.txt:3:11", "the source of r is missing"},
		{ok + "@hardness", "t.txt:3:10", "needs parameters"},
		{ok + "@hardness D", "t.txt:3:11", "no parameter D"},
		{ok + "@hardness C, C", "t.txt:3:14", "twice"},
		{ok + "@hardness C:x", "t.txt:3:13", "C:up, C:down"},
		{ok + "@hardness C:1<3", "t.txt:3:11", `the value "2" of C is missing`},
		{ok + "@hardness C:1<2<3", "t.txt:3:11", `C has no value "3"`},
		{ok + "@hardness C:1<2<1", "t.txt:3:11", "twice"},
		{"a [v]\n[v] x 1\n@hardness v", "t.txt:3:11", "from easy to hard"},
		{"a [v]\n[v] 10% 9%\n@hardness v", "t.txt:3:11", `the value "10%" of v is not a number`},
		{ok + "@hardness C\n@hardness C", "t.txt:4:1", "in line 3"},
		// Commands that compare (E2).
		{three + "@hardness command:", "t.txt:3:19", "the command that compares is missing"},
		{three + "@hardness x:up command: c", "t.txt:3:11", "name only x"},
		{three + "@hardness x, command: c", "t.txt:3:13", "ends in a comma"},
		{three + "@hardness y command: c", "t.txt:3:11", "no parameter y"},
		{three + "@hardness x x command: c", "t.txt:3:13", "twice"},
		{three + "@hardness x\n@hardness command: c", "t.txt:4:1", "in line 3"},
		{three + "@hardness command: echo no idea >&2; exit 3", "t.txt:3:20", "(exit status 3): no idea"},
		{three + "@hardness command: echo '<'", "t.txt:3:20", "1 answers to 3 lines: for each line that it reads"},
		{three + "@hardness x command: yes '<' | head -4", "t.txt:3:22", "4 answers to 3 lines"},
		{three + "@hardness command: printf '<\\n\\n>'", "t.txt:3:20",
			`answered "" to its line 2, (1) and (3): it should print <`},
		{three + "@hardness command: yes less | head -3", "t.txt:3:20", `answered "less" to its line 1, (1) and (2)`},
		{three + "@hardness command: printf '<\\n>\\n<\\n'", "t.txt:3:20",
			"contradicts itself: (1) < (2) and (2) < (3), but (1) > (3)"},
		{three + "@hardness command: printf '=\\n?\\n=\\n'", "t.txt:3:20",
			"contradicts itself: (1) = (2) and (2) = (3), but (1) ? (3)"},
		{"a [x]\n[x] 1..1001\n@hardness command: c", "t.txt:3:20", "more than 1,000 settings"},
		{"a [x]\n[x] 1..2000000\n@where x < 3\n@hardness command: c", "t.txt:4:20",
			"settings of at most 1,000,000 jobs"},
		{"a [x]\n[x] 1 'a\tb'\n@hardness command: c", "t.txt:3:20", `the value "a b" of [x] holds a tab`},
		// Searches.
		{space + "@search", "t.txt:3:8", "the method is missing"},
		{space + "@search best", "t.txt:3:9", "there is no method"},
		{space + "@search tpe minimize loss", "t.txt:3:1", "the number of trials is missing"},
		{space + "@search tpe trials 0", "t.txt:3:20", "from 1 to"},
		{space + "@search tpe trials 9", "t.txt:3:1", "needs a metric"},
		{space + "@search tpe trials", "t.txt:3:13", "something must follow"},
		{space + "@search tpe trials 9 minimize a maximize b", "t.txt:3:42", "one metric"},
		{space + "@search random trials 9 seed x", "t.txt:3:30", "is not a seed"},
		{space + "@search random trials 9 often 3", "t.txt:3:31", "not expected"},
		{space + "@search ask trials 9 minimize a", "t.txt:3:1", "takes a command"},
		{space + "@search tpe trials 9 minimize a command: x", "t.txt:3:1", "takes a command"},
		{space + "@search halving trials 9 minimize a factor 1", "t.txt:3:44", "from 2"},
		{space + "@search random trials 9\n@search lhs trials 9", "t.txt:4:1", "two searches"},
		{space + "@search random trials 9\n@where x > 0", "t.txt:4:1", "do not go together"},
		{space + "@search random trials 9\n@sample 3", "t.txt:4:1", "do not go together"},
		{space + "@search random trials 9 minimize x", "t.txt:3:1", "is a parameter"},
		{space + "b [x]\n@search random trials 9", "t.txt:3:1", "one command"},
		{"a\n@search random trials 9", "t.txt:2:1", "no parameter"},
		{"a [x]\n[x] 0..1 7\n@search random trials 9", "t.txt:2:1", "stands alone"},
		{"a [x]\n[x] 1..1\n@search random trials 9", "t.txt:2:5", "both ends are the same"},
		{"a [x]\n[x] log 0..1\n@search random trials 9", "t.txt:2:5", "must begin above 0"},
		{"a [x]\n[x] 1..9999999 step 1\n@search random trials 9", "t.txt:2:1", "leave out the step"},
		// Sources.
		{ok + "[f] file:", "t.txt:3:10", "file: PATH"},
		{ok + "[f] command: ", "t.txt:3:14", "command: ls"},
		{ok + "[f] file: none/such", "t.txt:3:11", "none/such"},
		{ok + "[f] file: .", "t.txt:3:11", "not a file"},
		{ok + "[f] command: echo too bad >&2; exit 3", "t.txt:3:14", "(exit status 3): too bad"},
		{ok + "[f] command: true", "t.txt:3:14", "printed no value"},
		{ok + "[f] command: printf 'a\\000b'", "t.txt:3:14", "NUL"},
		{ok + "[f] command: kill -9 $$", "t.txt:3:14", "killed"},
	} {
		t.Run(c.text, func(t *testing.T) {
			refused(t, Config{}, c.text, c.at, c.words)
		})
	}
}

// refused checks that the first error of a template is at a position and has these words in it.
func refused(t *testing.T, config Config, text, at, words string) {
	t.Helper()
	_, err := config.Parse(context.Background(), strings.NewReader(text), "t.txt")
	if err == nil {
		t.Errorf("%.60q: no error", text)
		return
	}
	if first, _, _ := strings.Cut(err.Error(), "\n"); !strings.HasPrefix(first, at+": ") ||
		!strings.Contains(first, words) {
		t.Errorf("%.60q: got\n%v\nwant %s: … %s", text, err, at, words)
	}
}

// TestErrorsAreReportedTogether checks that several errors are reported together, in the order of
// the file, at most ten.
func TestErrorsAreReportedTogether(t *testing.T) {
	_, err := Parse(strings.NewReader("a [D] [E]\n[C] 1,,2\n[F] 1..\n@foo\n"), "t.txt")
	var at []string
	for l := range strings.Lines(err.Error()) {
		at = append(at, strings.Join(strings.Split(l, ":")[1:3], ":"))
	}
	if got := strings.Join(at, " "); got != "1:3 1:7 2:7 3:5 4:1" {
		t.Errorf("places of the errors: got %s of\n%v", got, err)
	}
	var fault *jobs.ParseError
	if !errors.As(err, &fault) || fault.Line != 1 || fault.Column != 3 {
		t.Errorf("got error %+v, want one at line 1, column 3", fault)
	}
	var many strings.Builder
	for i := range 1200 {
		fmt.Fprintf(&many, "[x%d] 1\n", i)
	}
	many.WriteString("a [x0]\n")
	refused(t, Config{}, many.String(), "t.txt:1001:1", "there are more than 1000 parameters")
	_, err = Parse(strings.NewReader("a\n"+strings.Repeat("[x-y] 1\n", 30)), "t.txt")
	if n := strings.Count(err.Error(), "\n") + 1; n != 11 ||
		!strings.HasSuffix(err.Error(), "t.txt: there are 20 more errors") {
		t.Errorf("%d lines: %v", n, err)
	}
	// A value's control characters do not reach the terminal.
	if _, err := Parse(strings.NewReader("a\n[x\x1b[2J] 1\n"), "t.txt"); strings.Contains(err.Error(), "\x1b") {
		t.Errorf("got error %q, want no control characters", err)
	}
}

// TestWarningsHavePositions checks that a dubious line causes a warning with its position and no
// error.
func TestWarningsHavePositions(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"a [C] x[1]\n[C] 1", "t.txt:1:8: [1] is left as it is"},
		{"a [foo]\nb [C]\n[C] 1", "t.txt:1:3: [foo] is left as it is"},
		{"a ${b[1]}\nb [C]\n[C] 1", ""},
		{"a [ -f x ] [[ -d y ]] [a-z] b[1]\nb [C]\n[C] 1", ""},
		{"a ${x[i]}\n[i] 1", `t.txt:1:6: [i] is replaced by the value of the parameter; write \[i]`},
		{"a \"[C:q]\"\n[C] 1", "t.txt:1:4: [C:q] adds its own quotes"},
		{"a [C]\n[C] 1\n[s] 1..3", "t.txt:3:1: [s] stands in no command: each job is repeated"},
		{"a [C] $DCS_PARAM_s\n[C] 1\n[s] 1..3", ""},
		{"a [C]\n[C] 1 2 1", "t.txt:2:1: [C] has the value \"1\" more than once"},
		{"a [C]\n[C] 1..3 2", "t.txt:2:1: [C] has the value \"2\" more than once"},
		{"a [C]\n[C] 1..3 lin 3..4 x3", "t.txt:2:1: [C] has the value \"3\" more than once"},
		{"a [C]\n[C] 1;2;3", "t.txt:2:5: 1;2;3 is taken as a text: separate values with commas or spaces"},
		{"a [C]\n[C] 1 2\n@sample 5", "t.txt:3:1: @sample 5: there are only 2 points"},
		{"a [k]\n[k] rbf poly\n@where k = 'rbff' or k != 'x'",
			"t.txt:3:12: k is never \"rbff\" (did you mean \"rbf\"?)\nt.txt:3:27: k is never \"x\""},
		{"a [C]\n[C] 1 2\n@where C != 3.5", "t.txt:3:13: C is never \"3.5\""},
		{"a [C]\n[C] 1 2\n@where C != '1.0'", "t.txt:3:13: C is never \"1.0\""},
		{"#DCS cwd=out/[C]\na [C]\n[C] 1 2", "t.txt:2: [C] is not replaced in options"},
		{"a [C]\n[C] x #1", "t.txt:2:7: #1 is taken as a text: a comment"},
		{"a [C]\n[C] 2026-11-20 a-b '10:30' '1-10'", ""},
		{"a [C] [D]\n[C] 1\n[D] x[C]", "t.txt:3:1: the value \"x[C]\" of [D] stays as it is"},
		{"a [f]\n[f] command: echo 'a b'; echo c",
			"t.txt:1:3: the value \"a b\" of [f] means something to the shell: write [f:q]"},
		{"a [f:q]\n[f] command: echo 'a b'", ""},
		{"a \"$(b 'c)\" it's # don't [C]\n[C] 1", ""},
		{"a # don't [C]\n[C] 1", ""},
		{"a [C]\n[C] file:t/list.txt", "t.txt:2:5: file:t/list.txt is taken as a text: " +
			"values come from a file if it stands first and a space follows, file: t/list.txt"},
		{"a [C]\n[C] command:ls 'command:x' file://x 1",
			"t.txt:2:5: command:ls is taken as a text: values come from a command"},
		{"a [C]\n[C] 1 2\n@result l file:log.txt:key:loss", "t.txt:3:9: log.txt is the same file for all jobs"},
		{"a [C]\n[C] 1 2\n@result l file:{run}/log.txt", "t.txt:3:9: {run}/log.txt is the same file for all jobs"},
		{"a [C]\n[C] 1 2\n@result l file:{id}.txt\n@result m file:[C].txt\n@result n file:{attempt}", ""},
		{"a [C]\n[C] 1\n@result l file:log.txt", ""},
		{"a [C]\n[C] 1 2\n@result l file:x[1]{C}{id}{y}.txt",
			"t.txt:3:17: [1] is left as it is: there is no parameter 1\nt.txt:3:20: {C} is left as it is: " +
				"write [C] for the parameter\nt.txt:3:27: {y} is left as it is: there are {id}"},
	} {
		t.Run(c.text, func(t *testing.T) {
			var got []string
			for _, w := range parse(t, c.text).Warnings {
				got = append(got, w.Error())
			}
			if s := strings.Join(got, "\n"); c.want == "" && s != "" || !strings.HasPrefix(s, c.want) ||
				strings.Count(s, "\n") != strings.Count(c.want, "\n") {
				t.Errorf("%q:\n%s\nwant %s", c.text, s, c.want)
			}
		})
	}
}
