package grid

import (
	"bufio"
	"context"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"dcs-tui/jobs"
)

// FuzzTemplate checks that no template causes a panic, and that parsing runs no command. Errors and
// warnings are one line each and name the file. An accepted template has the right count, contains
// each point once, and survives a round trip through Text.
func FuzzTemplate(f *testing.F) {
	for _, text := range []string{
		"svm -C [1] -gamma [2]\n[1] 0.001, 0.01\n[2] 0 0.25\n",
		"#DCS default tries=2\n#DCS name='r [C]' mem=2G\na [C] [k:q] 'x\\[C]' $((a[1]))\n[C] log 1e-3..1e2 x6\n" +
			"[k] rbf, 'p 2', \"it's\"\n@zip C k",
		"a [x] \\\n  [y]\n[x] 1..10\n[y] 0..1 step 0.1\n" +
			"@where x * 2 <= y + 3 and not (x = 1 or [y] != .5) and x % 2 = 0\n@sample 5 seed 3",
		"a [x] [y]\n[x] 01..10\n[y] lin 0..1 x4\n@sample 5 latin\n@result acc json:a.b\n@hardness x, y:down",
		"a [x] [y]\n[x] 1..3\n[y] 1..9\n[z] 1 2\n@zip y y\n@sample 3 latin seed 2 of [y]\n@where x = z\n",
		"a [v]\n[v] brute bnb\n@hardness v:bnb<brute\n@result r re:(x)\n",
		"a [x] [y]\n[x] 1..3\n[y] a \"b c\"\n@hardness x, y command: ./cmp --all\n@where x != 2 or y = 'a'\n",
		"a [f]\r\r\r", // each parse drops a carriage return
		"[f] \\\n file: \\\n x y\na [f:q] [g]\n[g] command: ls\n@where f != 'x y'\n",
		"\ufeffa [f]\r\n[f] file: x\r\n[g] command: ls\n",
		"a [x] [y]\n[x] -2..2\n[y] log 1e-3..1e2\n[z] 1..9 step 2\n" +
			"@search halving trials 30 minimize loss seed 7 from 2 factor 4\n",
		"a [x]\n[x] lin 0..1, 3\n@search tpe trials 9 maximize \"a b\"\n" +
			"@search ask trials 3 minimize y command: ./x [x] \\\n y",
		"[ -f x ] && [[ a ]] [a-z] [[:alpha:]]\n[C]\n[d-e] 1\n[f 1\n@foo\n@where x >\n",
	} {
		f.Add(text)
	}
	c := Config{Limit: 10_000, read: func(s source, _ context.Context, _ Config) (texts, error) {
		return texts{s.text, "'", `"\`, " 1..3 ", "$x"}, nil
	}, run: func(_ context.Context, _ Config, command string, in io.Reader) ([]byte, error) {
		if strings.Contains(command, "fail") {
			return []byte(command), nil
		}
		var answers []byte
		for lines := bufio.NewScanner(in); lines.Scan(); {
			words := strings.Split(lines.Text(), "\t")
			answers = append(answers, "<=>"[1+slices.Compare(words[:len(words)/2], words[len(words)/2:])], '\n')
		}
		return answers, nil
	}}
	f.Fuzz(func(t *testing.T, text string) {
		tmpl, err := c.Parse(context.Background(), strings.NewReader(text), "f")
		if err != nil {
			if tmpl != nil {
				t.Fatal("a bad template was returned")
			}
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !strings.HasPrefix(line, "f:") {
					t.Fatalf("%q does not name the file", line)
				}
			}
			return
		}
		for _, w := range tmpl.Warnings {
			if s := w.Error(); !strings.HasPrefix(s, "f:") || strings.Contains(s, "\n") || w.Line < 1 {
				t.Fatalf("got warning %q, want one line with a place", s)
			}
		}
		if s := tmpl.Search; s != nil && s.Learns() {
			at := make([]float64, len(tmpl.Space))
			if back, ok := tmpl.Coordinates(tmpl.Trial(1, at).Params()); !ok || len(back) != len(at) {
				t.Fatalf("the first point is no trial: %+v", tmpl.Space)
			}
			return
		}
		const most = 2000
		first := []*jobs.Spec{}
		if tmpl.HasFilter() && tmpl.Points() > 1_000_000 {
			return
		}
		for s, err := range tmpl.Jobs() {
			if err != nil {
				t.Fatal(err)
			}
			if first = append(first, s); s.ID != jobs.ID(len(first)) || len(s.Params()) != len(tmpl.Params) ||
				s.Line < 1 {
				t.Fatalf("got job %+v, want consecutive numbers, all parameters, and a line", s)
			}
			if _, err := new(jobs.SpecReader).Read(jobs.AppendSpecJSON(nil, s)); err != nil {
				t.Fatal(err)
			}
			if len(first) == most {
				break
			}
		}
		if n, err := tmpl.Count(); err != nil || min(n, most) != len(first) {
			t.Fatalf("counted %d, %v; there are %d", n, err, len(first))
		}
		again, err := c.Parse(context.Background(), strings.NewReader(tmpl.Text()), "f")
		if err != nil {
			t.Fatalf("Parse of its own text: %v\n%s", err, tmpl.Text())
		}
		i := 0
		for s := range again.Jobs() {
			if !reflect.DeepEqual(s, first[i]) {
				t.Fatalf("the job from its own text: got %q, want\n%q", s.Command, first[i].Command)
			}
			if i++; i == len(first) {
				break
			}
		}
	})
}
