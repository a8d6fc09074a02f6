package rundir

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"dcs-tui/jobs"
)

// RequestsDir holds requests to the dispatcher, one file each. A rename creates each file. The
// dispatcher of the run, now or after the next resume, carries them out once in the order of their
// names, and then removes them. Only the user can create a request, because the run directory is
// closed to others.
const RequestsDir = "requests"

// MaxRequest is the maximum size of a request, in bytes.
const MaxRequest = 16 << 20

// maxText is the maximum length of a text in a request, in bytes.
const maxText = 1000

// The values of Request.Spare: jobs that a request leaves alone, by their state when it is carried
// out.
const (
	SpareSucceeded = "succeeded" // edit and requeue: succeeded jobs are not run again
	SpareStarted   = "started"   // cancel of single jobs: jobs that have started are not ended
)

// Request is a user's request to the dispatcher.
type Request struct {
	V        int         `json:"v"` // 1
	Do       string      `json:"do"`
	Jobs     jobs.Ranges `json:"jobs,omitempty"` // jobs that the run does not have are ignored
	All      bool        `json:"all,omitempty"`  // cancel: every job, instead of Jobs
	Priority int         `json:"priority,omitempty"`
	Why      string      `json:"why,omitempty"` // reason, shown to users
	By       string      `json:"by,omitempty"`  // user and machine, shown to users
	At       time.Time   `json:"at"`            // by the clock of that machine, shown to users

	Spare string       `json:"spare,omitempty"` // cancel, requeue, edit: SpareSucceeded or SpareStarted
	Edit  *jobs.Change `json:"edit,omitempty"`  // edit
	Specs string       `json:"specs,omitempty"` // submit: JobsText

	Host    string `json:"host,omitempty"`    // drain-host, stop-host, use-host, slots, add-host, remove-host
	Options string `json:"options,omitempty"` // add-host: "slots=4 tags=gpu"
	Number  int    `json:"number,omitempty"`  // slots
	// Priority, slots: the value is added to what the jobs or the host have when the request is
	// carried out.
	Relative bool `json:"relative,omitempty"`
	// Drain, stop: epoch of the dispatcher that the request is for; others refuse it.
	Epoch int `json:"epoch,omitempty"`
}

// RefusedError reports that a request will never be carried out.
type RefusedError struct {
	Name string
	Why  string
}

// Error names the request and the reason.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("the request %s is refused: %s", e.Name, e.Why)
}

const (
	requestSuffix = ".json"
	refusedSuffix = ".refused"
	requestLayout = "20060102T150405.000000Z"
)

// NewRequestName returns a unique name for a request: the time in UTC, which orders
// requests, and a random part.
func NewRequestName(at time.Time) string {
	return at.UTC().Format(requestLayout) + "-" + strings.ToLower(rand.Text()[:8])
}

// FileRequest writes a request for the dispatcher, durably, under a new name.
func (r *Run) FileRequest(q *Request) (name string, err error) {
	name = NewRequestName(q.At)
	return name, r.FileRequestAs(name, q)
}

// FileRequestAs is FileRequest under a name that NewRequestName has returned. A request
// that may already have reached the dispatcher otherwise is carried out once.
func (r *Run) FileRequestAs(name string, q *Request) error {
	text, err := q.Encode()
	if err != nil {
		return err
	}
	if err := r.MakeRequestsDir(); err != nil {
		return err
	}
	path := r.Path(RequestsDir, name+requestSuffix)
	if err := Replace(r.Disk, path, append(text, '\n')); err != nil {
		// The file may exist without being durable, so it is removed.
		return fmt.Errorf("the request cannot be written to the run directory: %w",
			errors.Join(err, removeIfThere(r.Disk, path)))
	}
	return nil
}

// Encode returns the JSON of a request, or an error if no dispatcher could carry it out.
func (q *Request) Encode() ([]byte, error) {
	sent := *q
	sent.V = 1
	sent.Why, sent.By = shorten(q.Why), shorten(q.By)
	if why := sent.problem(); why != "" {
		return nil, fmt.Errorf("the request cannot be left: %s", why)
	}
	text, err := json.Marshal(&sent)
	if err != nil {
		return nil, err
	}
	if len(text) >= MaxRequest {
		return nil, errors.New("the request cannot be left: it names too many single jobs; ask for ranges of them, or in parts")
	}
	return text, nil
}

// DecodeRequest decodes the output of Encode. The error is a *RefusedError.
func DecodeRequest(name string, text []byte) (*Request, error) {
	q, why := decodeRequest(text)
	if why != "" {
		return nil, &RefusedError{name, shorten(why)}
	}
	return q, nil
}

