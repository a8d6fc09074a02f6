package grid

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"dcs-tui/jobs"
)

// parse parses a template without access to anything outside it.
func parse(t *testing.T, text string) *Template {
	t.Helper()
	tmpl, err := Parse(strings.NewReader(text), "t.txt")
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

// same checks that two values are equal.
func same[T comparable](t *testing.T, what any, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%v: got %v, want %v", what, got, want)
	}
}

// specsOf returns all jobs of a template, in order.
func specsOf(t *testing.T, tmpl *Template) []*jobs.Spec {
	t.Helper()
	var all []*jobs.Spec
	for s, err := range tmpl.Jobs() {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

// commandsOf returns all commands of a template, in order.
func commandsOf(t *testing.T, tmpl *Template) (all []string) {
	t.Helper()
	for _, s := range specsOf(t, tmpl) {
		all = append(all, s.Command)
	}
	return all
}

// points returns the joined values of each job, in order.
func points(t *testing.T, tmpl *Template) (all []string) {
	t.Helper()
	for _, s := range specsOf(t, tmpl) {
		text := ""
		for _, p := range s.Params() {
			text += " " + p.Value
		}
		all = append(all, text)
	}
	return all
}

// TestJobsOfTheBeanstalksReport checks the example of the Beanstalks report: all 30 jobs in order,
// in which the last parameter varies fastest (K4).
func TestJobsOfTheBeanstalksReport(t *testing.T) {
	tmpl := parse(t,
		"svm -train -kernel rbf -C [1] -gamma [2]\n[1] 0.001, 0.01, 0.1, 1, 10, 100\n[2] 0 0.25 0.5 0.75 1\n")
	var want []string
	for _, c := range []string{"0.001", "0.01", "0.1", "1", "10", "100"} {
		for _, g := range []string{"0", "0.25", "0.5", "0.75", "1"} {
			want = append(want, "svm -train -kernel rbf -C "+c+" -gamma "+g)
		}
	}
	for i, s := range specsOf(t, tmpl) {
		if s.Command != want[i] || s.ID != jobs.ID(i+1) || s.Line != 1 || s.File != "t.txt" || len(s.Params()) != 2 ||
			s.Params()[0].Name != "1" {
			t.Fatalf("job %d: %+v, want %s", i+1, s, want[i])
		}
	}
	if n, err := tmpl.Count(); n != len(want) || err != nil || len(tmpl.Warnings) > 0 {
		t.Errorf("count %d, %v, warnings %v", n, err, tmpl.Warnings)
	}
}

// TestEveryFormOfATemplate checks every form of a template with all its commands.
func TestEveryFormOfATemplate(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       string // joined by |
	}{
		{"names", "a [C] [lr]\n[C] 1 2\n[lr] x", "a 1 x|a 2 x"},
		{"values before the command", "[C] 1 2\na [C]", "a 1|a 2"},
		{"no parameter", "echo hello\n", "echo hello"},
		{"commas without spaces", "a [C]\n[C] 1,2,3", "a 1|a 2|a 3"},
		{"commas and spaces mixed", "a [C]\n[C] 1 , 2\t3", "a 1|a 2|a 3"},
		{"used twice", "a [C] -o out/[C].txt\n[C] 1 2", "a 1 -o out/1.txt|a 2 -o out/2.txt"},
		{"a command that begins with a parameter", "[p:q] x\n[p]/bin/y\n[p] /a", "/a x|/a/bin/y"},
		{"several commands", "a [C]\nb [C]\n[C] 1 2", "a 1|b 1|a 2|b 2"},
		{"continued lines", "a \\\n  [C]\n[C] 1 \\\n 2", "a   1|a   2"},
		{"comments and blank lines", "# [x] 1\n\na [C]\n  # c\n[C] 1", "a 1"},
		{"CRLF", "a [C]\r\n[C] 1 2\r\n", "a 1|a 2"},
		{"byte order mark", "\ufeffa [C]\n[C] 1", "a 1"},
		{"indented", "  a [C]\n\t[C] 1", "a 1"},
		{"quotes", "a [C]\n[C] 'x y', \"a \\\"b\\\" \\\\\", ''", `a x y|a a "b" \|a `},
		{"quotes keep ranges and words", "a [C]\n[C] '1..3' \"log\" 1..2", "a 1..3|a log|a 1|a 2"},
		{"quoted for the shell", "a [C:q]\n[C] 1 'x y' \"it's\" '' '$(id)' 'a=b'",
			`a 1|a 'x y'|a 'it'\''s'|a ''|a '$(id)'|a a=b`},
		{"range", "a [C]\n[C] 1..4", "a 1|a 2|a 3|a 4"},
		{"range downwards", "a [C]\n[C] 2..-1", "a 2|a 1|a 0|a -1"},
		{"range of one", "a [C]\n[C] 3..3", "a 3"},
		{"range with zeros", "a [C]\n[C] 08..11", "a 08|a 09|a 10|a 11"},
		{"exact decimals", "a [C]\n[C] 0..1 step 0.1", "a 0|a 0.1|a 0.2|a 0.3|a 0.4|a 0.5|a 0.6|a 0.7|a 0.8|a 0.9|a 1"},
		{"step that does not meet the end", "a [C]\n[C] 0..1 step 0.4", "a 0|a 0.4|a 0.8"},
		{"step downwards", "a [C]\n[C] 1..0 step -0.5", "a 1|a 0.5|a 0"},
		{"small steps", "a [C]\n[C] 1e-7..3e-7 step 1e-7", "a 1e-7|a 2e-7|a 3e-7"},
		{"large numbers", "a [C]\n[C] 1e6..2e6 step 500000", "a 1000000|a 1500000|a 2000000"},
		{"log", "a [C]\n[C] log 1e-3..1e2 x6", "a 0.001|a 0.01|a 0.1|a 1|a 10|a 100"},
		{"log between", "a [C]\n[C] log 1..100 x5", "a 1|a 3.16228|a 10|a 31.6228|a 100"},
		{"log downwards, below 0", "a [C]\n[C] log -100..-1 x3", "a -100|a -10|a -1"},
		{"log of near ends", "a [C]\n[C] log 1..1.000001 x3", "a 1|a 1.0000005|a 1.000001"},
		{"lin", "a [C]\n[C] lin 0..1 x5", "a 0|a 0.25|a 0.5|a 0.75|a 1"},
		{"lin without end", "a [C]\n[C] lin 0..1 x4", "a 0|a 0.333333|a 0.666667|a 1"},
		{"mixed", "a [C]\n[C] 0, 1..3, log 10..100 x2 x", "a 0|a 1|a 2|a 3|a 10|a 100|a x"},
		{"log and lin as words", "a [C]\n[C] log lin, log, 1..2", "a log|a lin|a log|a 1|a 2"},
		{"paths are no ranges", "a [C]\n[C] ../x a/.. .. 'v1..v2'", "a ../x|a a/..|a ..|a v1..v2"},
		{"a URL is a value", "a [C]\n[C] file:///x", "a file:///x"},
		{"zip", "a [w] [h] [c]\n[w] 1 2\n[c] x y\n[h] 3 4\n@zip w, h", "a 1 3 x|a 1 3 y|a 2 4 x|a 2 4 y"},
		{"where", "a [C] [g]\n[C] 1..3\n[g] 1..3\n@where C < g", "a 1 2|a 1 3|a 2 3"},
		{"two filters", "a [C]\n[C] 1..9\n@where C > 3\n@where C < 6", "a 4|a 5"},
		{"seeds", "a [C] --seed [seed]\n[C] x y\n[seed] 1..2", "a x --seed 1|a x --seed 2|a y --seed 1|a y --seed 2"},
		{"escaped", `a \[C] [C]` + "\n[C] 1", "a [C] 1"},
		{"an escaped backslash", `a \\[C]` + "\n[C] 1", `a \\1`},
		{"regular expressions", `grep '\[C\]' [C]` + "\n[C] 1", `grep '\[C\]' 1`},
		{"test", "[ -f [C] ] && a [C]\n[C] 1", "[ -f 1 ] && a 1"},
		{"test alone", "[ -f x ] && a\n[[ -f y ]] && b\n", "[ -f x ] && a|[[ -f y ]] && b"},
		{"arrays", "a $a[1] ${a[i]} ${#b[0]} x[1]\nb [C]\n[C] 1", "a $a[1] ${a[i]} ${#b[0]} x[1]|b 1"},
		{"classes", "ls [a-z]* [[:alpha:]] [!x] [C]\n[C] 1", "ls [a-z]* [[:alpha:]] [!x] 1"},
		{"attached", "a run_[C].log x[C]\n[C] 1", "a run_1.log x1"},
		{"unicode", "écho «[C]»\n[C] ä 'ö ü'", "écho «ä»|écho «ö ü»"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tmpl := parse(t, c.text)
			got := commandsOf(t, tmpl)
			same(t, "jobs", strings.Join(got, "|"), c.want)
			if n, err := tmpl.Count(); n != len(got) || err != nil {
				t.Errorf("count %d, %v, but there are %d jobs", n, err, len(got))
			}
		})
	}
}

