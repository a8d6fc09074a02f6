package tui

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/live"
	"dcs-tui/observe/runview"
)

// sizes are the terminal sizes at which the layout changes, with the smallest and the largest.
var sizes = [][2]int{{40, 10}, {59, 14}, {60, 15}, {80, 24}, {119, 35}, {120, 36}, {160, 48}, {300, 100}}

// sampleWith returns a source like sample whose snapshots are modified by f, if it is not nil.
func sampleWith(f func(*runview.Snapshot)) *fakeSource {
	return &fakeSource{snapshot: func(ask runview.Query) (*runview.Snapshot, error) {
		snap := sampleSnapshot(ask)
		if f != nil {
			f(snap)
		}
		return snap, nil
	}}
}

// TestViewsAtEachSize compares the list of jobs at each size, and the other views at three sizes, with
// golden files, and at one size also without UTF-8 (rule 8).
func TestViewsAtEachSize(t *testing.T) {
	for _, s := range sizes {
		for _, v := range []tab{tabJobs, tabHosts, tabFailed, tabEvents} {
			if v != tabJobs && s[0] != 40 && s[0] != 80 && s[0] != 160 {
				continue // the layout is that of the jobs
			}
			name := strings.ToLower(tabNames[v])
			m := newView(t, Options{Source: sample()}, v, s[0], s[1])
			if v == tabJobs { // select two jobs
				press(t, m, "j space space k k k")
			}
			checkGolden(t, m, fmt.Sprintf("frame-%s-%dx%d", name, s[0], s[1]))
			if s[0] == 80 {
				checkGolden(t, newView(t, Options{Source: sample(), ASCII: true}, v, s[0], s[1]), "frame-ascii-"+name)
			}
		}
	}
}

// states are the states that a run may be in (rule 5). The screen describes in words what is wrong.
var states = map[string]func(*runview.Snapshot){
	"dead": func(snap *runview.Snapshot) {
		snap.Status, snap.Over = runview.StatusCrashed, "its dispatcher on desk has died"
	},
	"ended": func(snap *runview.Snapshot) {
		snap.Status, snap.Over, snap.Total = runview.StatusFinished, "All jobs are over; 17 have failed.", 12_221
		snap.Phases[runview.Queued], snap.Phases[runview.Running], snap.Phases[runview.Retry] = 0, 0, 0
		snap.Run.Created = noon.Add(-3 * time.Hour)
	},
	"stopped":  func(snap *runview.Snapshot) { snap.Status, snap.Over = runview.StatusFinished, "It was stopped." },
	"paused":   func(snap *runview.Snapshot) { snap.Paused = true },
	"draining": func(snap *runview.Snapshot) { snap.Draining = "asked for by ada" },
	"problem": func(snap *runview.Snapshot) {
		snap.Problem = "the journal cannot be written: no space left on device"
	},
	"question": func(snap *runview.Snapshot) {
		snap.Question = &live.Question{ID: 3, Text: "Passphrase of ~/.ssh/id_ed25519:", Secret: true}
	},
	"nohost": func(snap *runview.Snapshot) {
		for i := range snap.Hosts {
			h := &snap.Hosts[i]
			h.State, h.Reason, h.Running, h.RetryIn, h.Down = "backing_off", "connection refused", 0, 12*time.Second,
				time.Minute
		}
	},
	"connecting": func(snap *runview.Snapshot) {
		for i := range snap.Hosts {
			if snap.Hosts[i].State = "up"; i > 2 {
				snap.Hosts[i] = live.Host{Name: snap.Hosts[i].Name, HostStatus: jobs.HostStatus{State: "connecting"},
					Slots: 12, DiskFree: -1}
			}
		}
	},
	"onehost": func(snap *runview.Snapshot) {
		snap.Run.Lab, snap.Hosts = "this machine", snap.Hosts[:1]
		snap.Hosts[0].Name, snap.Hosts[0].Delay, snap.SlotsBusy, snap.Slots = "localhost", 0, 11, 12
	},
	"hosts200": func(snap *runview.Snapshot) {
		for i := len(snap.Hosts); i < 200; i++ {
			h := snap.Hosts[0]
			h.Name = fmt.Sprintf("ws%03d", i+1)
			snap.Hosts = append(snap.Hosts, h)
		}
	},
	"huge": func(snap *runview.Snapshot) {
		snap.Total, snap.Phases[runview.Queued], snap.Phases[runview.Succeeded],
			snap.Phases[runview.Failed] = 987_654_321, 900_000_000, 87_000_000, 654_195
		snap.Rate, snap.ETA, snap.Spread, snap.SlotsBusy, snap.Slots = 12_345, 400*24*time.Hour, 100*24*time.Hour,
			123_456, 234_567
		h := &snap.Hosts[0]
		h.Done, h.Failed, h.Slots, h.Running, h.Buffered, h.Load, h.Busy = 123_456_789, 98_765, 4096, 4095, 9999,
			[3]float64{99999.5}, 4096
		h.MemBytes, h.MemFree, h.DiskFree, h.Delay, h.FSDelay = 24<<40, 1<<40, 1<<60, 90*time.Second, time.Hour
	},
	"hostile": func(snap *runview.Snapshot) {
		evil := "\x1b]52;c;cHduZWQ=\x07\x1b[2J\r\nd\u202eesrever\xff 世界世界世界 \x1b]0;title\x07"
		snap.Run.Name, snap.Run.Lab, snap.Problem = evil, evil, evil
		for i := range snap.Hosts {
			h := &snap.Hosts[i]
			h.Name, h.Hold, h.Reason, h.Note = evil+h.Name, jobs.HeldByLoad, evil+evil+evil, evil
		}
		for i := range snap.Groups {
			snap.Groups[i].Cause, snap.Groups[i].Last, snap.Groups[i].Hosts = evil, evil, []string{evil, evil}
		}
		if snap.Events != nil {
			for i := range snap.Events.Lines {
				snap.Events.Lines[i].Text, snap.Events.Lines[i].Host = evil, evil
			}
		}
	},
	"empty": func(snap *runview.Snapshot) {
		*snap = runview.Snapshot{Version: 7, MadeAt: noon, At: noon, RunProgress: runview.RunProgress{More: true}}
	},
	"notlive": func(*runview.Snapshot) {},
}

