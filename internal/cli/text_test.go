package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/muesli/cancelreader"
	"golang.org/x/sys/unix"

	"dcs-tui/dispatch/run"
	"dcs-tui/dispatch/sched/halt"
	"dcs-tui/internal/polltest"
	"dcs-tui/internal/ptytest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/observe/runview"
)

// TestHaltFormsMeanWhatTheyDoInParallel checks that GNU parallel's forms of --halt have the same
// meaning here.
func TestHaltFormsMeanWhatTheyDoInParallel(t *testing.T) {
	for in, want := range map[string]halt.Rule{
		"3":                {Jobs: 3},
		"10%":              {Percent: 10},
		"never":            {Never: true},
		"0":                {Never: true},
		"-1":               {Of: halt.Successes, Jobs: 1},
		"-2":               {Of: halt.Successes, Jobs: 1, Now: true},
		"now,fail=1":       {Jobs: 1, Now: true},
		"soon,fail=10%":    {Percent: 10},
		"now,success=1":    {Of: halt.Successes, Jobs: 1, Now: true},
		"soon,fail=2":      {Jobs: 2},
		"soon,done=20":     {Of: halt.All, Jobs: 20},
		"now,success=2.5%": {Of: halt.Successes, Percent: 2.5, Now: true},
	} {
		if got, err := parseHalt(in); got != want || err != nil {
			t.Errorf("parseHalt(%q) = %+v, %v; want %+v", in, got, err, want)
		}
		if want.Never {
			continue
		}
		if again, err := parseHalt(want.String()); again != want || err != nil {
			t.Errorf("%+v is written as %s, which is %+v, %v", want, want, again, err)
		}
	}
	for _, in := range []string{"2", "-3", "00", "101%", "%", "NaN%", "1e3", "x", "later,done=1"} {
		if got, err := parseHalt(in); err == nil {
			t.Errorf("parseHalt(%q) = %+v, want an error", in, got)
		}
	}
}

// FuzzEnv checks that --env stores a passed value as a hash, and finds it again only if it is the
// same.
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
		if !run.IsEnvName(refs[0].Name) || !refs[0].Stored && (refs[0].Value != "" || len(refs[0].Hash) != 64) ||
			refs[0].Stored && refs[0].Hash != "" {
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

// FuzzLineCleaner checks that output is cleaned in the same way whether it arrives whole or in
// arbitrary pieces.
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
		// A complete last line, and a last line followed by nothing, differ only in pieces.
		if !bytes.Equal(got, want) {
			t.Errorf("%q in pieces of %d: %q, want %q", text, size, got, want)
		}
		if !utf8.Valid(got) || bytes.ContainsAny(got, "\x1b\r\x07") {
			t.Errorf("%q: %q", text, got)
		}
	})
}

func hasEcho(t *testing.T, person *os.File) bool {
	return ptytest.Settings(t, person).Lflag&unix.ECHO != 0
}

// TestPassphraseIsNotEchoed checks that a passphrase is read without echo, and that the terminal
// echoes again afterwards, also if the question is interrupted.
func TestPassphraseIsNotEchoed(t *testing.T) {
	for typed, want := range map[string]error{"open sesame\n": nil, "": cancelreader.ErrCanceled} {
		person, program := ptytest.OpenForTest(t)
		keys, err := cancelreader.NewReader(program)
		must(t, err)
		defer keys.Close()
		var secret []byte
		ended := make(chan error)
		go func() {
			var err error
			secret, err = readSecret(program, keys)
			ended <- err
		}()
		polltest.Until(t, "it asks", func() bool { return !hasEcho(t, person) })
		if person.WriteString(typed); typed == "" {
			keys.Cancel()
		}
		if err := <-ended; !errors.Is(err, want) || string(secret) != strings.TrimSpace(typed) {
			t.Errorf("got %q, %v", secret, err)
		}
		same(t, "echo", hasEcho(t, person), true)
	}
}