// TestParamsStandInTheSpec checks that a job gets all its parameters as DCS_PARAM_<name>, including
// those that are in no command.
func TestParamsStandInTheSpec(t *testing.T) {
	tmpl := parse(t, "a [C]\n[C] 0.10 'x y'\n[seed] 1..2\n")
	last := []jobs.Param{{Name: "C", Value: "x y"}, {Name: "seed", Value: "2"}}
	if got := specsOf(t, tmpl)[3]; !slices.Equal(got.Params(), last) {
		t.Errorf("got %+v, want the parameters %v", got, last)
	}
	if len(tmpl.Warnings) != 1 || !strings.Contains(tmpl.Warnings[0].Text(), "DCS_PARAM_seed") {
		t.Errorf("got warnings %v, want one about DCS_PARAM_seed", tmpl.Warnings)
	}
}

// TestDCSLinesWorkAsInJobsFiles checks that #DCS lines work as in jobs files, that name= may
// contain parameters, and that equal options are one value for all jobs.
func TestDCSLinesWorkAsInJobsFiles(t *testing.T) {
	specs := specsOf(
		t, parse(t, "#DCS default tries=2 tags=x\n#DCS name='run [C]' timeout=2h\na [C]\nb [C]\n[C] 1 2\n"),
	)
	a, b := specs[0], specs[1]
	if a.Name != "run 1" || specs[2].Name != "run 2" || b.Name != "b C=1" || a.Timeout.Hours() != 2 || a.Tries != 2 ||
		b.Timeout != 0 || b.Tries != 2 {
		t.Errorf("got %+v %+v and %+v %+v, want the names and options of the template", a, a.Options, b, b.Options)
	}
	if a.Options != specs[2].Options || b.Options != specs[3].Options {
		t.Error("equal options are not shared")
	}
	if a.Line != 3 || b.Line != 4 {
		t.Errorf("lines %d, %d", a.Line, b.Line)
	}
}

