package live

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/disktest"
)

var (
	must   = polltest.Must
	newRun = disktest.NewRun
)

// state returns a State in which every field of every struct is set.
func state(t testing.TB) *State {
	s := &State{
		V:         jobs.FormatLive.Version,
		Run:       "abc",
		Epoch:     3,
		Token:     "t",
		At:        time.Date(2026, 3, 14, 15, 2, 0, 5000, time.UTC),
		Durable:   Durable{Epoch: 2, Bytes: 4711},
		More:      true,
		MetricsOf: []string{"a"},
		Held:      true,
		Draining:  "a <person> asked",
		Stuck:     "a is lost",
		Awaited:   &Await{Hosts: []string{"a"}, Text: "1 attempt waits", HasLimit: true},
		Problem:   "disk full",
		Deleted:   true,
		Finish:    &Finish{How: "drained", Why: "a", Hosts: []string{"a"}, Text: "a"},
		Tries:     3,
		Hybrid:    true,
		Rate:      1.5,
		Rates: []float64{0,
			2},
		ETA:      time.Hour,
		Spread:   time.Minute,
		Question: &Question{ID: 7, Text: "Passphrase", Secret: true},
		Standby:  "b",
		NextSlot: &jobs.NextSlot{From: jobs.SlotOfJob, Host: "a", Job: 2, In: 3, Users: []string{"bob"},
			Runs: []string{"c"}},
		Hosts: []Host{{
			Name:       "a",
			HostStatus: jobs.HostStatus{State: "up", Hold: "load", Reason: "r", Suspended: 1},
			Linked:     true,
			Stopped:    true,
			Note:       "ü\x1b\n",
			Slots:      4,
			Given:      2,
			Usable:     3.5,
			Running:    2,
			Buffered:   1,
			Done:       9,
			Failed:     1,
			Cores:      8,
			GPUs:       2,
			GPUsUsed:   1.5,
			Load: [3]float64{1, 2,
				3},
			Busy:      2,
			Ours:      1,
			MemBytes:  1 << 40,
			MemFree:   1 << 39,
			DiskFree:  -1,
			FSDelay:   1,
			Delay:     2,
			Files:     "receives",
			Users:     "alice 1 slot",
			Heartbeat: 3,
			Down:      4,
			Idle:      6,
			RetryIn:   5,
			History:   []uint8{0, 100, 255},
		}},
		Queues: []Queue{{Name: "q", Mean: time.Second, Deviation: time.Minute}},
		Stragglers: jobs.RangesOf([]jobs.ID{1,
			2, 9}),
		Ending:   jobs.RangesOf([]jobs.ID{4}),
		Progress: map[string]string{"1.1": "50 %"},
	}
	checkSet(t, reflect.ValueOf(*s), "State")
	return s
}

func checkSet(t testing.TB, v reflect.Value, name string) {
	switch {
	case v.IsZero():
		t.Errorf("%s is not set", name)
	case v.Kind() == reflect.Pointer:
		checkSet(t, v.Elem(), name)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		checkSet(t, v.Index(0), name)
	case v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[time.Time]():
		for i := range v.NumField() {
			checkSet(t, v.Field(i), name+"."+v.Type().Field(i).Name)
		}
	}
}

