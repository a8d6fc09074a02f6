package rundir_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/disktest"
)

var (
	must   = polltest.Must
	newRun = disktest.NewRun
)

func ranges(t testing.TB, s string) jobs.Ranges {
	t.Helper()
	l, err := jobs.ParseRanges(s)
	must(t, err)
	return l
}

// TestRequestsAreReadBackInOrder checks that requests are read back unchanged, in the order of
// their times, until they are removed (K9).
func TestRequestsAreReadBackInOrder(t *testing.T) {
	r := newRun(t)
	if names, _, err := r.RequestNames(); err != nil || len(names) > 0 {
		t.Fatalf("%v, %v in a new run", names, err)
	}
	at := time.Date(2026, 3, 14, 15, 2, 0, 123456000, time.UTC)
	hostile := []*jobs.Spec{
		{ID: 1, Line: 3, Command: "echo '<&>' \xff\u2028 \"x\"\nmore", Name: "ü",
			Labels: jobs.NewLabels("", []jobs.Param{{Name: "C", Value: "1"}}), Options: &jobs.Options{Queue: "q",
				Share: 2}},
		{ID: 2, Command: "true", Labels: jobs.NewLabels("", nil, jobstest.After(1)...),
			Options: &jobs.Options{Env: []jobs.EnvVar{{Name: "A", Value: "\x01"}}}},
	}
	left := []*action.Request{
		{Do: action.Cancel, All: true, Why: "enough", By: "me on here", At: at.Add(time.Second)},
		{Do: action.Requeue, Jobs: ranges(t, "3-17,20"), At: at},
		{Do: action.Priority, Jobs: ranges(t, "1"), Priority: -5, At: at.Add(2 * time.Second),
			By: strings.Repeat("ä", 999)},
		{Do: action.Edit, Jobs: ranges(t, "1-3"),
			Edit: &jobs.Change{Timeout: new(2 * time.Hour),
				Command: new("echo <&> ü")}, Spare: action.SpareSucceeded, At: at.Add(3 * time.Second)},
		{Do: action.Submit, Specs: action.SpecsText(hostile), At: at.Add(4 * time.Second)},
	}
	var want []string
	for _, q := range left {
		name, err := r.FileRequest(q)
		must(t, err)
		want = append(want, name)
	}
	want[0], want[1] = want[1], want[0]
	names, strangers, err := r.RequestNames()
	if err != nil || !slices.Equal(names, want) || len(strangers) > 0 {
		t.Fatalf("%v, %v, %v, want %v", names, strangers, err, want)
	}
	for i, q := range []*action.Request{left[1], left[0], left[2], left[3], left[4]} {
		got, err := r.ReadRequest(names[i])
		must(t, err)
		if got.V != 1 || got.Do != q.Do || !reflect.DeepEqual(got.Jobs, q.Jobs) || got.All != q.All ||
			!reflect.DeepEqual(got.Edit, q.Edit) || got.Priority != q.Priority || got.Spare != q.Spare ||
			got.Why != q.Why || !got.At.Equal(q.At) || !strings.HasPrefix(q.By, strings.TrimSuffix(got.By, "…")) {
			t.Errorf("%+v, want %+v", got, q)
		}
		if q.Do == action.Submit {
			if specs, err := got.NewJobs(); err != nil || !reflect.DeepEqual(specs, hostile) {
				t.Errorf("the jobs came back as %+v, %v", specs, err)
			}
		}
	}
	if err := errors.Join(r.RemoveRequest(names[0]), r.RemoveRequest(names[0]),
		r.SetRequestAside(names[1])); err != nil {
		t.Error(err)
	}
	if names, strangers, err := r.RequestNames(); err != nil || len(names) != 3 || len(strangers) != 0 {
		t.Errorf("RequestNames: got %v, strangers %v, %v; want 3 names", names, strangers, err)
	}
	if _, err := r.ReadRequest(names[0]); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a removed one: %v", err)
	}
}