// TestTitleOfAJobIsItsValues checks that the title of a job is its values, preceded by the program
// if there are several.
func TestTitleOfAJobIsItsValues(t *testing.T) {
	for text, want := range map[string]string{
		"a [C] [g]\n[C] 1\n[g] x":                "C=1 g=x",
		"a\n":                                    "",
		"/bin/a [C]\nb [C]\n[C] 1":               "a C=1|b C=1",
		"a -x [C]\na -y [C]\n[C] 1":              "#1 C=1|#2 C=1",
		"X=1 a [C]\nb [C]\n[C] 1":                "#1 C=1|#2 C=1",
		"a [C]\n[C] 'a\x1b[2Jb'":                 "C=a␛[2Jb",
		"#DCS name=n-[C]-[D]\na\n[C] 1":          "n-1-[D]",
		"a [C]\n[C] " + strings.Repeat("x", 100): "C=" + strings.Repeat("x", 39) + "…",
	} {
		t.Run(text, func(t *testing.T) {
			var got []string
			for _, s := range specsOf(t, parse(t, text)) {
				got = append(got, s.Name)
			}
			same(t, text, strings.Join(got, "|"), want)
		})
	}
}

// TestLinesOfResultsAndHardnessAreKept checks that the lines for the table of results and for
// hardness are kept (E2, E3).
func TestLinesOfResultsAndHardnessAreKept(t *testing.T) {
	tmpl := parse(t,
		"a [v] [n] [m]\n[v] brute bnb heur\n[n] 2..50\n[m] 1 2\n@result acc\n@result loss=json:test.loss\n"+
			"@result t re:Time: ([0-9.]+) s\n@hardness v:heur<bnb<brute, n:down, m\n")
	want := `[{acc  5 9} {loss json:test.loss 6 9} {t re:Time: ([0-9.]+) s 7 9}] [{v false [heur bnb brute] 8 11} ` +
		`{n true [] 8 29} {m false [] 8 37}]`
	same(t, "lines", fmt.Sprint(tmpl.Results, " ", tmpl.Hardness), want)
}

