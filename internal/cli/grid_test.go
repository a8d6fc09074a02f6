package cli

import (
	"context"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"dcs-tui/grid"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// TestTemplateIsKept checks that the template stored in run.toml produces the same jobs again, from
// any job on, for arbitrary bytes, and the same @result lines.
func TestTemplateIsKept(t *testing.T) {
	base := t.TempDir()
	for i, text := range []string{
		"a [C]\n[C] 1..5\n@result acc json:a\n",
		"a [C] \"'''\\\\\n[C] 1..5\n@result acc\n",
		"a [C] \x98\xff\x01\x1b\u2028\n[C] 1..5\n@result acc re:(\xff)\n",
		"a [C] \r\r\r\n[C] 1..5\n@result acc\n",
		"a '[C]\n[C] 1..5\n@result acc", // an unclosed quote, for another shell
	} {
		first, err := grid.Config{OtherShell: true}.Parse(context.Background(), strings.NewReader(text), "t.txt")
		if err != nil {
			t.Fatal(err)
		}
		source := first.Source(10)
		run, err := rundir.Create(base, "r"+strconv.Itoa(i), rundir.Asked{Options: map[string]any{rundir.OptionSource: source}})
		if err != nil {
			t.Fatal(err)
		}
		if run, err = rundir.Open(run.Dir); err != nil {
			t.Fatal(err)
		}
		kept, _ := run.Asked.Options[rundir.OptionSource].(string)
		again, err := grid.ReadSource(kept)
		if err != nil || again.Text() != first.Text() || len(again.Results) != 1 || again.Results[0] != first.Results[0] {
			t.Errorf("%q: %v", text, err)
			continue
		}
		var want []string
		for s := range first.Jobs() {
			want = append(want, s.Command+s.File)
		}
		for have := range 7 {
			next, err := grid.Rest(source, have)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			var s *jobs.Spec
			for s, err = next(); err == nil; s, err = next() {
				got = append(got, s.Command+s.File)
			}
			if err != io.EOF || !slices.Equal(got, want[min(have, 5):]) {
				t.Errorf("%q after %d: %q, %v", text, have, got, err)
			}
		}
	}
	if _, err := grid.Rest("not ours", 0); err == nil {
		t.Error("nonsense was taken for a template")
	}
}
