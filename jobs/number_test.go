package jobs

import "testing"

func TestNumbersOfThings(t *testing.T) {
	for n, want := range map[int]string{0: "0 jobs wait", 1: "1 job waits", 2: "2 jobs wait"} {
		if got := Plural(n, "job") + " " + Verb(n, "waits", "wait"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
