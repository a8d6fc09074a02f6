package sheet

import (
	"slices"
	"strings"
	"testing"
)

// TUI.md, key /, and issue 5: whatever the screen's filter has that --where has not is an
// error there that says what to type instead.
func TestWhatToTypeInstead(t *testing.T) {
	for text, want := range map[string]string{
		"state:fail":             `here it is "state=failed"`,
		"state:failed,timeout":   `here it is "state=failed or state=timed_out"`,
		"state:bad":              `here it is "state=failed or state=timed_out or state=skipped"`,
		"state:open":             `here it is "state=queued or state=running"`,
		"C=1 host:ws*":           `"host:ws*" is how the screen's filter has it; here it is "host=ws*"`,
		"queue:x":                `here it is "queue=x"`,
		"exit:137":               `here it is "exit=137"`,
		"exit:!0":                `here it is "exit!=0"`,
		"exit:SIGKILL":           `here it is "signal=SIGKILL"`,
		"exit:TERM":              `here it is "signal=SIGTERM"`,
		"try:>1":                 `here it is "try>1"`,
		"try:retried":            `here it is "try>1"`,
		"try:2":                  `here it is "try=2"`,
		"id:3-9,12":              `here it is "job>=3 and job<=9 or job=12"`,
		"tag:gpu":                "only for the screen's filter",
		"prio:<0":                "only for the screen's filter",
		"straggler":              "only for the screen's filter",
		"train":                  "to search for a text, write command~train",
		`"two words"`:            "write command~'two words'",
		"-sleep":                 "write command~-sleep",
		"C=1 and state=failed x": "\"x\" is not expected here",
	} {
		if _, err := ParseFilter(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
		f, err := ParseSearch(text)
		if err != nil || f == nil {
			t.Errorf("%s is no search: %v", text, err)
		}
	}
}

// What is said to be typed instead is taken.
func TestWhatIsTypedInsteadIsTaken(t *testing.T) {
	s := grid()
	for typed, want := range map[string]string{"state:bad": "6 7", "state:open": "", "exit:!0": "6 7", "exit:TERM": "", "try:<1": "6 7", "id:2-3,7": "2 3 7"} {
		_, err := ParseFilter(typed)
		if err == nil {
			t.Fatalf("%s is a filter", typed)
		}
		_, instead, _ := strings.Cut(err.Error(), `here it is "`)
		if got, _ := where(t, s, strings.TrimSuffix(instead, `"`)); ids(got) != want {
			t.Errorf("%s, then %s: %s, want %s", typed, instead, ids(got), want)
		}
	}
}

// A number that is compared with texts, or a text with numbers, finds nothing and says so.
func TestWhereOfOtherKinds(t *testing.T) {
	s := grid()
	for text, want := range map[string]string{
		"note>1": `note of 5 jobs is no number and left out (job 1: "a")`,
		"C>high": `C of 7 jobs is a number and left out: it was compared with a text (job 1: "0.1")`,
	} {
		if got, notes := where(t, s, text); got.Len() != 0 || strings.Join(notes, "|") != want {
			t.Errorf("%s: %s, %q", text, ids(got), notes)
		}
	}
	got, notes := where(t, New(Input{Jobs: nil, Names: []string{"acc"}}), "acc>1")
	if got.Len() != 0 || notes != nil {
		t.Errorf("%q", notes)
	}
	some, _ := where(t, s, "job=7")
	if _, notes := where(t, some, "acc>1 and acc<2"); len(notes) != 1 || notes[0] != "no job has acc, and < and > find none without" {
		t.Errorf("%q", notes)
	}
}

// E3: of a filter for groups what names their statistics is asked of them.
func TestSplit(t *testing.T) {
	s := grid()
	for text, want := range map[string][2]string{
		"C>=1 acc_mean>0.9":               {"C", "acc_mean"},
		"C>=1":                            {"C", ""},
		"solved>2, (jobs>3 and gamma=1)":  {"gamma", "solved jobs"},
		"acc_mean>1 or C=1":               {"", "acc_mean C"},
		"C=1 (state=failed or host=ws1*)": {"C state host", ""},
	} {
		f, err := ParseSearch(text)
		if err != nil {
			t.Fatal(err)
		}
		rows, groups := f.Split(s)
		var got [2]string
		for i, part := range []*Filter{rows, groups} {
			if part != nil {
				got[i] = strings.Join(part.Columns(), " ")
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	var none *Filter
	if rows, groups := none.Split(s); rows != nil || groups != nil {
		t.Error("an empty filter has parts")
	}
}

// What --where takes the screen's search takes, and finds the same with it.
func FuzzSearchAsFilter(f *testing.F) {
	for _, s := range []string{"C>=0.1 and state=succeeded", "not (a=1 or b!~'x y') , c<=-3", "[1]>0.5 && host=ws*", "acc=nan||note=''", "!C=1", "C=')'", "C = (1)", "not(C=1)", "C=1 C=2", "'C'=1", "\"C\">1,,C=2", "NOT C=1", "! C=1", "C\u00a0=\v1", "not\u00a0C=1 or\u3000C=2", "C=a,b=c"} {
		f.Add(s)
	}
	s := grid()
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := ParseFilter(text)
		if err != nil {
			return
		}
		a, _, err := s.Where(parsed)
		if err != nil {
			return
		}
		search, err := ParseSearch(text)
		if err != nil {
			if strings.Contains(err.Error(), "[ is itself") {
				return
			}
			t.Fatalf("%q: %v", text, err)
		}
		b, _, err := s.Search(search, func(w Word) (func(int) bool, error) { t.Fatalf("%q: a word %+v", text, w); return nil, nil })
		if err != nil || !slices.Equal(a.rows, b.rows) {
			t.Fatalf("%q: %v %v %v", text, a.rows, b.rows, err)
		}
	})
}