// TestStatesOfARun compares each state at two sizes on the hosts view, which has all parts of the
// frame.
func TestStatesOfARun(t *testing.T) {
	for name, f := range states {
		for _, s := range [][2]int{{40, 10}, {80, 24}} {
			m := newView(t, Options{Source: sampleWith(f)}, tabHosts, s[0], s[1])
			if name == "notlive" {
				m.snap.MadeAt = noon.Add(-12 * time.Second)
				m.snapshotErr = errors.New("dial unix: connection refused")
			}
			checkGolden(t, m, fmt.Sprintf("state-%s-%dx%d", name, s[0], s[1]))
		}
	}
}

// TestNoStateBreaksTheLayout checks that no state breaks the layout at any size in any view, nor
// violates rule 10.
func TestNoStateBreaksTheLayout(t *testing.T) {
	for name, f := range states {
		for _, ascii := range []bool{false, true} {
			m := newScreenOf(t, Options{Source: sampleWith(f), ASCII: ascii}, 80, 24)
			m.handleSnapshot(snapshotMsg{snap: sampleSnapshot(runview.Query{Groups: true,
				Events: &runview.EventsWindow{Rows: 9}})})
			f(m.snap)
			all := append(sizes[:len(sizes):len(sizes)], [2]int{39, 9}, [2]int{1, 1}, [2]int{80, 15}, [2]int{80, 60},
				[2]int{119, 12}, [2]int{300, 10})
			if ascii {
				all = sizes[:5]
			}
			for _, s := range all {
				m.w, m.h = s[0], s[1]
				for v := range numTabs {
					m.tab, m.focusedTab = v, v
					checkHarmless(t, m, fmt.Sprintf("%s, %s at %dx%d", name, tabNames[v], s[0], s[1]))
					if ascii && strings.ContainsFunc(m.frame, func(r rune) bool { return r > '~' }) {
						t.Errorf("%s: not only ASCII:\n%s", name, m.frame)
					}
				}
			}
		}
	}
}