// TestImpossibleRequestIsNotWritten checks that a request that no dispatcher could carry out is not
// written.
func TestImpossibleRequestIsNotWritten(t *testing.T) {
	r := newRun(t)
	const one = `{"id":1,"command":"true"}` + "\n"
	for _, q := range []*action.Request{
		{Do: action.Cancel}, {Do: "drain", All: true}, {Do: action.Requeue, All: true},
		{Do: action.Cancel, All: true, Jobs: ranges(t, "1")}, {Do: action.Priority, Jobs: ranges(t, "1"),
			Priority: 1 << 40},
		{Do: action.Edit, Jobs: ranges(t, "1")}, {Do: action.Edit, Jobs: ranges(t, "1"), Edit: &jobs.Change{}},
		{Do: action.Edit, Jobs: ranges(t, "1"), Edit: &jobs.Change{Tries: new(-1)}},
		{Do: action.Edit, Jobs: ranges(t, "1"), Edit: &jobs.Change{Command: new("\xff")}},
		{Do: action.Edit, Edit: &jobs.Change{Tries: new(1)}}, {Do: action.Edit, All: true,
			Edit: &jobs.Change{Tries: new(1)}},
		{Do: action.Cancel, Jobs: ranges(t, "1"), Edit: &jobs.Change{Tries: new(1)}},
		{Do: action.Cancel, Jobs: ranges(t, "1"), Spare: action.SpareSucceeded}, {Do: action.Cancel, All: true,
			Spare: action.SpareStarted},
		{Do: action.Requeue, Jobs: ranges(t, "1"), Spare: action.SpareStarted}, {Do: action.Requeue,
			Jobs: ranges(t, "1"), Spare: "9"},
		{Do: action.Submit, Specs: one, Spare: action.SpareSucceeded}, {Do: action.Priority, Jobs: ranges(t, "1"),
			Spare: action.SpareStarted},
		{Do: action.Submit}, {Do: action.Submit, Jobs: ranges(t, "1"), Specs: one}, {Do: action.Submit,
			Specs: "{}\n"},
		{Do: action.Submit, Specs: one + one}, {Do: action.Submit, Specs: `{"id":1,"command":" "}` +
			"\n"}, {Do: action.Cancel, All: true, Specs: one},
		{Do: action.Submit, Specs: one + `{"id":2,"command":"true","options":{"after":[2]}}` + "\n"},
	} {
		if _, err := r.FileRequest(q); err == nil {
			t.Errorf("%+v was left", q)
		}
	}
}

// TestEachKindOfRequestHasItsFields checks that every kind of request describes what is requested,
// and accepts its own fields and no others.
func TestEachKindOfRequestHasItsFields(t *testing.T) {
	for _, c := range []struct {
		q     action.Request
		text  string
		wrong string // must be in the error; "": the request is accepted
	}{
		{action.Request{Do: action.Pause}, "pause launching", ""},
		{action.Request{Do: action.Pause, Host: "a"}, "pause launching", `"pause" does not accept host`},
		{action.Request{Do: action.Continue, Epoch: 2}, "continue launching", "does not accept epoch"},
		{action.Request{Do: action.DrainHost, Host: "a"}, "drain host a", ""},
		{action.Request{Do: action.DrainHost}, "drain host ", "needs host"},
		{action.Request{Do: action.StopHost, Host: "a", Jobs: ranges(t, "1")}, "stop host a", "does not accept jobs"},
		{action.Request{Do: action.UseHost, Host: "a"}, "use host a again", ""},
		{action.Request{Do: action.Slots, Host: "a", Number: 3}, "give host a 3 slots", ""},
		{action.Request{Do: action.Slots, Host: "a"}, "give host a the slots of the inventory again", ""},
		{action.Request{Do: action.Slots, Host: "a", Number: -1}, "give host a -1 slots", "at least 1"},
		{action.Request{Do: action.DrainRun, Epoch: 3}, "drain the run", ""},
		{action.Request{Do: action.DrainRun}, "drain the run", "needs epoch"},
		{action.Request{Do: action.StopRun, Epoch: 3, Why: "enough", By: "ada"},
			"ada asked: stop the dispatcher (enough)", ""},
		{action.Request{Do: action.StopRun, Epoch: -3}, "stop the dispatcher", "epoch"},
		{action.Request{Do: action.Cancel}, "cancel jobs ", "needs jobs or all"},
		{action.Request{Do: action.Cancel, All: true}, "cancel all jobs", ""},
	} {
		if got := c.q.Text(); got != c.text {
			t.Errorf("%+v: %q, want %q", c.q, got, c.text)
		}
		text, err := c.q.Encode()
		if (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: %v, want %q", c.text, err, c.wrong)
		}
		if err != nil {
			continue
		}
		q, err := rundir.DecodeRequest("x", text)
		if err != nil || q.Text() != c.text {
			t.Errorf("%s: read again: %+v, %v", text, q, err)
		}
	}
}

// TestRequestsOfAnotherDirectoryAreIgnored checks that a link in place of the directory for requests is
// reported, so that nothing in the directory that it names is taken, renamed, or removed.
func TestRequestsOfAnotherDirectoryAreIgnored(t *testing.T) {
	r, other := newRun(t), t.TempDir()
	must(t, errors.Join(os.WriteFile(other+"/notes.txt", nil, 0o600), os.Symlink(other, r.Path(rundir.RequestsDir))))
	names, strangers, err := r.RequestNames()
	if len(names)+len(strangers) > 0 || err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("got %q, %q, %v", names, strangers, err)
	}
}