// TestStateIsReadBack checks that a state is read back unchanged, that its file is only for the
// user, and that a refused write changes nothing.
func TestStateIsReadBack(t *testing.T) {
	r := newRun(t)
	if s, err := Read(r); s != nil || err != nil {
		t.Fatalf("Read without a file = %v, %v; want nil, nil", s, err)
	}
	want := state(t)
	for range 2 {
		must(t, Write(r, want, nil))
		got, err := Read(r)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("Read = %+v, %v\nwant %+v", got, err, want)
		}
		want.Epoch++
	}
	info, err := os.Stat(r.Path(rundir.LiveFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	refused := errors.New("fenced")
	if err := Write(r, &State{V: jobs.FormatLive.Version, Epoch: 1}, func() error {
		return refused
	}); !errors.Is(err, refused) {
		t.Errorf("Write = %v, want %v", err, refused)
	}
	if got, err := Read(r); err != nil || got.Epoch != 4 {
		t.Errorf("after a refused write: %+v, %v", got, err)
	}
	if names, _ := rundir.OS.Names(r.Dir); strings.Contains(fmt.Sprint(names), "."+rundir.LiveFile) {
		t.Errorf("temporary files are left: %v", names)
	}
}

// TestFieldsAreDocumented checks that docs/reference/live.md lists each field and no other.
func TestFieldsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/live.md")
	must(t, err)
	documented := map[string]bool{}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for i, word := range strings.Split(cells[1], "`") {
			if i%2 == 1 {
				documented[word] = true
			}
		}
	}
	want := map[string]bool{}
	addFields(want, "", reflect.TypeFor[State]())
	for name := range want {
		if !documented[name] {
			t.Errorf("docs/reference/live.md does not document the field %s", name)
		}
	}
	for name := range documented {
		if !want[name] {
			t.Errorf("docs/reference/live.md documents %s, which is not a field", name)
		}
	}
}

// addFields adds the names of the fields of a struct in the form of the documentation:
// "hosts.name".
func addFields(names map[string]bool, prefix string, typ reflect.Type) {
	for field := range typ.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name = prefix + name; field.Anonymous {
			addFields(names, prefix, field.Type)
			continue
		}
		inner := field.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		if (inner.PkgPath() == typ.PkgPath() || inner == reflect.TypeFor[jobs.NextSlot]()) &&
			inner.Kind() == reflect.Struct {
			addFields(names, name+".", inner)
		} else {
			names[name] = true
		}
	}
}

// TestInvalidStateIsRefused checks that a file that is damaged, of another version, or not a
// regular file is refused with the reason.
func TestInvalidStateIsRefused(t *testing.T) {
	r := newRun(t)
	path := r.Path(rundir.LiveFile)
	put := func(text string, mode os.FileMode) func(*testing.T) {
		return func(t *testing.T) {
			must(t, errors.Join(os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)))
		}
	}
	const good = `{"v":2,"run":"a","epoch":2,"token":"t","durable":{"epoch":1,"bytes":3},"hosts":[]}`
	for _, c := range []struct {
		name string
		put  func(t *testing.T)
		want string
	}{
		{"good", put(good, 0o600), ""},
		{"unknown field", put(`{"v":2,"epoch":1,"new":[{}]}`, 0o600), ""},
		{"empty", put("", 0o600), "end of JSON"},
		{"torn", put(good[:40], 0o600), "end of JSON"},
		{"two", put(good+good, 0o600), "after top-level"},
		{"list", put("[]", 0o600), "array"},
		{"null", put("null", 0o600), "version 0"},
		{"version", put(`{"v":1,"hosts":7}`, 0o600), "version 1"},
		{"type", put(`{"v":2,"epoch":1,"hosts":7}`, 0o600), "hosts"},
		{"deep", put(strings.Repeat("[", 20000), 0o600), "depth"},
		{"epoch", put(`{"v":2}`, 0o600), "inconsistent"},
		{"future", put(`{"v":2,"epoch":1,"durable":{"epoch":2}}`, 0o600), "inconsistent"},
		{"negative", put(`{"v":2,"epoch":1,"durable":{"bytes":-1}}`, 0o600), "inconsistent"},
		{"range", put(`{"v":2,"epoch":1,"ending":"0-3"}`, 0o600), "0-3"},
		{"open to others", put(good, 0o622), "others may write"},
		{"directory", func(*testing.T) { os.Mkdir(path, 0o700) }, "not a file"},
		{"pipe", func(*testing.T) { syscall.Mkfifo(path, 0o600) }, "not a file"},
		{"link", func(*testing.T) { os.Symlink(r.Path(rundir.NonceFile), path) }, "link"},
		{"dangling link", func(*testing.T) { os.Symlink(r.Path("nothing"), path) }, "link"},
		{"large", func(t *testing.T) {
			put("", 0o600)(t)
			os.Truncate(path, MaxBytes+1)
		}, "more than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.put(t)
			defer os.RemoveAll(path)
			s, err := Read(r)
			if c.want == "" && (err != nil || s == nil) || c.want != "" &&
				(err == nil || s != nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("Read = %v, %v; want %q", s, err, c.want)
			}
		})
	}
}