// TestStatesOfHostsDifferWithoutColor checks that the states of a host differ without styles:
// color alone never distinguishes states (rule 8).
func TestStatesOfHostsDifferWithoutColor(t *testing.T) {
	for _, g := range []*glyphs{&utf8Glyphs, &asciiGlyphs} {
		m := newScreen(t, sample(), 80, 24)
		m.glyphs = g
		seen := map[string]jobs.HostState{}
		for _, s := range []jobs.HostState{jobs.HostUp, jobs.HostSuspect, jobs.HostLost, jobs.HostConnecting,
			jobs.HostBackingOff, jobs.HostDraining, jobs.HostDisabled} {
			h := &live.Host{HostStatus: jobs.HostStatus{State: s}}
			if other, ok := seen[m.hostGlyph(h)]; ok {
				t.Errorf("%s and %s have the same glyph", s, other)
			}
			seen[m.hostGlyph(h)] = s
			if h.Word() == "" || len(h.Word()) > 10 {
				t.Errorf("%s has the word %q", s, h.Word())
			}
		}
	}
}

// TestEmptyPanesSayWhatTheyWaitFor checks that the screen explains a long wait instead of staying
// empty.
func TestEmptyPanesSayWhatTheyWaitFor(t *testing.T) {
	m := newModel(Options{Source: sample()}, func() time.Time { return noon })
	for _, s := range sizes {
		m.w, m.h = s[0], s[1]
		checkSize(t, m, "before the first snapshot")
		shows(t, m, "reading the run")
	}
	m.Update(snapshotMsg{err: errors.New("no such run")})
	m.w, m.h = 80, 24
	shows(t, m, "no answer", "no such run")
}

// detailedSample returns a source whose job 50120 has all properties that a job can have.
func detailedSample() *fakeSource {
	return sampleWith(func(snap *runview.Snapshot) {
		detail := snap.Detail
		if detail == nil {
			return
		}
		at := func(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }
		detail.Row.Params = []jobs.Param{{Name: "C", Value: "0.1"}, {Name: "gamma", Value: "0.5"}}
		detail.Row.Queue, detail.Row.Priority, detail.Row.Round = "sweep", -2, 2
		detail.Command = "set -e\npython train.py --C 0.1 --gamma 0.5 \\\n\t--out results/$DCS_JOB_ID.json " +
			strings.Repeat("--flag ", 20)
		detail.Setup, detail.Env = "source ~/venv/bin/activate", []jobs.EnvVar{{Name: "SEED", Value: "7"}}
		detail.Tags, detail.Slots, detail.GPUs, detail.MemBytes = []string{"gpu", "big"}, 2, jobs.WholeGPU, 8<<30
		detail.Timeout, detail.Deadline, detail.Estimate = 2*time.Hour, noon.Add(30*time.Hour), time.Hour
		detail.SetAfter(jobs.Dependencies{{Range: jobs.Range{First: 3, Last: 3}},
			{Range: jobs.Range{First: 4, Last: 4}, On: jobs.AfterEnd}})
		detail.Why = "Job 50120 has failed: it used up its 3 tries, the last one on ws03 ended with exit 137."
		detail.Attempts = nil
		for n := range 3 {
			a := runview.Attempt{ID: jobs.AttemptID{Job: 50120, N: n + 1}, Host: fmt.Sprintf("ws0%d", n+1), Slot: n + 1,
				Round: 1 + n/2, State: "exited", Result: "exit 137",
				Launched: at(-600 + 100*n), Started: at(-599 + 100*n), Ended: at(-592 + 100*n), CPU: 6 * time.Second,
				MaxRSS: 3 << 30, Last: "Killed", Charged: true}
			if n == 0 {
				a.State, a.Result, a.Reason, a.Charged, a.Far = "lost", "",
					"its host was given up after 60 s without a heartbeat", false, "ws01:/var/tmp/attempts"
			}
			detail.Attempts = append(detail.Attempts, a)
		}
	})
}

// TestDetailsShowEverythingAboutAJob checks that the details show the command, parameters,
// requirements, reasons, attempts, and files.
func TestDetailsShowEverythingAboutAJob(t *testing.T) {
	for _, size := range [][2]int{{40, 10}, {80, 24}, {160, 48}} {
		m := newScreen(t, detailedSample(), size[0], size[1])
		m.openDetail(50120)
		m.extraZoomed = true
		refresh(t, m)
		checkGolden(t, m, fmt.Sprintf("detail-%dx%d", size[0], size[1]))
		press(t, m, "G")
		checkGolden(t, m, fmt.Sprintf("detail-end-%dx%d", size[0], size[1]))
	}
}

