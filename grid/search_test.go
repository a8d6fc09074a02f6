package grid

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dcs-tui/grid/search"
)

const searchText = `train [x] [lr] [n] [k:q]
[x] -2..2
[lr] log 1e-3..1e2
[n] 1..9 step 2
[k] rbf, 'a b'
`

// TestRangeIsContinuousInASearch checks that a range is continuous in a search, unless it has steps
// or is a list, and that it keeps its meaning outside a search (K12).
func TestRangeIsContinuousInASearch(t *testing.T) {
	tmpl := parse(t, searchText+"@search tpe trials 100 minimize loss seed 7\n")
	s := tmpl.Space
	if s[0].Low != -2 || s[0].High != 2 || s[0].Values != nil || !s[1].Log || s[1].Low != 1e-3 || s[1].High != 100 {
		t.Errorf("ranges: %+v", s[:2])
	}
	if len(s[2].Values) != 5 || !s[2].Ordered || len(s[3].Values) != 2 || s[3].Ordered {
		t.Errorf("values: %+v", s[2:])
	}
	spec := tmpl.Trial(3, []float64{0.25, 0.6, 0.99, 0.7})
	if spec.Command != "train -1 1 9 'a b'" || spec.ID != 3 {
		t.Errorf("a trial is %d: %s", spec.ID, spec.Command)
	}
	if at, ok := tmpl.Coordinates(spec.Params()); !ok || at[0] != 0.25 || at[2] != 0.9 {
		t.Errorf("its point is %v, %v", at, ok)
	}
	if n, err := tmpl.Count(); n != 100 || err != nil || tmpl.Search.Best() != "loss:min" {
		t.Errorf("%d trials, %v, %s", n, err, tmpl.Search.Best())
	}
	for _, err := range tmpl.Jobs() {
		if !errors.Is(err, errLearns) {
			t.Errorf("the jobs of a search that learns: %v", err)
		}
	}
	refused(t, Config{}, searchText, "t.txt:3:6", "log 1e-3..1e2 needs a number of values") // without a search
}

// TestErrorOfASearchFlagNamesNoLine checks that an error of the flags of a search does not name a
// line of the file.
func TestErrorOfASearchFlagNamesNoLine(t *testing.T) {
	for want, flags := range map[string]Search{
		"--search: tpe learns from results":         {Method: "tpe", Trials: 5},
		"--search: the number of trials is missing": {Method: "tpe", Metric: "loss"},
	} {
		t.Run(want, func(t *testing.T) {
			_, err := Config{Search: flags.Line()}.Parse(context.Background(), strings.NewReader(searchText), "s.txt")
			if err == nil || !strings.HasPrefix(err.Error(), want) ||
				!strings.Contains(err.Error(), "--trials 100 --minimize loss") {
				t.Errorf("%+v: got %v, want %s…, and the flags", flags, err, want)
			}
		})
	}
}

// TestSearchFlagsAreKeptInTheTemplate checks that the flags of a search are kept as a line of the
// template, whatever its last line is.
func TestSearchFlagsAreKeptInTheTemplate(t *testing.T) {
	flags := Search{Method: Ask, Trials: 5, Metric: "acc", Maximize: true, Command: `./opt --kind "a b"`}
	for _, text := range []string{searchText, searchText + "# the end \\", strings.Replace(searchText, "train", "", 1) +
		"train \\"} {
		tmpl, err := Config{Search: flags.Line()}.Parse(context.Background(), strings.NewReader(text), "s.txt")
		if err != nil {
			if strings.HasSuffix(text, "train \\") {
				continue // refused, because it has two commands
			}
			t.Fatal(err)
		}
		again, err := ReadSource(tmpl.Source(0))
		if err != nil {
			t.Fatal(err)
		}
		s := again.Search
		if s.Method != Ask || s.Trials != 5 || s.Best() != "acc:max" || s.Seed != 1 || s.Command != flags.Command ||
			len(again.Space) != 4 {
			t.Errorf("the search is kept as %+v", s)
		}
	}
}

// TestDesignIsKnownBeforehand checks that a design is known beforehand, so that its jobs can be
// printed and are always the same.
func TestDesignIsKnownBeforehand(t *testing.T) {
	seen := map[string]bool{}
	for _, command := range commandsOf(t, parse(t, "a [x]\n[x] 0..1\n@search lhs trials 10\n")) {
		seen[command[:5]] = true // for example "a 0.3"
	}
	if len(seen) < 9 { // 0.1 may be written in this form
		t.Errorf("the strata of the trials are %v", seen)
	}
}

