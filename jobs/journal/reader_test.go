package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"dcs-tui/jobs"
)

// all reads what has come since, as "epoch kind".
func (d *Reader) all(t *testing.T) (recs []jobs.Record, words string) {
	t.Helper()
	if err := d.Read(func(epoch int, r *jobs.Record) error {
		recs = append(recs, *r)
		words += fmt.Sprintf("%d:%s:%s ", epoch, r.Kind, r.Reason)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return recs, words
}

// The reader gives every record of a run, whole and in order, and later what has come
// since; half a line only when it is whole (E8).
func TestReader(t *testing.T) {
	r, _, recs, content := written(t, 1, 200, 4000)
	got, _ := NewReader(r).all(t)
	if !reflect.DeepEqual(got[1:], recs) || got[0].Kind != jobs.KindEpoch {
		t.Fatalf("%d records, want %d and the epoch", len(got), len(recs))
	}
	d, seen := NewReader(r), 0
	for _, cut := range []int{0, 5, len(content) / 3, len(content)/3 + 40, len(content) - 1, len(content)} {
		put(t, r, 1, content[:cut])
		got, _ := d.all(t)
		if seen += len(got); seen != strings.Count(string(content[:cut]), "\n") {
			t.Fatalf("%d records in %d bytes", seen, cut)
		}
	}
	if d.Report.Records != seen || d.Report.Damaged {
		t.Errorf("%+v", d.Report)
	}
	if err := NewReader(r).Read(func(int, *jobs.Record) error { return errEnough }); !errors.Is(err, errEnough) {
		t.Errorf("fn's error became %v", err)
	}
}

func event(text string) jobs.Record { return jobs.Record{Kind: jobs.KindEvent, Reason: text} }

// What an old dispatcher writes after the run was taken over is not part of the run
// and not shown; that there is such is told. Skip leaves out what was there before.
func TestReaderTakeover(t *testing.T) {
	r := newRun(t)
	first, _, _ := take1(t, r, TakeOptions{})
	record(t, first, event("a"))
	d, late := NewReader(r), NewReader(r)
	if _, words := d.all(t); words != "1:epoch: 1:event:a " {
		t.Fatal(words)
	}
	if err := late.Skip(); err != nil {
		t.Fatal(err)
	}
	record(t, first, event("b"))
	second, _, _ := take1(t, r, force)
	tooLate(t, first, event("too late"))
	record(t, second, event("c"))
	for _, d := range []*Reader{d, late} {
		if _, words := d.all(t); words != "1:event:b 2:epoch: 2:event:c " {
			t.Error(words)
		}
		if d.Report.Ignored == 0 || d.Report.Damaged {
			t.Errorf("%+v", d.Report)
		}
	}
	crash(t, first)
	crash(t, second)
}

// What ReplayEvents shows is what the reader gives, a damaged newline costs neither a word.
func TestReplayEvents(t *testing.T) {
	r := newRun(t)
	j, _, _ := take1(t, r, TakeOptions{})
	record(t, j, event("a"), jobs.Record{Kind: jobs.KindAcked}, event("b"), event("c"))
	crash(t, j)
	b, err := os.ReadFile(fileOf(1).path(r))
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(b), "\"b\"}\n") + len("\"b\"}")
	b[at] = '*'
	put(t, r, 1, b)
	var shown, read string
	if _, _, err := ReplayEvents(r, func(r *jobs.Record) { shown += string(r.Kind) + r.Reason + " " }); err != nil {
		t.Fatal(err)
	}
	if err := NewReader(r).Read(func(_ int, r *jobs.Record) error {
		if r.Kind != jobs.KindAcked {
			read += string(r.Kind) + r.Reason + " "
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if shown != "epoch eventa eventb eventc " || read != shown {
		t.Errorf("shown %q, read %q", shown, read)
	}
}

// E8: who replays a run can see all that happened, as the reader gives it, with the host of
// each attempt: the list of jobs has no other way to it when nobody dispatches.
func TestReplayShowsEveryRecord(t *testing.T) {
	r, _, recs, _ := written(t, 7, 50, 1000)
	n, hosts := 0, map[jobs.AttemptID]string{}
	if _, _, err := ReplayEvents(r, func(r *jobs.Record) {
		if r.Kind == jobs.KindEpoch {
			return
		}
		for recs[n].Kind == jobs.KindAcked {
			n++
		}
		want := recs[n]
		if n++; want.N > 0 && want.Kind != jobs.KindRequest {
			if want.Kind == jobs.KindLaunching {
				hosts[want.Attempt()] = want.Host
			}
			want.Host = hosts[want.Attempt()]
		}
		if !reflect.DeepEqual(*r, want) {
			t.Fatalf("%+v, want %+v", *r, want)
		}
	}); err != nil {
		t.Fatal(err)
	}
	for n < len(recs) && recs[n].Kind == jobs.KindAcked {
		n++
	}
	if n != len(recs) || len(hosts) == 0 {
		t.Errorf("%d of %d records, %d attempts", n, len(recs), len(hosts))
	}
}

// A damaged line is named and costs only itself.
func TestReaderDamage(t *testing.T) {
	r, _, recs, content := written(t, 2, 20, 100)
	lines := strings.SplitAfter(string(content), "\n")
	lines[10] = strings.Replace(lines[10], "k", "K", 1)
	put(t, r, 1, []byte(strings.Join(lines, "")))
	d := NewReader(r)
	got, _ := d.all(t)
	if len(got) != len(recs) || !d.Report.Damaged || len(d.Report.Warnings) != 1 ||
		!strings.Contains(d.Report.Warnings[0], "journal/000001.jsonl:11: the line is damaged") {
		t.Errorf("%d records of %d, %+v", len(got), len(recs)+1, d.Report)
	}
	if err := os.RemoveAll(r.Path("journal")); err != nil {
		t.Fatal(err)
	}
	if err := d.Read(func(int, *jobs.Record) error { return nil }); err == nil {
		t.Error("a journal that is gone is no error")
	}
}

// Over NFS a page that is being written may show before an earlier one: who comes again
// waits for it, for a while, and then has every record once (E8).
func TestReaderPatience(t *testing.T) {
	r, _, recs, content := written(t, 1, 50, 4000)
	hole := bytes.Clone(content)
	clear(hole[len(hole)/3 : len(hole)/2])
	put(t, r, 1, hole)
	d := NewReader(r)
	d.Patience = 3
	got, _ := d.all(t)
	if again, _ := d.all(t); len(again) > 0 || len(got) == 0 || d.Report.Damaged {
		t.Fatalf("%d records, then %d, %+v", len(got), len(again), d.Report)
	}
	put(t, r, 1, content)
	rest, _ := d.all(t)
	if all := append(got, rest...); !reflect.DeepEqual(all[1:], recs) || d.Report.Damaged {
		t.Errorf("%d records, want %d and the epoch: %+v", len(all), len(recs), d.Report)
	}
	put(t, r, 1, hole)
	d = NewReader(r)
	d.Patience = 3
	seen := 0
	for range d.Patience {
		got, _ := d.all(t)
		seen += len(got)
	}
	rest, _ = d.all(t)
	if whole, _ := NewReader(r).all(t); len(rest) == 0 || seen+len(rest) != len(whole) || !d.Report.Damaged {
		t.Errorf("%d records, then %d, of %d: %+v", seen, len(rest), len(whole), d.Report)
	}
}