// TestKeysActOnTheOpenJob checks that keys act on the job whose details are open, whatever is
// selected, and that l and enter switch between details and output.
func TestKeysActOnTheOpenJob(t *testing.T) {
	m := newScreen(t, detailedSample(), 80, 24)
	m.openDetail(50120)
	refresh(t, m)
	equal(t, m.selectedOrCurrent().String(), "50120", "the jobs that keys act on")
	press(t, m, "l")
	if p, ok := m.extra.(*outputPane); !ok || p.job != 50120 {
		t.Fatalf("l opens %T", m.extra)
	}
	press(t, m, "enter")
	if p, ok := m.extra.(*detailPane); !ok || p.job != 50120 {
		t.Fatalf("enter opens %T", m.extra)
	}
	press(t, m, "r")
	checkActions(t, m.src.(*fakeSource), action.Request{Do: action.Requeue, Jobs: jobs.One(50120)})
	press(t, m, "esc")
	if m.extra != nil {
		t.Error("esc does not close it")
	}
}

// TestBigDetailsCostOnlyVisibleRows checks that a command of a megabyte and a hundred attempts cost
// no more than the visible rows.
func TestBigDetailsCostOnlyVisibleRows(t *testing.T) {
	m := newScreen(t, sampleWith(func(snap *runview.Snapshot) {
		if snap.Detail != nil {
			snap.Detail.Command = strings.Repeat("x", 1<<20)
			for len(snap.Detail.Attempts) < 100 {
				snap.Detail.Attempts = append(snap.Detail.Attempts, snap.Detail.Attempts[0])
			}
		}
	}), 80, 24)
	m.openDetail(50118)
	press(t, m, "G pgup g")
	checkSize(t, m, "a big job")
}

// TestMemoryThatCannotBeToldApart checks that a memory peak that may be that of the supervisor is
// shown as an upper bound (<16M), not as the job's memory (X4).
func TestMemoryThatCannotBeToldApart(t *testing.T) {
	m := newScreen(t, sample(), 80, 24)
	for _, c := range []struct {
		bytes        int64
		cell, detail string
	}{
		{0, "-", ""}, {1, "<16M", "<16 MiB"}, {13 << 20, "<16M", "<16 MiB"}, {jobs.MemoryFloor, "<16M", "<16 MiB"},
		{jobs.MemoryFloor + 1<<20, "17M", "17 MiB"}, {3 << 30, "3G", "3 GiB"},
	} {
		t.Run(c.cell, func(t *testing.T) {
			got, _ := memoryCell(m, &runview.Row{MaxRSS: c.bytes}, 5)
			equal(t, got, c.cell, "the cell")
			lines := plainText(strings.Join(m.attemptLines(&runview.Attempt{MaxRSS: c.bytes}, 80), "\n"))
			want := text.If(c.bytes > 0, " "+c.detail+" of memory at most")
			if !strings.Contains(lines, want) || c.bytes == 0 && strings.Contains(lines, "memory") {
				t.Errorf("the details are %q", lines)
			}
		})
	}
}

// TestEventsThatAreCutSaySo checks that the pane reports that older events are not kept and names
// the command that shows them, even if no kept event matches the filter (E8).
func TestEventsThatAreCutSaySo(t *testing.T) {
	cut, none := true, false
	m := newScreen(t, sampleWith(func(snap *runview.Snapshot) {
		if snap.Events != nil {
			if snap.Events.Cut = cut; none {
				snap.Events.Total, snap.Events.Lines = 0, nil
			}
		}
	}), 120, 24)
	press(t, m, "5", "older ones: dcs-tui events sweep")
	none = true
	typeLine(t, m, "/", "job:1")
	shows(t, m, "no event matches job:1: esc shows all", "┃ older ones: dcs-tui events sweep-20260314")
	cut = false
	refresh(t, m)
	hides(t, m, "dcs-tui events")
	shows(t, m, "no event matches job:1: esc shows all")
}

// TestEventsAfterTheDispatcherHasGone checks the switch to events from the journal, which have
// other numbers, after the dispatcher has gone. A cursor on an event of the live run must not leave
// the pane empty.
func TestEventsAfterTheDispatcherHasGone(t *testing.T) {
	const live = 1 << 32
	own := uint64(live)
	m := newScreen(t, sampleWith(func(snap *runview.Snapshot) {
		if snap.Events != nil {
			for i := range snap.Events.Lines {
				snap.Events.Lines[i].Seq += own
			}
		}
	}), 80, 24)
	press(t, m, "5 k", "1 newer: G follows")
	own = 0
	refresh(t, m)
	shows(t, m, "link lost", "is being drained", "following")
}

