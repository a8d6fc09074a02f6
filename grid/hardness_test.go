package grid

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"dcs-tui/jobs"
)

// TestUsersCommandCompares checks that the user's command makes the comparisons (E2). It runs once
// and reads each pair of settings once. Jobs with these settings get tuples that represent its
// answers.
func TestUsersCommandCompares(t *testing.T) {
	calls, asked := 0, ""
	c := Config{run: func(ctx context.Context, c Config, command string, in io.Reader) ([]byte, error) {
		calls++
		b, _ := io.ReadAll(in)
		asked = string(b)
		return runCommand(ctx, c, command, strings.NewReader(asked))
	}}
	// Cells are compared. Other methods are not.
	const text = "solve [how] [n] [m] [seed]\n[how] a 'b c'\n[n] 1 2\n[m] 1..4\n[seed] 1..3\n@where n * m != 8\n" +
		"@hardness how, n [m] command: awk -F'\t' '{ a = $2 * $3; b = $5 * $6; " +
		"print($1 != $4 ? \"?\" : a < b ? \"<\" : a > b ? \">\" : \"=\") }'\n"
	tmpl, err := c.Parse(context.Background(), strings.NewReader(text), "t.txt")
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(asked, "\n"); calls != 1 || len(lines) != 14*13/2+1 || lines[0] != "a\t1\t1\ta\t1\t2" ||
		lines[90] != "b c\t2\t2\tb c\t2\t3" {
		t.Errorf("%d calls, asked %d lines: %q … %q", calls, len(lines)-1, lines[0], lines[len(lines)-2])
	}
	type job struct {
		how   string
		cells int
		tuple []string
	}
	var all []job
	for _, s := range specsOf(t, tmpl) {
		var n, m int
		fmt.Sscan(s.Params()[1].Value+" "+s.Params()[2].Value, &n, &m)
		all = append(all, job{s.Params()[0].Value, n * m, s.Hardness})
	}
	for _, a := range all {
		for _, b := range all {
			if got, _ := comparedAs(t, a.tuple, b.tuple); got != (a.how == b.how && a.cells <= b.cells) {
				t.Fatalf("%v at most %v: %v", a, b, got)
			}
		}
	}
	// After the template is parsed again, another order is not mixed up with this one.
	for s := range parse(t, strings.ReplaceAll(text, "[m] 1..4", "[m] 0..4")).Jobs() {
		if got, _ := comparedAs(t, all[0].tuple, s.Hardness); got {
			t.Fatalf("%q is compared with %q of another order", s.Hardness, all[0].tuple)
		}
	}
}

// TestAllParametersAreComparedByDefault checks that all parameters are compared if no names are
// given, and that a single setting needs no comparison.
func TestAllParametersAreComparedByDefault(t *testing.T) {
	for text, want := range map[string]string{
		"a [x] [y]\n[x] 1 2\n[y] 3 4\n@hardness command: cmp": "1\t3\t1\t4|1\t3\t2\t3|1\t3\t2\t4|" +
			"1\t4\t2\t3|1\t4\t2\t4|2\t3\t2\t4|",
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

// TestHungComparisonIsKilled checks that a comparing command that does not end is killed, and that
// a template with another error runs none (E2).
func TestHungComparisonIsKilled(t *testing.T) {
	const head = "a [x]\n[x] 1 2 3\n"
	refused(t, Config{Timeout: 300 * time.Millisecond}, head+"@hardness command: sleep 1000", "t.txt:3:20",
		"did not end within 300ms and was stopped; it printed nothing")
	c := Config{run: func(context.Context, Config, string, io.Reader) ([]byte, error) {
		t.Error("the command ran")
		return nil, nil
	}}
	refused(t, c, head+"@where x = \n@hardness command: c", "t.txt:3:12", "is expected, not the end")
}

// TestHardnessReachesJobs checks that @hardness gives every job numbers that are larger for harder
// jobs (E2): the position in an order that begins with the easiest, the number, or its negative.
// Equally hard jobs share their options. Jobs of other command lines have their own.
func TestHardnessReachesJobs(t *testing.T) {
	tmpl := parse(t, "#DCS timeout=2s\nsolve [v] [n] [eps] [seed]\ncheck [v]\n[v] brute bnb heur\n[n] 2 10\n"+
		"[eps] -0.5, +1e-3, 0\n[seed] 1..2\n@hardness v:heur<bnb<brute, n, eps:down\n")
	seen := map[string]*jobs.Options{}
	for _, s := range specsOf(t, tmpl) {
		p := map[string]string{}
		for _, x := range s.Params() {
			p[x.Name] = x.Value
		}
		want := fmt.Sprint([]string{
			map[string]string{"heur": "0", "bnb": "1", "brute": "2"}[p["v"]], p["n"],
			map[string]string{"-0.5": "0.5", "+1e-3": "-1e-3", "0": "-0"}[p["eps"]], "o66f0468d"})
		same(t, s.Name, fmt.Sprint(s.Hardness), want)
		word, _, _ := strings.Cut(s.Command, " ")
		key := word + want
		if o := seen[key]; o != nil && o != s.Options {
			t.Errorf("job %d has options of its own", s.ID)
		}
		seen[key] = s.Options
		same(t, word, s.Timeout.String(), map[string]string{"solve": "2s", "check": "0s"}[word])
	}
	same(t, "options", len(seen), 2*3*2*3)
}

// TestOrdersAreKeptApart checks that a template that is parsed again with another order yields
// tuples that are not compared with the earlier ones, because the same number may have another
// meaning.
func TestOrdersAreKeptApart(t *testing.T) {
	names := map[string]bool{}
	for _, how := range []string{"v:a<b, n", "v:b<a, n", "n, v:a<b", "v:a<b, n:down", "n, m", "m, n", "n, m:up"} {
		for s := range parse(t, "x [v] [n] [m]\n[v] a b\n[n] 1 2\n[m] 1 2\n@hardness "+how).Jobs() {
			names[s.Hardness[len(s.Hardness)-1]] = true
		}
	}
	same(t, "names of orders", len(names), 6)
}

// TestOptionsAreKeptOnlyToShareThem checks that jobs share the options of a setting that occurs
// several times, and that nothing is kept if each setting occurs once.
func TestOptionsAreKeptOnlyToShareThem(t *testing.T) {
	for _, c := range []struct {
		template string
		want     int // number of options that are kept; -1: none
	}{
		{"@hardness n, m\n[n] 1..4\n[m] 1..3\n[a] x\necho [n] [m] [a]\n", -1},
		{"@hardness n\n@zip n m\n[n] 1..4\n[m] 1..4\necho [n] [m]\n", -1},
		{"@hardness n\n[n] 1..4\n[seed] 1..3\necho [n] [seed]\n", 4},
	} {
		t.Run(c.template, func(t *testing.T) {
			template := parse(t, c.template)
			hard, options := newTuples(template), map[*jobs.Options]bool{}
			for ix, err := range template.keptPoints() {
				if err != nil {
					t.Fatal(err)
				}
				options[hard.options(template.commands[0], template.params(ix))] = true
			}
			if got := len(hard.shared); hard.shared == nil && c.want >= 0 || got != max(0, c.want) ||
				c.want >= 0 && len(options) != c.want {
				t.Errorf("%q: %d options are kept, and there are %d; want %d", c.template, got, len(options), c.want)
			}
		})
	}
}
