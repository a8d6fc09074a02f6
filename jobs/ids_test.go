package jobs_test

import (
	"encoding/json"
	"testing"

	"dcs-tui/jobs"
)

// TestParseAttemptID checks that an attempt has exactly one name.
func TestParseAttemptID(t *testing.T) {
	for _, s := range []string{"1.1", "17.2", "1000000.37"} {
		t.Run(s, func(t *testing.T) {
			id, err := jobs.ParseAttemptID(s)
			if err != nil || id.String() != s {
				t.Errorf("%q: %v, %v", s, id, err)
			}
		})
	}
	// An attempt has only one name, so that a file has only one name (P2).
	for _, s := range []string{"", ".", "1", "1.", ".1", "0.1", "1.0", "-1.2", "+1.2", "01.2", "1.02", "1.2.3", " 1.2",
		"1.2 ", "1,2", "a.b", "99999999999999999999.1", "1.2\n"} {
		t.Run(s, func(t *testing.T) {
			if id, err := jobs.ParseAttemptID(s); err == nil {
				t.Errorf("%q was read as %v", s, id)
			}
		})
	}
}

// TestPathOfAnAttemptFile checks that the files of 1,000 jobs share a directory.
func TestPathOfAnAttemptFile(t *testing.T) {
	for _, c := range []struct {
		id   jobs.AttemptID
		want string
	}{
		{jobs.AttemptID{Job: 17, N: 2}, "/r/attempts/000/17.2.status"},
		{jobs.AttemptID{Job: 999, N: 1}, "/r/attempts/000/999.1.status"},
		{jobs.AttemptID{Job: 1000, N: 1}, "/r/attempts/001/1000.1.status"},
		{jobs.AttemptID{Job: 1_234_567, N: 10}, "/r/attempts/1234/1234567.10.status"},
	} {
		t.Run(c.want, func(t *testing.T) {
			same(t, "the path", jobs.AttemptFile("/r", c.id, jobs.FileStatus), c.want)
		})
	}
}

// FuzzParseAttemptID checks that an accepted id is read back from its text and its JSON.
func FuzzParseAttemptID(f *testing.F) {
	f.Add("17.2")
	f.Add("01.2")
	f.Fuzz(func(t *testing.T, s string) {
		id, err := jobs.ParseAttemptID(s)
		if err != nil {
			return
		}
		if id.String() != s || id.Job < 1 || id.N < 1 {
			t.Fatalf("%q gave %+v", s, id)
		}
		var back jobs.AttemptID
		b, err := json.Marshal(id)
		if err != nil || json.Unmarshal(b, &back) != nil || back != id {
			t.Fatalf("%v became %v through %s", id, back, b)
		}
	})
}