// TestCauseIsShownInFull checks that a cause without a last line of stderr (for example, no host
// can run the job) is shown in full if there is space. Beside a last line it keeps its column (rule
// 7).
func TestCauseIsShownInFull(t *testing.T) {
	const why = "no host has 10000 GiB of memory"
	m := newScreen(t, sample(), 80, 24)
	p := newFailedPane()
	for _, c := range []struct {
		name  string
		group runview.Group
		w     int
		want  string
	}{
		{"nothing ran", runview.Group{Cause: why, Count: 1}, 78, "1  " + why},
		{"nothing ran, few columns", runview.Group{Cause: why, Count: 1}, 30, "1  no host has 100…"},
		{"something ran", runview.Group{Cause: "exit 137", Last: "out of memory", Count: 2}, 78,
			"2  exit 137     out of memory"},
		{"a long cause of what ran", runview.Group{Cause: "exit 126 or so", Last: "x", Count: 2}, 78,
			"2  exit 126 or… x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := plainText(p.lineText(m, failedLine{group: &c.group}, c.w))
			if width(got) > c.w || !strings.Contains(got, c.want) {
				t.Errorf("%s: %q, want %q in it", c.name, got, c.want)
			}
		})
	}
}

// TestFilterOfHostsTakesNoCommands checks that text typed after / in Hosts filters hosts and is
// never taken as commands (d would drain a host). A command finds its host whatever the filter is.
func TestFilterOfHostsTakesNoCommands(t *testing.T) {
	m := newScreen(t, sample(), 80, 24)
	press(t, m, "2 / w s 0 3", "filter hosts: /ws03", "ws03")
	hides(t, m, "> ws01", "  ws02")
	press(t, m, "enter")
	if h := m.hosts.currentHost(m); h == nil || h.Name != "ws03" {
		t.Fatalf("under the cursor is %+v", h)
	}
	shows(t, m, "/ws03  sort:inventory")
	typeLine(t, m, ":", "stop ws01")
	shows(t, m, "Stop ws01 now?")
	press(t, m, "esc")
	typeLine(t, m, "/", "no such")
	shows(t, m, "no host matches no such: esc shows all")
	press(t, m, "esc")
	hides(t, m, "no host matches")
	press(t, m, "/ x esc", "ws01")
}

// TestHostsAreFilteredByTheirColumns checks that a filter can compare every column of the list of
// hosts by its heading, as in the list of jobs.
func TestHostsAreFilteredByTheirColumns(t *testing.T) {
	m := newScreen(t, sample(), 160, 48)
	for _, c := range m.hosts.columns(m, 200) {
		if c.heading == "5 MIN" { // a sparkline has no value to compare
			continue
		}
		if _, err := m.hostFilter(c.heading + "='x'"); err != nil {
			t.Errorf("%s: %v", c.heading, err)
		}
	}
	for filter, want := range map[string]int{"HOST=ws03": 1, "host=ws0* state=up": 8, "State=draining": 1,
		"ok>=1007": 5, "Mem<1G": 0, "disk>1G load>1": 12,
		"link<1s": 12, "ws1 not ws12": 2, "lost or draining": 2, "": 12} {
		t.Run(filter, func(t *testing.T) {
			m.hosts.filter = filter
			got, _ := m.hosts.hosts(m)
			equal(t, len(got), want, "number of hosts with %s", filter)
		})
	}
	m.hosts.filter = ""
	press(t, m, "2 2")
	typeLine(t, m, "/", "lod>3")
	shows(t, m, `there is no column "lod" (did you mean "load"?)`)
}

// TestFilterOfFailedOpensTheJobs checks that / in Failed opens the list of jobs, filtered to failed
// jobs.
func TestFilterOfFailedOpensTheJobs(t *testing.T) {
	m := newScreen(t, sample(), 80, 24)
	press(t, m, "3")
	typeLine(t, m, "/", "C=1")
	equal(t, m.tab, tabJobs, "the view")
	equal(t, m.jobs.filter, "(state=fail or state=timeout) C=1", "the filter")
}