// TestJobsAreFilteredByValues checks filters of parameters by their values. Package query tests the
// language.
func TestJobsAreFilteredByValues(t *testing.T) {
	for _, c := range []struct{ values, filter, want string }{
		{"1..5", "x >= 3", "3 4 5"},
		{"1..5", "2 <= [x] < 4 or x=5", "2 3 5"},
		{"1..5", "2 * (x + 1) = 6", "2"},
		{"-3..3", "x % 2 = 1", "1 3"},            // the sign is that of the left operand, as in C
		{"1..3", "1 / (x - 2) > 0", "2 3"},       // 1/0 is infinite, as in IEEE 754
		{"9 10 1e1 010", "x = 10", "10 1e1 010"}, // numbers compare as numbers
		{"9 10 100", "x < 50", "9 10"},
		{"5% 10% 20%", "x > 8%", "10% 20%"},
		{"5% 10% 20%", "x * 2 = 20", "10%"},
		{"nan 1", "x != nan", "1"},
		// As decimals, not as binary floating-point numbers.
		{"0..1 step 0.1", "x + 0.2 = 0.5", "0.3"},
		{"0..1 step 0.1", "x % 0.3 = 0", "0 0.3 0.6 0.9"},
		// Beyond 2^53.
		{"9007199254740992 9007199254740993", "x = 9007199254740993", "9007199254740993"},
		{"1000000000000001 1000000000000002", "x = 1000000000000001", "1000000000000001"},
		{"rbf poly", "x = rbf", "rbf"},
		{"rbf poly", `x < "q"`, "poly"},
		{"'a \"b' c", `x = "a \"b"`, `a "b`},
		{"auto 1 2", "x = 'auto' or x > 1", "auto 2"},
		{"1..3", "1 > 2", ""},
	} {
		t.Run(c.values, func(t *testing.T) {
			got := strings.TrimPrefix(strings.Join(points(t,
				parse(t, "a [x]\n[x] "+c.values+"\n@where "+c.filter)), ""),
				" ")
			same(t, c.values+" where "+c.filter, got, c.want)
		})
	}
}

// TestExamplesParseAndRun checks that the examples are parsed without warnings, have the number of
// jobs that they state, and that their first commands run. The assignment problem needs a compiler,
// so its command is only compared.
func TestExamplesParseAndRun(t *testing.T) {
	for file, want := range map[string]struct {
		jobs   int
		output string // the beginning of the output of the first job
	}{
		"svm.txt":        {30, "svm -train -kernel rbf -C 0.001 -gamma 0\n"},
		"darts.txt":      {20, "pi=3."},
		"forms.txt":      {20, "train [rate] --model "},
		"search.txt":     {60, "loss=308.129096\n"},
		"assignment.txt": {4500, "bin/assignment brute 2 10 1 [2 2 10]"},
	} {
		f, err := os.Open("../examples/" + file)
		if err != nil {
			t.Fatal(err)
		}
		tmpl, err := Parse(f, file)
		f.Close()
		if err != nil {
			t.Error(err)
			continue
		}
		if n, err := tmpl.Count(); n != want.jobs || err != nil || len(tmpl.Warnings) > 0 {
			t.Errorf("%s: %d jobs, want %d; %v, warnings %v", file, n, want.jobs, err, tmpl.Warnings)
		}
		first, err := tmpl.Pull()()
		if errors.Is(err, errLearns) {
			first = tmpl.Trial(1, make([]float64, len(tmpl.Space)))
		}
		out := []byte(fmt.Sprint(first.Command, " ", first.Hardness[:min(3, len(first.Hardness))]))
		if file != "assignment.txt" {
			out, err = exec.Command("/bin/sh", "-c", first.Command).CombinedOutput()
		}
		if err != nil || !strings.HasPrefix(string(out), want.output) {
			t.Errorf("%s: %s: got %q, %v, want %q", file, first.Command, out, err, want.output)
		}
	}
}

// TestAfterMeansTheSamePoint checks that after= in a template means the job of the named command with
// the same values: in a product, in a sample, and after the template was stored and read again. The
// conditions stay, and jobs of other commands keep the options that they share.
func TestAfterMeansTheSamePoint(t *testing.T) {
	const text = "#DCS name='train [C]'\ntrain [C]\n#DCS name=plain\nplain [C]\n" +
		"#DCS after='train [C],any:plain'\neval [C]\n[C] 1..5\n"
	for _, more := range []string{"", "@where C>1\n", "@sample 3\n", "@hardness C\n"} {
		tmpl := parse(t, text+more)
		again, err := ReadSource(tmpl.Source(1000))
		if err != nil {
			t.Fatal(err)
		}
		for _, tmpl := range []*Template{tmpl, again} {
			specs := specsOf(t, tmpl)
			for i, s := range specs {
				want := ""
				if i%3 == 2 {
					want = fmt.Sprintf("%d,any:%d", i-1, i)
					same(t, "C", s.Params()[0], specs[i-2].Params()[0])
				}
				same(t, s.Command, s.After().String(), want)
			}
			if more == "" && specs[0].Options != specs[3].Options {
				t.Error("two jobs of a command without after= do not share their options")
			}
		}
	}
}
