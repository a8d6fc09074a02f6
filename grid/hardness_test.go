package grid

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"dcs-tui/jobs"
)

// TestHardnessReachesJobs checks that @hardness gives every job numbers that are larger for harder
// jobs (E2): the position in an order that begins with the easiest, the number, or its negative.
// Equally hard jobs share their options. Jobs of other command lines have their own.
func TestHardnessReachesJobs(t *testing.T) {
	tmpl := parse(t, "#DCS timeout=2s\nsolve [v] [n] [eps] [seed]\ncheck [v]\n[v] brute bnb heur\n[n] 2 10\n[eps] -0.5, +1e-3, 0\n[seed] 1..2\n"+
		"@hardness v:heur<bnb<brute, n, eps:down\n")
	seen := map[string]*jobs.Options{}
	for s, err := range tmpl.Jobs() {
		if err != nil {
			t.Fatal(err)
		}
		p := map[string]string{}
		for _, x := range s.Params {
			p[x.Name] = x.Value
		}
		want := fmt.Sprint([]string{
			map[string]string{"heur": "0", "bnb": "1", "brute": "2"}[p["v"]], p["n"],
			map[string]string{"-0.5": "0.5", "+1e-3": "-1e-3", "0": "-0"}[p["eps"]], "o66f0468d"})
		if got := fmt.Sprint(s.Hardness); got != want {
			t.Errorf("job %d %s: hardness %s, want %s", s.ID, s.Name, got, want)
		}
		word, _, _ := strings.Cut(s.Command, " ")
		key := word + want
		if o := seen[key]; o != nil && o != s.Options {
			t.Errorf("job %d has options of its own", s.ID)
		}
		seen[key] = s.Options
		if one := tmpl.Job(int(s.ID) - 1); fmt.Sprint(one.Hardness) != want {
			t.Errorf("job %d alone: hardness %v", s.ID, one.Hardness)
		}
		if want := map[string]string{"solve": "2s", "check": "0s"}[word]; s.Timeout.String() != want {
			t.Errorf("job %d %s: timeout %s", s.ID, word, s.Timeout)
		}
	}
	if len(seen) != 2*3*2*3 {
		t.Errorf("%d options", len(seen))
	}
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
	if len(names) != 6 {
		t.Errorf("%d names of 6 orders", len(names))
	}
}

// TestAssignmentExample checks that the example with hardness is parsed without warnings, and that
// its first job is one of the hardest variant.
func TestAssignmentExample(t *testing.T) {
	f, err := os.Open("../examples/assignment.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tmpl, err := Parse(f, "assignment.txt")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := tmpl.Count(); n != 4500 || err != nil || len(tmpl.Warnings) > 0 {
		t.Errorf("%d jobs, %v, warnings %v", n, err, tmpl.Warnings)
	}
	for s := range tmpl.Jobs() {
		if want := "bin/assignment brute 2 10 1"; s.Command != want || fmt.Sprint(s.Hardness[:3]) != "[2 2 10]" || s.Timeout != time.Second {
			t.Errorf("%s, hardness %v, timeout %s; want %s", s.Command, s.Hardness, s.Timeout, want)
		}
		break
	}
}
