package helper

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// admitAll sends n messages and returns how many were admitted, and the error of the next.
func admitAll(in *intake, n int, m hosts.Message, size int) (int, error) {
	for i := range n {
		if err := in.admit(m, size); err != nil {
			return i, err
		}
	}
	return n, nil
}

// TestWhatAHostMaySend checks the bounds of messages: what is admitted without being asked for, what
// requests earn, and that a host that was refused may send again later.
func TestWhatAHostMaySend(t *testing.T) {
	launched := &hosts.Launch{Jobs: make([]hosts.LaunchJob, 4096)}
	for _, tt := range []struct {
		name  string
		first func(in *intake) // nil: nothing
		m     hosts.Message
		size  int
		want  int // admitted of 200,000
		err   error
	}{
		{"small messages", nil, &hosts.Heartbeat{}, 200, maxUnasked, errTooMany},
		{"large messages", nil, &hosts.Exits{}, MaxReport, maxUnasked / 65, errTooMany},
		{"troubles", nil, &hosts.Trouble{Text: strings.Repeat("x", 900)}, 1000, maxKept / 1000, errTooMuchText},
		{"chunks", nil, &hosts.Chunk{}, 1, 0, errUnasked},
		{"stored", nil, &hosts.Stored{}, 1, 0, errUnasked},
		{"inspected", nil, &hosts.Inspected{}, 1, 0, errUnasked},
		{"a chunk for each read", func(in *intake) {
			for range 3 {
				in.asked(&hosts.Read{Limit: hosts.MaxChunk})
			}
		}, &hosts.Chunk{}, hosts.MaxChunk, 3, errUnasked},
		{"reports of launched jobs", func(in *intake) {
			admitAll(in, maxUnasked, &hosts.Exits{}, 1)
			in.asked(launched)
		}, &hosts.Exits{}, 200, 4096 * attemptMessages, errTooMany},
		{"a list of a million failed attempts", func(in *intake) {
			admitAll(in, maxUnasked, &hosts.Exits{}, 1)
			in.asked(&hosts.List{})
		}, &hosts.Listed{}, 500 * 1100, maxUnasked / 34, errTooMany},
		{"a minute after a refusal", func(in *intake) {
			admitAll(in, maxUnasked+1, &hosts.Exits{}, 1)
			time.Sleep(time.Minute)
		}, &hosts.Heartbeat{}, 200, 60 * secondMessages, errTooMany},
		{"a night later", func(in *intake) {
			admitAll(in, maxUnasked+1, &hosts.Exits{}, 1)
			time.Sleep(8 * time.Hour)
		}, &hosts.Heartbeat{}, 200, maxUnasked, errTooMany},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in := &intake{host: "ws01", allowance: newAllowance()}
				if tt.first != nil {
					tt.first(in)
				}
				n, err := admitAll(in, 200_000, tt.m, tt.size)
				if n < tt.want || n > tt.want+tt.want/50 || !errors.Is(err, tt.err) {
					t.Errorf("%d were admitted, then %v; want %d, then %v", n, err, tt.want, tt.err)
				}
				if hosts.ClassOf(err) != hosts.Misconfigured || !strings.HasPrefix(err.Error(), "ws01: ") {
					t.Errorf("the error is %v, of class %v", err, hosts.ClassOf(err))
				}
			})
		})
	}
}

// TestEndlessStderrCutsTheLink checks that a host that never stops printing to standard error is
// refused, before and after its hello, and that little of it is logged.
func TestEndlessStderrCutsTheLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logged, isCut := 0, false
		l := listen(endless{}, func(line string) { logged += len(line) }, newAllowance(),
			func() error { isCut = true; return nil })
		<-l.done
		if !isCut || !l.isCut() || logged > maxKept {
			t.Errorf("the link was cut: %v; %d bytes were logged", isCut, logged)
		}
		err := endError("ws01", true, nil, l, errors.New("closed"))
		if !errors.Is(err, errTooMuchText) || !strings.Contains(err.Error(), "too many lines") {
			t.Errorf("the error is %v", err)
		}
	})
}

// endless prints one line again and again.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return copy(p, "too many lines\n"), nil }

// TestReportsAreSplit checks that the messages of a host are split into frames that are accepted.
func TestReportsAreSplit(t *testing.T) {
	m := &hosts.Withdrawn{Why: "full", Attempts: make([]jobs.AttemptID, 400_000)}
	for i := range m.Attempts {
		m.Attempts[i] = jobs.AttemptID{Job: jobs.ID(i + 1_000_000), N: 1}
	}
	r := NewReader(strings.NewReader(string(write(t, m))))
	var got []jobs.AttemptID
	for len(got) < len(m.Attempts) {
		part, err := r.Read()
		must(t, err)
		got = append(got, part.(*hosts.Withdrawn).Attempts...)
		if r.size > MaxReport {
			t.Errorf("a frame of %d bytes", r.size)
		}
	}
	if got[399_999] != m.Attempts[399_999] {
		t.Errorf("the last attempt is %v", got[399_999])
	}
}
