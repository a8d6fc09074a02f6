package tui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// detailed is a source whose job 50120 has all that a job can have.
func detailed() *fakeSource {
	return change(func(p *runview.Picture) {
		d := p.Detail
		if d == nil {
			return
		}
		at := func(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }
		d.Row.Params = []jobs.Param{{Name: "C", Value: "0.1"}, {Name: "gamma", Value: "0.5"}}
		d.Row.Queue, d.Row.Priority, d.Row.Round = "sweep", -2, 2
		d.Command = "set -e\npython train.py --C 0.1 --gamma 0.5 \\\n\t--out results/$DCS_JOB_ID.json " + strings.Repeat("--flag ", 20)
		d.Setup, d.Env = "source ~/venv/bin/activate", []jobs.EnvVar{{Name: "SEED", Value: "7"}}
		d.Tags, d.Slots, d.GPUs, d.MemBytes = []string{"gpu", "big"}, 2, 1, 8<<30
		d.Timeout, d.Deadline, d.Estimate, d.After = 2*time.Hour, noon.Add(30*time.Hour), time.Hour, "3,any:4"
		d.Why = "Job 50120 has failed: it used up its 3 tries, the last one on ws03 ended with exit 137."
		d.Attempts = nil
		for n := range 3 {
			a := runview.Attempt{ID: jobs.AttemptID{Job: 50120, N: n + 1}, Host: fmt.Sprintf("ws0%d", n+1), Slot: n + 1, Round: 1 + n/2, State: "exited", Result: "exit 137",
				Launched: at(-600 + 100*n), Started: at(-599 + 100*n), Ended: at(-592 + 100*n), CPU: 6 * time.Second, MaxRSS: 3 << 30, Last: "Killed", Charged: true,
				Out: fmt.Sprintf("/nfs/data/proj/dcs-runs/sweep/attempts/050/50120.%d.out", n+1), Err: fmt.Sprintf("/nfs/data/proj/dcs-runs/sweep/attempts/050/50120.%d.err", n+1)}
			if n == 0 {
				a.State, a.Result, a.Reason, a.Charged, a.Out = "lost", "", "its host was given up after 60 s without a beat", false, "ws01:/var/tmp/50120.1.out"
			}
			d.Attempts = append(d.Attempts, a)
		}
	})
}

// TUI.md, enter: command, parameters, requirements, reasons, attempts, files.
func TestDetails(t *testing.T) {
	for _, size := range [][2]int{{40, 10}, {80, 24}, {160, 48}} {
		m := newFrame(t, detailed(), size[0], size[1])
		m.openDetail(50120)
		m.full = true
		refresh(t, m)
		golden(t, m, fmt.Sprintf("detail-%dx%d", size[0], size[1]))
		press(t, m, "G")
		golden(t, m, fmt.Sprintf("detail-end-%dx%d", size[0], size[1]))
	}
}

// Keys on jobs are about the job whose details are shown, whatever else is selected,
// and l and enter go between details and output.
func TestKeysInDetails(t *testing.T) {
	m := newScreen(t, detailed(), 80, 24)
	m.openDetail(50120)
	refresh(t, m)
	if got := m.selection(); fmt.Sprint(got) != fmt.Sprint(jobs.One(50120)) {
		t.Errorf("keys are about %v", got)
	}
	press(t, m, "l")
	if p, ok := m.extra.(*outputPane); !ok || p.job != 50120 {
		t.Fatalf("l opens %T", m.extra)
	}
	press(t, m, "enter")
	if p, ok := m.extra.(*detailPane); !ok || p.job != 50120 {
		t.Fatalf("enter opens %T", m.extra)
	}
	press(t, m, "r")
	if did := m.src.(*fakeSource).done(); len(did) != 1 || did[0].Do != runview.Requeue || fmt.Sprint(did[0].Jobs) != fmt.Sprint(jobs.One(50120)) {
		t.Errorf("r did %+v", did)
	}
	press(t, m, "esc")
	if m.extra != nil {
		t.Error("esc does not close it")
	}
}

// A command of a megabyte, and a hundred attempts, cost what is on the screen.
func TestBigDetails(t *testing.T) {
	m := newScreen(t, change(func(p *runview.Picture) {
		if p.Detail != nil {
			p.Detail.Command = strings.Repeat("x", 1<<20)
			for len(p.Detail.Attempts) < 100 {
				p.Detail.Attempts = append(p.Detail.Attempts, p.Detail.Attempts[0])
			}
		}
	}), 80, 24)
	m.openDetail(50118)
	press(t, m, "G", "pgup", "g")
	checkSize(t, m, "a big job")
}

// X4: a peak of memory that says only how large our supervisor was is not shown as if it
// were the job's.
func TestMemoryThatCannotBeToldApart(t *testing.T) {
	m := newScreen(t, sample(), 80, 24)
	for bytes, want := range map[int64]string{0: "-", 1: "<16M", 13 << 20: "<16M", jobs.MemoryFloor: "<16M", jobs.MemoryFloor + 1<<20: "17M", 3 << 30: "3G"} {
		if got, _ := memoryCell(m, &runview.Row{MaxRSS: bytes}, 5); got != want {
			t.Errorf("the cell of %d bytes is %q, not %q", bytes, got, want)
		}
		lines := plainText(strings.Join(m.attempt(&runview.Attempt{MaxRSS: bytes}, 80), "\n"))
		if bytes > 0 && !strings.Contains(lines, " "+want+" of memory at most") || bytes == 0 && strings.Contains(lines, "memory") {
			t.Errorf("of %d bytes the details say %q", bytes, lines)
		}
	}
}
