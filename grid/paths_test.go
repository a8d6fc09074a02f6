package grid

import (
	"context"
	"slices"
	"strings"
	"testing"
)

// TestPathsHoldValues checks that send=, return=, and patterns of the command line get the values of
// the job, that wildcards of a value mean themselves, and that a stored template gives the same.
func TestPathsHoldValues(t *testing.T) {
	text := "#DCS send=in/[C].dat:d return=out/[C]/[ab].csv,log\n./f [C]\n[C] 0.1 'x[1]*'\n"
	template, err := Config{Return: []string{"[C].log", "[ab].log"}}.Parse(context.Background(),
		strings.NewReader(text), "t.txt")
	if err != nil {
		t.Fatal(err)
	}
	again, err := ReadSource(template.Source(0))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(template.Returns, []string{"[C].log"}) {
		t.Errorf("the jobs have the patterns %q of the command line", template.Returns)
	}
	for _, tmpl := range []*Template{template, again} {
		var got []string
		for s, err := range tmpl.Jobs() {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, strings.Join(s.Send, "|")+" "+strings.Join(s.Return, "|"))
		}
		want := []string{"in/0.1.dat:d out/0.1/[ab].csv|log|0.1.log",
			`in/x[1]*.dat:d out/x\[1]\*/[ab].csv|log|x\[1]\*.log`}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestValuesStayInTheDirectory checks that a value that leads out of the directory of the job is an
// error with the line of the command.
func TestValuesStayInTheDirectory(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"#DCS return=out/[C]\n./f [C]\n[C] a ../../b\n",
			`t.txt:2: job 2: return: "out/../../b" leads out of the directory of the job`},
		{"#DCS send=[C]\n./f [C]\n[C] /etc/passwd\n", `t.txt:2: job 1: send: "/etc/passwd" must be relative`},
		{"#DCS send=[C]\n./f [C]\n[C] a:b\n", `send: the value "a:b" of [C] has a colon`},
	} {
		t.Run(c.text, func(t *testing.T) {
			template, err := Config{}.Parse(context.Background(), strings.NewReader(c.text), "t.txt")
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range template.Jobs() {
				err = e
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q: got %v, want %q", c.text, err, c.want)
			}
		})
	}
}

// TestReturnHasPlaceholders checks that patterns with placeholders become options of the jobs of
// ParseArguments, and that others do not.
func TestReturnHasPlaceholders(t *testing.T) {
	a, err := ParseArguments("", "f {1} {2}", strings.Fields("::: d/a.x b* ::: 1"), nil)
	if err != nil {
		t.Fatal(err)
	}
	taken, err := a.SetReturn([]string{"out/{1/.}-{2}.csv", "run[1].csv"})
	if err != nil || !slices.Equal(taken, []string{"out/{1/.}-{2}.csv"}) {
		t.Errorf("took %q, %v", taken, err)
	}
	specs, err := a.Jobs(10, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range specs {
		got = append(got, s.Return...)
	}
	if want := []string{"out/a-1.csv", `out/b\*-1.csv`}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := a.SetReturn([]string{"{3}"}); err == nil {
		t.Error("{3}: got no error, want one: there are two sources")
	}
}