// TestStateOfAnotherUserIsRefused checks that a file that belongs to another user is refused.
func TestStateOfAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	r := newRun(t)
	must(t, errors.Join(Write(r, state(t), nil), os.Chown(r.Path(rundir.LiveFile), 12345, -1)))
	if s, err := Read(r); err == nil || s != nil || !strings.Contains(err.Error(), "12345") {
		t.Errorf("Read = %v, %v; want an error that names the owner", s, err)
	}
}

// TestFailedWriteLeavesTheOldState checks a failure of each operation. A reader finds the old
// content or the new, and the next write succeeds.
func TestFailedWriteLeavesTheOldState(t *testing.T) {
	for n := 1; ; n++ {
		r := newRun(t)
		first := state(t)
		must(t, Write(r, first, nil))
		d := new(disktest.Disk)
		r.Disk = d
		d.FailAt(n, syscall.ENOSPC, n%2 == 0)
		err := Write(r, &State{V: jobs.FormatLive.Version, Epoch: 4}, nil)
		if d.Count() < n {
			break
		}
		r.Disk = rundir.OS
		got, rerr := Read(r)
		want := 3
		if err == nil {
			want = 4
		}
		if rerr != nil || got.Epoch != want {
			t.Errorf("operation %d (%s): Write = %v; then Read = %+v, %v, want epoch %d", n, d.Failed, err, got,
				rerr, want)
		}
		if err := Write(r, &State{V: jobs.FormatLive.Version, Epoch: 4}, nil); err != nil {
			t.Errorf("operation %d (%s): the next write: %v", n, d.Failed, err)
		}
	}
}

// TestReadRetriesStaleHandle checks that a read is repeated after a stale handle, which is the
// error of NFS for a file that was replaced.
func TestReadRetriesStaleHandle(t *testing.T) {
	r := newRun(t)
	must(t, Write(r, state(t), nil))
	for n := 1; n < 6; n++ {
		d := new(disktest.Disk)
		r.Disk = d
		d.FailAt(n, syscall.ESTALE, false)
		if s, err := Read(r); err != nil || s == nil {
			t.Errorf("operation %d (%s): %v", n, d.Failed, err)
		}
	}
}

// TestEncodeBoundsSize checks that a state that is too large is written without progress and
// history.
func TestEncodeBoundsSize(t *testing.T) {
	s := state(t)
	for i := range 5000 {
		s.Hosts = append(s.Hosts, Host{Name: fmt.Sprint("host", i), Note: strings.Repeat("n", 1000)})
	}
	b, err := encode(s)
	if err != nil || len(b) > MaxBytes {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	got, err := decode(b)
	if err != nil || len(got.Hosts) != len(s.Hosts) || got.Progress != nil || got.Hosts[1].Note != "" {
		t.Errorf("%d hosts, %v", len(got.Hosts), err)
	}
	if s.Progress == nil || s.Hosts[1].Note == "" {
		t.Error("encode has changed its argument")
	}
}

// FuzzDecode checks that no content makes decode panic, and that accepted content can be written
// again unchanged.
func FuzzDecode(f *testing.F) {
	whole, err := json.Marshal(state(f))
	must(f, err)
	for _, s := range []string{string(whole), `{"v":2,"epoch":1}`,
		`{"v":2,"epoch":1,"hosts":[null,{"load":[1,2,3,4],"history":"AGT/"}]}`, `{"v":1}`, `null`, `[]`, ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := decode(text)
		if err != nil {
			return
		}
		b, err := encode(s)
		if err != nil {
			if s.At.Year() > 9999 || s.At.Year() < 0 {
				return
			}
			t.Fatal(err)
		}
		again, err := decode(b)
		if err != nil {
			t.Fatalf("%s became %v", text, err)
		}
		if c, _ := encode(again); !bytes.Equal(b, c) {
			t.Fatalf("%s became %s", b, c)
		}
	})
}