// TestInvalidRequestIsRefused checks that a file that is not a valid request is refused by name
// with the reason and never carried out: an unknown version, another program's file, a link, or a
// pipe.
func TestInvalidRequestIsRefused(t *testing.T) {
	r := newRun(t)
	must(t, r.MakeRequestsDir())
	const name = "20260314T150200.000000Z-abcdefgh"
	path := r.Path(rundir.RequestsDir, name+".json")
	put := func(text string, mode os.FileMode) func(*testing.T) {
		return func(t *testing.T) {
			must(t, errors.Join(os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)))
		}
	}
	const good = `{"v":1,"do":"cancel","jobs":"1","at":"2026-03-14T15:02:00Z"}`
	for _, c := range []struct {
		name string
		put  func(t *testing.T)
		want string
	}{
		{"good", put(good, 0o600), ""},
		{"version", put(`{"v":2,"do":"cancel","tags":["a"]}`, 0o600), "version 2"},
		{"empty", put("", 0o600), "not JSON"},
		{"half", put(good[:30], 0o600), "not JSON"},
		{"two", put(good+good, 0o600), "not JSON"},
		{"field", put(`{"v":1,"do":"cancel","jobs":"1","force":true}`, 0o600), "force"},
		{"long field", put(`{"v":1,"do":"cancel","jobs":"1","`+strings.Repeat("x", 1<<20)+`":true}`, 0o600), "xxx"},
		{"verb", put(`{"v":1,"do":"rm","jobs":"1"}`, 0o600), `"rm"`},
		{"jobs", put(`{"v":1,"do":"cancel","jobs":"0-3"}`, 0o600), "0-3"},
		{"no jobs", put(`{"v":1,"do":"requeue"}`, 0o600), "needs jobs"},
		{"huge number", put(`{"v":1,"do":"cancel","jobs":"1-99999999999"}`, 0o600), "99999999999"},
		{"open to others", put(good, 0o622), "others may write"},
		{"directory", func(*testing.T) { os.Mkdir(path, 0o700) }, "not a file"},
		{"link", func(*testing.T) { os.Symlink(r.Path(rundir.NonceFile), path) }, "link"},
		{"large", func(t *testing.T) {
			put("", 0o600)(t)
			os.Truncate(path, action.MaxRequest+1)
		}, "bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.put(t)
			q, err := r.ReadRequest(name)
			var refused *rundir.RefusedError
			switch {
			case c.want == "" && (err != nil || q == nil):
				t.Errorf("%s: %v", c.name, err)
			case len(fmt.Sprint(err)) > 2000: // the error is written to the journal
				t.Errorf("%s: what is wrong is told in %d bytes", c.name, len(err.Error()))
			case c.want != "" && (!errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) ||
				!strings.Contains(err.Error(), name)):
				t.Errorf("%s: %v, want %q", c.name, err, c.want)
			}
			os.RemoveAll(path)
		})
	}
	// Files that are not requests are listed by name and can be set aside.
	for _, other := range []string{"note.txt", "20260314T150200.000000Z-ABCDEFGH.json", "x.json",
		"20260314T150200.000000Z-abcdefgh"} {
		t.Run(other, func(t *testing.T) { // the last has the name of a request but is not a regular file
			must(t, os.WriteFile(r.Path(rundir.RequestsDir, other), nil, 0o600))
			names, strangers, err := r.RequestNames()
			if err != nil || len(names) > 0 || !slices.Equal(strangers, []string{other}) {
				t.Errorf("RequestNames: got %v, strangers %v, %v; want one stranger", names, strangers, err)
			}
			if err := r.SetStrangerAside(other); err != nil {
				t.Error(err)
			}
		})
	}
	if _, strangers, _ := r.RequestNames(); len(strangers) > 0 {
		t.Errorf("%v is still there", strangers)
	}
}

// TestRequestIsWrittenCompletelyOrNotAtAll checks one failure of each operation. A request is
// written completely or not at all. If the caller got an error, the request is never carried out
// later.
func TestRequestIsWrittenCompletelyOrNotAtAll(t *testing.T) {
	for n := 1; ; n++ {
		cause := diskErrors[n%len(diskErrors)]
		r := newRun(t)
		d := new(disktest.Disk)
		r.Disk = d
		d.FailAt(n, cause, n%2 == 0)
		_, err := r.FileRequest(&action.Request{Do: action.Cancel, All: true, At: time.Now()})
		at := fmt.Sprintf("operation %d (%s) failed with %v", n, d.Failed, cause)
		if d.Count() < n {
			break // there is no n-th operation
		}
		r.Disk = rundir.OS
		names, strangers, lerr := r.RequestNames()
		if lerr != nil || len(strangers) > 0 || (len(names) > 0) != (err == nil) {
			t.Errorf("%s: %v; there are %v, %v (%v)", at, err, names, strangers, lerr)
		}
		if _, err := r.FileRequest(&action.Request{Do: action.Cancel, All: true, At: time.Now()}); err != nil {
			t.Errorf("%s: the next one: %v", at, err)
		}
	}
}

