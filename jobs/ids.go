package jobs

import (
	"fmt"
	"strconv"
	"strings"
)

// ID is a job's number within its run: 1, 2, 3 … in file order.
type ID int

// AttemptID names one execution of a job: Job 17, N 2 is written "17.2".
// N counts every attempt the job ever had, across all its rounds, from 1.
type AttemptID struct {
	Job ID
	N   int
}

// String returns the form used in file names, the journal and messages: "17.2".
func (a AttemptID) String() string {
	return string(a.Append(make([]byte, 0, 24)))
}

// Append adds the text form to b and returns it.
func (a AttemptID) Append(b []byte) []byte {
	b = strconv.AppendInt(b, int64(a.Job), 10)
	b = append(b, '.')
	return strconv.AppendInt(b, int64(a.N), 10)
}

// MarshalText writes "17.2".
func (a AttemptID) MarshalText() ([]byte, error) { return a.Append(nil), nil }

// UnmarshalText reads "17.2".
func (a *AttemptID) UnmarshalText(b []byte) error {
	id, err := ParseAttemptID(string(b))
	if err == nil {
		*a = id
	}
	return err
}

// ParseAttemptID reads "17.2". Both numbers are positive and written without
// leading zeros, so that one attempt has one name.
func ParseAttemptID(s string) (AttemptID, error) {
	job, n, ok := strings.Cut(s, ".")
	j, err1 := strconv.Atoi(job)
	k, err2 := strconv.Atoi(n)
	id := AttemptID{ID(j), k}
	if !ok || err1 != nil || err2 != nil || j < 1 || k < 1 || id.String() != s {
		return AttemptID{}, fmt.Errorf("%q is not an attempt id such as 17.2", s)
	}
	return id, nil
}
