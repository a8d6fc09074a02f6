package cli

import (
	"bytes"
	"errors"
	"testing"
	"unicode/utf8"

	"dcs-tui/dispatch/run"
	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs/runview"
)

func FuzzHalt(f *testing.F) {
	for _, s := range []string{"", "1", "5", "10%", "0.5%", "100%", "0", "-1", "101%", "%", "NaN%", "1e3", "x", "never", "now,fail=1", "soon,success=3%", "later,done=1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, err := parseHalt(s)
		switch {
		case err != nil && h != sched.Halt{}:
			t.Errorf("parseHalt(%q) = %+v with the error %v", s, h, err)
		case err == nil && s != "" && s != "never" && (h.Jobs < 1) == (h.Percent <= 0 || h.Percent > 100):
			t.Errorf("parseHalt(%q) = %+v", s, h)
		}
	})
}

// GNU parallel's forms of --halt mean what they mean there.
func TestHaltForms(t *testing.T) {
	for in, want := range map[string]sched.Halt{
		"3":                {Jobs: 3},
		"10%":              {Percent: 10},
		"never":            {},
		"now,fail=1":       {Jobs: 1, Now: true},
		"soon,fail=10%":    {Percent: 10},
		"now,success=1":    {Of: sched.HaltOfSuccesses, Jobs: 1, Now: true},
		"soon,done=20":     {Of: sched.HaltOfAll, Jobs: 20},
		"now,success=2.5%": {Of: sched.HaltOfSuccesses, Percent: 2.5, Now: true},
	} {
		if got, err := parseHalt(in); got != want || err != nil {
			t.Errorf("parseHalt(%q) = %+v, %v; want %+v", in, got, err, want)
		}
	}
}

// --env: what is handed on is stored as a hash, and found again only when it is
// the same.
func FuzzEnv(f *testing.F) {
	f.Add("NAME=value", "")
	f.Add("NAME", "present")
	f.Add("1X=a", "")
	f.Add("=", "")
	f.Add("DCS_RUN=a", "")
	f.Add("A\x00=b", "\xff")
	f.Fuzz(func(t *testing.T, flag, present string) {
		lookup := func(string) (string, bool) { return present, present != "" }
		refs, vars, err := run.ParseEnv([]string{flag}, lookup)
		if err != nil {
			if len(refs)+len(vars) > 0 {
				t.Errorf("%q: %v with %v", flag, refs, err)
			}
			return
		}
		if !run.IsEnvName(refs[0].Name) || !refs[0].Stored && (refs[0].Value != "" || len(refs[0].Hash) != 64) || refs[0].Stored && refs[0].Hash != "" {
			t.Errorf("%q: %+v", flag, refs)
		}
		again, err := run.ResolveEnv(refs, lookup)
		if err != nil || len(again) != 1 || again[0] != vars[0] {
			t.Errorf("%q: %v, then %v (%v)", flag, vars, again, err)
		}
		other := func(string) (string, bool) { return present + "x", true }
		if _, err := run.ResolveEnv(refs, other); (err == nil) != refs[0].Stored {
			t.Errorf("%q: another value gives %v", flag, err)
		}
	})
}

// Output that is cut into pieces anywhere is cleaned as if it were whole.
func FuzzLineCleaner(f *testing.F) {
	f.Add([]byte("one\ntwo\n"), 3)
	f.Add([]byte("Zoë\r\n\x1b[2J\nno end"), 2)
	f.Add([]byte(""), 1)
	f.Fuzz(func(t *testing.T, text []byte, size int) {
		if len(text) > maxHeld || size < 1 {
			return
		}
		var whole, pieces lineCleaner
		want := whole.next(bytes.Clone(text), true)
		var got []byte
		rest := bytes.Clone(text)
		for {
			n := min(size, len(rest))
			last := n == len(rest)
			got = append(got, pieces.next(rest[:n], last)...)
			if rest = rest[n:]; last {
				break
			}
		}
		// A whole line at the end and nothing after it differ only in pieces.
		if !bytes.Equal(got, want) {
			t.Errorf("%q in pieces of %d: %q, want %q", text, size, got, want)
		}
		if !utf8.Valid(got) || bytes.ContainsAny(got, "\x1b\r\x07") {
			t.Errorf("%q: %q", text, got)
		}
	})
}

// The name and the advice of a host's error stand in places of their own.
func TestWithoutName(t *testing.T) {
	e := &hosts.Error{Host: "a", Err: errors.New("refused"), Advice: "do this"}
	if got := withoutName(e, "a"); got != "refused" {
		t.Errorf("%q", got)
	}
	if got := withoutName(errors.New("a: other"), "a"); got != "other" {
		t.Errorf("%q", got)
	}
	if got := runview.WithoutSubject("ws03 is up", "ws03"); got != "is up" {
		t.Errorf("%q", got)
	}
	if got := runview.WithoutSubject("ws03x is up", "ws03"); got != "ws03x is up" {
		t.Errorf("%q", got)
	}
}