// TestRangesAreParsed checks that lists of job ids are parsed, sorted, and joined.
func TestRangesAreParsed(t *testing.T) {
	for text, want := range map[string]string{
		"3": "3", "3-17": "3-17", "9,3-5": "3-5,9", "1,2,3,5": "1-3,5", "4-9,1-6,20, 30": "1-9,20,30",
		"": "", "0": "", "5-3": "", "a": "", "1,,2": "", "-3": "", "+3": "", "1-": "", "2147483648": "", "1 2": "",
	} {
		t.Run(text, func(t *testing.T) {
			l, err := jobs.ParseRanges(text)
			if (err != nil) != (want == "") || err == nil && l.String() != want {
				t.Errorf("%q: %v, %v, want %q", text, l, err, want)
			}
		})
	}
	l := ranges(t, "2-4,7")
	if l.Count() != 4 || l.Last() != 7 || !slices.Equal(l.IDs(3), []jobs.ID{2, 3}) ||
		!slices.Equal(l.IDs(100), []jobs.ID{2, 3, 4, 7}) {
		t.Errorf("got %d jobs, the last one %d, and %v; want 4, 7, [2 3 4 7]", l.Count(), l.Last(), l.IDs(100))
	}
	for id := jobs.ID(0); id < 10; id++ {
		if l.Has(id) != slices.Contains(l.IDs(100), id) {
			t.Errorf("Has(%d) is %v", id, l.Has(id))
		}
	}
}

// FuzzRanges checks that ranges have only one written form, and that their members agree with it.
func FuzzRanges(f *testing.F) {
	for _, s := range []string{"1", "3-17,20", "9,3-5", "1-2147483647", "0", "-", "1,1,1", " 2 "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		l, err := jobs.ParseRanges(s)
		if err != nil {
			return
		}
		again, err := jobs.ParseRanges(l.String())
		if err != nil || !reflect.DeepEqual(again, l) {
			t.Fatalf("%q: %v became %v, %v", s, l, again, err)
		}
		ids := l.IDs(1000)
		if l.Last() <= 1000 && (len(ids) != l.Count() || !reflect.DeepEqual(jobs.RangesOf(ids), l)) {
			t.Fatalf("%q: %v has %d jobs, not %d", s, l, len(ids), l.Count())
		}
	})
}

// FuzzRequest checks that no file makes ReadRequest panic, and that an accepted request can be
// written again unchanged.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{`{"v":1,"do":"cancel","jobs":"1-3","at":"2026-03-14T15:02:00Z"}`,
		`{"v":1,"do":"cancel","all":true}`,
		`{"v":1,"do":"priority","jobs":"7","priority":-1}`,
		`{"v":1,"do":"edit","jobs":"7","edit":{"timeout_ns":5,"command":"a","tags":["b"]}}`,
		`{"v":1,"do":"submit","specs":"{\"id\":1,\"command\":\"true\",\"options\":{\"after\":[1]}}\n"}`,
		`{"v":1,"do":"submit","specs":"{\"id\":1,\"command\":\"true\"}\n` +
			`{\"id\":2,\"command\":\"x\",\"options\":{\"after\":[1],\"share\":2}}\n"}`,
		`{"v":2}`,
		`{}`,
		`[]`,
		`{"v":1,"do":"requeue","jobs":{}}`} {
		f.Add([]byte(s))
	}
	r := newRun(f)
	must(f, r.MakeRequestsDir())
	const name = "20260314T150200.000000Z-abcdefgh"
	f.Fuzz(func(t *testing.T, text []byte) {
		must(t, os.WriteFile(r.Path(rundir.RequestsDir, name+".json"), text, 0o600))
		q, err := r.ReadRequest(name)
		if err != nil {
			return
		}
		_ = q.Text()
		if specs, err := q.NewJobs(); err != nil || (q.Do == action.Submit) != (len(specs) > 0) {
			t.Fatalf("%d jobs, %v", len(specs), err)
		}
		b, err := json.Marshal(q)
		must(t, err)
		os.WriteFile(r.Path(rundir.RequestsDir, name+".json"), b, 0o600)
		if again, err := r.ReadRequest(name); err != nil || !reflect.DeepEqual(again.Jobs, q.Jobs) ||
			again.Do != q.Do || again.All != q.All || !reflect.DeepEqual(again.Edit, q.Edit) {
			t.Fatalf("%+v became %+v, %v", q, again, err)
		}
	})
}