// optimizerOf starts an optimizer that is a shell script.
func optimizerOf(t *testing.T, script string) (o *optimizer, dir string) {
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "opt"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	s := &Search{Method: Ask, Trials: 9, Metric: "acc", Maximize: true, Command: "sh ./opt", Seed: 3}
	params := []search.Param{{Name: "x", Low: -2, High: 2}, {Name: "k", Values: []string{"a", "b"}}}
	return &optimizer{search: s, params: params, dir: dir}, dir
}

// TestOptimizerProposesAndLearns checks that an optimizer receives the known results, is asked for
// proposals, receives their results, and is told to stop (K12).
func TestOptimizerProposesAndLearns(t *testing.T) {
	o, dir := optimizerOf(t, `while read -r line; do
	printf '%s\n' "$line" >> log
	case $line in *'"ask"'*) echo '{"params":{"x":0.5,"k":"b"}}';; esac
done
echo ended >> log
`)
	ctx := context.Background()
	past := []search.Trial{{At: []float64{0.25, 0.25}, State: search.Done, Value: -4}, {At: []float64{0.5, 0.75}},
		{State: search.Failed}}
	at, err := o.Propose(ctx, past)
	if err != nil || at[0] != 0.625 || at[1] != 0.75 {
		t.Fatalf("Propose: got %v, %v; want [0.625 0.75]", at, err)
	}
	past = append(past, search.Trial{At: at})
	past[1].State = search.Failed
	if _, err := o.Propose(ctx, past); err != nil {
		t.Fatal(err)
	}
	past[3].State, past[3].Value = search.Done, -7
	o.Close(append(past, search.Trial{At: at, State: search.Failed}))
	log, _ := os.ReadFile(filepath.Join(dir, "log"))
	want := `{"do":"start","space":[{"name":"x","low":-2,"high":2},{"name":"k","values":["a","b"]}],` +
		`"trials":9,"minimize":false,"seed":3,"known":3}
{"do":"tell","trial":1,"params":{"k":"a","x":-1},"state":"done","value":4}
{"do":"tell","trial":2,"params":{"k":"b","x":0},"state":"open"}
{"do":"tell","trial":3,"state":"failed"}
{"do":"ask","trial":4}
{"do":"tell","trial":2,"params":{"k":"b","x":0},"state":"failed"}
{"do":"ask","trial":5}
{"do":"tell","trial":4,"params":{"k":"b","x":0.5},"state":"done","value":7}
{"do":"tell","trial":5,"params":{"k":"b","x":0.5},"state":"failed"}
{"do":"stop"}
ended
`
	same(t, "what the optimizer read", string(log), want)
}

// TestOptimizerThatFailsLeavesNoProcess checks that a failure of the optimizer is reported and
// leaves none of its processes.
func TestOptimizerThatFailsLeavesNoProcess(t *testing.T) {
	for script, words := range map[string]string{
		"echo it is broken >&2; exit 3":                                      "it is broken",
		"read a; read b; echo nonsense; cat":                                 "is not a proposal",
		`read a; read b; echo '{"params":{"x":3,"k":"a"}}'; cat`:             "x=\"3\"",
		`read a; read b; echo '{"params":{"x":1}}'; cat`:                     "no value of k",
		`read a; read b; head -c 2000000 /dev/zero | tr '\0' x; echo; cat`:   "token too long",
		`read a; read b; echo '{"params":{"x":{"y":1},"k":[]}}'; cat; sleep`: "does not allow",
	} {
		t.Run(script, func(t *testing.T) {
			o, _ := optimizerOf(t, script)
			if _, err := o.Propose(context.Background(), nil); err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("%s: %v", script, err)
			}
			o.Close(nil)
		})
	}
	o, _ := optimizerOf(t, `read a; read b; echo '{"stop":true}'; cat >/dev/null`)
	if _, err := o.Propose(context.Background(), nil); err != io.EOF {
		t.Errorf("an optimizer that stops: %v", err)
	}
	o.Close(nil)
	o, _ = optimizerOf(t, "sleep 1000")
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := o.Propose(ctx, nil); err == nil {
		t.Error("an optimizer that hangs gave a proposal")
	}
}

// FuzzProposal checks that an accepted proposal lies in the space of the search.
func FuzzProposal(f *testing.F) {
	params := []search.Param{{Name: "x", Low: 1e-3, High: 2, Log: true}, {Name: "k", Values: []string{"a", "b"}}}
	f.Add([]byte(`{"params":{"x":0.5,"k":"b"}}`))
	f.Add([]byte(`{"params":{"x":"1e-2","k":"b"},"stop":false}`))
	f.Add([]byte(`{"stop":true}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		at, err := readProposal(line, params)
		if err != nil {
			return
		}
		for _, u := range at {
			if !(u >= 0 && u <= 1) {
				t.Errorf("%s gives %v", line, at)
			}
		}
	})
}