// MakeRequestsDir creates the directory if it does not exist. A dispatcher calls it at its start,
// because on NFS a new directory may stay invisible for a long time.
func (r *Run) MakeRequestsDir() error {
	err := r.Disk.Mkdir(r.Path(RequestsDir), 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil {
		err = r.Disk.SyncDir(r.Dir)
	}
	if err != nil {
		return fmt.Errorf("cannot create the directory for requests: %w", err)
	}
	return nil
}

// RequestNames returns the names of pending requests in order. strangers are files that are not
// requests.
func (r *Run) RequestNames() (names, strangers []string, err error) {
	entries, err := r.Disk.Names(r.Path(RequestsDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("cannot list the requests: %w", err)
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e, requestSuffix)
		switch {
		case strings.HasPrefix(e, ".") || strings.HasSuffix(e, refusedSuffix): // being written; set aside
		case ok && IsRequestName(name):
			names = append(names, name)
		default:
			strangers = append(strangers, e)
		}
	}
	slices.Sort(names)
	return names, strangers, nil
}

// NumWaitingRequests returns the number of requests that have not been carried out.
func (r *Run) NumWaitingRequests(table *jobs.Table) (n int, err error) {
	names, _, err := r.RequestNames()
	for _, name := range names {
		if !table.Requests[name] { // otherwise only its file has to be removed
			n++
		}
	}
	return n, err
}

// IsRequestName reports whether a name is one that NewRequestName returns.
func IsRequestName(name string) bool {
	stamp, random, ok := strings.Cut(name, "-")
	if !ok || len(random) != 8 || strings.Trim(random, "abcdefghijklmnopqrstuvwxyz234567") != "" {
		return false
	}
	_, err := time.Parse(requestLayout, stamp)
	return err == nil
}

// ReadRequest reads one of RequestNames. A *RefusedError is final. fs.ErrNotExist means that the
// request was withdrawn. Other errors may be temporary.
func (r *Run) ReadRequest(name string) (*Request, error) {
	text, err := r.readChecked(r.Path(RequestsDir, name+requestSuffix), MaxRequest)
	var ignored *ignoredError
	switch {
	case errors.As(err, &ignored):
		return nil, &RefusedError{name, ignored.why}
	case err != nil:
		return nil, err
	}
	return DecodeRequest(name, text)
}

// decodeRequest decodes a request. why describes the problem, or is "".
func decodeRequest(text []byte) (q *Request, why string) {
	if len(text) > MaxRequest {
		return nil, "its file is too long"
	}
	var version struct {
		V int `json:"v"`
	}
	if err := json.Unmarshal(text, &version); err != nil {
		return nil, "it is not JSON: " + err.Error()
	}
	if version.V != 1 {
		return nil, fmt.Sprintf("it has version %d and this dcs-tui knows version 1: use the dcs-tui that left it",
			version.V)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	q = new(Request)
	if err := dec.Decode(q); err != nil {
		return nil, err.Error()
	}
	return q, q.problem()
}

// RemoveRequest removes a request that was carried out.
func (r *Run) RemoveRequest(name string) error {
	file := name + requestSuffix
	if err := r.Disk.Remove(r.Path(RequestsDir, file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the request %s cannot be removed: %w", file, err)
	}
	return nil
}

// SetRequestAside renames a refused request, which keeps it for the user who made it.
func (r *Run) SetRequestAside(name string) error { return r.SetStrangerAside(name + requestSuffix) }

// SetStrangerAside is SetRequestAside for a file that is not a request.
func (r *Run) SetStrangerAside(file string) error {
	if err := r.Disk.Rename(r.Path(RequestsDir, file), r.Path(RequestsDir, file+refusedSuffix)); err != nil &&
		!errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the request %s cannot be set aside: %w", file, err)
	}
	return nil
}

// MaxSubmit is the maximum length of the JobsText of a request, in bytes. Quoted in the request,
// it is still shorter than MaxRequest.
const MaxSubmit = 6 << 20

// JobsText returns the jobs of a submit request: a line each, as in jobs.jsonl, without
// checksum. They are numbered from 1, and depend only on each other.
func JobsText(specs []*jobs.Spec) string {
	var b []byte
	for _, s := range specs {
		b = append(jobs.AppendSpecJSON(b, s), '\n')
	}
	return string(b)
}

// NewJobs returns the jobs to submit.
func (q *Request) NewJobs() ([]*jobs.Spec, error) {
	var reader jobs.SpecReader
	var specs []*jobs.Spec
	for line := range strings.Lines(q.Specs) {
		s, err := reader.Read([]byte(strings.TrimSuffix(line, "\n")))
		n := jobs.ID(len(specs) + 1)
		switch {
		case err != nil:
			return nil, fmt.Errorf("its job %d cannot be read: %w", n, err)
		case s.ID != n:
			return nil, fmt.Errorf("its job %d has the number %d", n, s.ID)
		case strings.TrimSpace(s.Command) == "" || strings.IndexByte(s.Command, 0) >= 0:
			return nil, fmt.Errorf("its job %d has no command that a shell can be given", n)
		case s.Damage != "":
			return nil, fmt.Errorf("its job %d is damaged", n)
		}
		for _, dep := range s.After {
			if dep < 1 || dep >= n {
				return nil, fmt.Errorf("its job %d comes after job %d, which is not before it in the request", n, dep)
			}
		}
		specs = append(specs, s)
	}
	return specs, nil
}

// checkSubmit returns why no dispatcher could submit the jobs.
func checkSubmit(q *Request) string {
	specs, err := q.NewJobs()
	switch {
	case err != nil:
		return shorten(err.Error())
	case len(specs) == 0:
		return "it has no jobs"
	}
	return ""
}
