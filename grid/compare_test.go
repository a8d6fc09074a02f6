package grid

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// TestCommandCompares checks that the user's command makes the comparisons (E2). It runs once and
// reads each pair of settings once. Jobs with these settings get tuples that represent its answers.
func TestCommandCompares(t *testing.T) {
	calls, asked := 0, ""
	c := Config{run: func(ctx context.Context, c Config, command string, in io.Reader) ([]byte, error) {
		calls++
		b, _ := io.ReadAll(in)
		asked = string(b)
		return runCommand(ctx, c, command, strings.NewReader(asked))
	}}
	// Cells are compared. Other methods are not.
	const text = "solve [how] [n] [m] [seed]\n[how] a 'b c'\n[n] 1 2\n[m] 1..4\n[seed] 1..3\n@where n * m != 8\n" +
		"@hardness how, n [m] command: awk -F'\t' '{ a = $2 * $3; b = $5 * $6; print($1 != $4 ? \"?\" : a < b ? \"<\" : a > b ? \">\" : \"=\") }'\n"
	tmpl, err := c.Parse(context.Background(), strings.NewReader(text), "t.txt")
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(asked, "\n"); calls != 1 || len(lines) != 14*13/2+1 || lines[0] != "a\t1\t1\ta\t1\t2" || lines[90] != "b c\t2\t2\tb c\t2\t3" {
		t.Errorf("%d calls, asked %d lines: %q … %q", calls, len(lines)-1, lines[0], lines[len(lines)-2])
	}
	type job struct {
		how   string
		cells int
		tuple []string
	}
	var all []job
	for s, err := range tmpl.Jobs() {
		if err != nil {
			t.Fatal(err)
		}
		var n, m int
		fmt.Sscan(s.Params[1].Value+" "+s.Params[2].Value, &n, &m)
		all = append(all, job{s.Params[0].Value, n * m, s.Hardness})
	}
	for _, a := range all {
		for _, b := range all {
			if got, _ := comparedAs(t, a.tuple, b.tuple); got != (a.how == b.how && a.cells <= b.cells) {
				t.Fatalf("%v at most %v: %v", a, b, got)
			}
		}
	}
	// After the template is parsed again, another order is not mixed up with this one.
	other, err := Parse(strings.NewReader(strings.ReplaceAll(text, "[m] 1..4", "[m] 0..4")), "t.txt")
	if err != nil {
		t.Fatal(err)
	}
	for s := range other.Jobs() {
		if got, _ := comparedAs(t, all[0].tuple, s.Hardness); got {
			t.Fatalf("%q is compared with %q of another order", s.Hardness, all[0].tuple)
		}
	}
}

// TestCommandComparesAll checks that all parameters are compared if no names are given, and that a
// single setting needs no comparison.
func TestCommandComparesAll(t *testing.T) {
	for text, want := range map[string]string{
		"a [x] [y]\n[x] 1 2\n[y] 3 4\n@hardness command: cmp":               "1\t3\t1\t4|1\t3\t2\t3|1\t3\t2\t4|1\t4\t2\t3|1\t4\t2\t4|2\t3\t2\t4|",
		"a [x] [y]\n[x] 1 2\n[y] 1 1\n@hardness x command:\tcmp --all\n":    "1\t2|",
		"a [x] [y]\n[x] 1..99\n[y] 1..99\n@sample 2 \n@hardness command: c": "61\t94\t3\t95|",
		"a [x] [y]\n[x] 1\n[y] 1..9\n@hardness x command: cmp":              "",
		"a [x]\n[x] 1 2\n@hardness command: cmp\n@where x > 2":              "",
	} {
		got := ""
		c := Config{run: func(_ context.Context, _ Config, _ string, in io.Reader) ([]byte, error) {
			b, _ := io.ReadAll(in)
			got = strings.ReplaceAll(string(b), "\n", "|")
			return []byte(strings.Repeat("<\n", strings.Count(got, "|"))), nil
		}}
		if _, err := c.Parse(context.Background(), strings.NewReader(text), "t.txt"); err != nil || got != want {
			t.Errorf("%q: asked %q, %v", text, got, err)
		}
	}
}

// TestCommandComparesBadly checks that a fault of a comparing command is an error with line and
// column, and that no job starts (E2).
func TestCommandComparesBadly(t *testing.T) {
	const head = "a [x]\n[x] 1 2 3\n"
	for _, c := range []struct{ text, at, words string }{
		{head + "@hardness command:", "t.txt:3:19", "the command that compares is missing"},
		{head + "@hardness x:up command: c", "t.txt:3:11", "name only x"},
		{head + "@hardness x, command: c", "t.txt:3:13", "ends in a comma"},
		{head + "@hardness y command: c", "t.txt:3:11", "no parameter y"},
		{head + "@hardness x x command: c", "t.txt:3:13", "twice"},
		{head + "@hardness x\n@hardness command: c", "t.txt:4:1", "in line 3"},
		{head + "@hardness command: echo no idea >&2; exit 3", "t.txt:3:20", "(exit status 3): no idea"},
		{head + "@hardness command: echo '<'", "t.txt:3:20", "1 answers to 3 lines: for each line that it reads"},
		{head + "@hardness x command: yes '<' | head -4", "t.txt:3:22", "4 answers to 3 lines"},
		{head + "@hardness command: printf '<\\n\\n>'", "t.txt:3:20", `answered "" to its line 2, (1) and (3): it should print <`},
		{head + "@hardness command: yes less | head -3", "t.txt:3:20", `answered "less" to its line 1, (1) and (2)`},
		{head + "@hardness command: printf '<\\n>\\n<\\n'", "t.txt:3:20", "contradicts itself: (1) < (2) and (2) < (3), but (1) > (3)"},
		{head + "@hardness command: printf '=\\n?\\n=\\n'", "t.txt:3:20", "contradicts itself: (1) = (2) and (2) = (3), but (1) ? (3)"},
		{head + "@hardness command: sleep 1000", "t.txt:3:20", "did not end within 300ms and was stopped; it printed nothing"},
		{"a [x]\n[x] 1..1001\n@hardness command: c", "t.txt:3:20", "more than 1,000 settings"},
		{"a [x]\n[x] 1..2000000\n@where x < 3\n@hardness command: c", "t.txt:4:20", "settings of at most 1,000,000 jobs"},
		{"a [x]\n[x] 1 'a\tb'\n@hardness command: c", "t.txt:3:20", `the value "a b" of [x] holds a tab`},
	} {
		config := Config{}
		if strings.Contains(c.text, "sleep") {
			config.Timeout = 300 * time.Millisecond
		}
		_, err := config.Parse(context.Background(), strings.NewReader(c.text), "t.txt")
		if err == nil || !strings.HasPrefix(err.Error(), c.at+": ") || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%q: got\n%v\nwant %s: … %s", c.text, err, c.at, c.words)
		}
	}
	// A template with another error runs no command.
	c := Config{run: func(context.Context, Config, string, io.Reader) ([]byte, error) {
		t.Error("the command ran")
		return nil, nil
	}}
	if _, err := c.Parse(context.Background(), strings.NewReader(head+"@where x = \n@hardness command: c"), "t.txt"); err == nil {
		t.Error("no error")
	}
}