// TestAgeNeedsUnit checks that an age for the removal of runs needs a unit, because 30 may mean
// days to a user.
func TestAgeNeedsUnit(t *testing.T) {
	for s, want := range map[string]time.Duration{ // 0: it is refused
		"30": 0, "1": 0, "0.5": 0, "1e3": 0, "": 0, "d": 0, "30d": 30 * 24 * time.Hour, "36h": 36 * time.Hour,
		"1.5s": 1500 * time.Millisecond,
	} {
		var v time.Duration
		if err := newFlag(&v, "TIME", parseAge).Set(s); v != want || (err == nil) != (want > 0) {
			t.Errorf("%q: got %s, want %s (%v)", s, v, want, err)
		}
	}
}

// TestFlagsAgreeWithOptions checks that a flag accepts exactly the values of the corresponding
// option of a jobs file.
func TestFlagsAgreeWithOptions(t *testing.T) {
	for _, c := range []struct {
		option string
		set    func(string) error
		values []string
	}{
		{"timeout", newFlag(new(time.Duration), "TIME", jobs.ParseDuration).Set,
			[]string{"90s", "30m", "1d12h", "10", "0.5", "0", "-1", "1x", "5M", " 5m", "1h5"}},
		{"mem", newFlag(new(*int64), "SIZE", optional(jobs.ParseSize)).Set,
			[]string{"8G", "512M", "1.5g", "2GiB", "20", "16", "4294967296", "20B", "0", "-1G", "8X", "8 G"}},
		{"tries", newFlag(new(int), "N", parseCountTo(jobs.MaxTries)).Set,
			[]string{"1", "3", "1000000", "1000001", "0", "-1", "x", "1.5"}},
	} {
		t.Run(c.option, func(t *testing.T) {
			for _, s := range c.values {
				_, err := jobs.Parse(strings.NewReader("#DCS "+c.option+"='"+s+"'\ntrue\n"), "f", false, 1)
				if flag := c.set(s); (flag == nil) != (err == nil) {
					t.Errorf("%s %q: the flag says %v, the jobs file %v", c.option, s, flag, err)
				}
			}
		})
	}
}

// TestCancelOfWhatWaitsNeedsADispatcher checks a cancel of waiting jobs whose dispatcher has died.
// The user was told that no running job is affected, so the cancel must not take the run over and
// end what runs (rule 9): it waits for the next resume.
func TestCancelOfWhatWaitsNeedsADispatcher(t *testing.T) {
	screen := &runScreen{app: newApp(), run: stoppedRun(t)}
	answer, err := screen.actUndispatched(t.Context(), action.Request{Do: action.Cancel, Jobs: jobs.One(1),
		Spare: action.SpareStarted}, nil)
	names, _, listErr := screen.run.RequestNames()
	must(t, errors.Join(err, listErr))
	if len(names) != 1 || screen.process.Load() != nil {
		t.Errorf("got %+v, %d requests, want one that waits and no process", answer, len(names))
	}
}

// TestACancelOutlivesItsScreen checks that a cancel that has taken the run over continues after its
// screen is left, and ends the jobs that it announced.
func TestACancelOutlivesItsScreen(t *testing.T) {
	t.Parallel()
	// The cancel cannot be done before the screen is left and the gate is open.
	const stubborn = "trap 'while [ ! -e gate ]; do sleep 0.02; done; exit 1' TERM; " +
		"while [ -e jobs.txt ]; do sleep 0.02; done\n"
	screen := startRunningJob(t, stubborn+stubborn)
	screen.killDispatcher(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	answer, err := screen.Do(ctx, action.Request{Do: action.Cancel, All: true})
	if err == nil && answer.Done != 0 || err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Error(answer, err)
	}
	screen.openGate(t)
	screen.awaitSnapshot(t, "all are canceled",
		func(p *runview.Snapshot) bool { return p.Phases[runview.Canceled] == 2 })
	// The helper still ends on its host, in a directory that is about to be removed.
	awaitNobody(t, screen.run)
}
