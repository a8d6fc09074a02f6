package rundir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
)

// RequestsDir holds requests to the dispatcher, one file each. A rename creates each file. The
// dispatcher of the run, now or after the next resume, carries them out once in the order of their
// names, and then removes them. Only the user can create a request, because the run directory is
// closed to others.
const RequestsDir = "requests"

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
func (r *Run) FileRequest(q *action.Request) (name string, err error) {
	name = NewRequestName(q.At)
	return name, r.FileRequestAs(name, q)
}

// FileRequestAs is FileRequest under a name that NewRequestName has returned. A request
// that may already have reached the dispatcher otherwise is carried out once.
func (r *Run) FileRequestAs(name string, q *action.Request) error {
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
			errors.Join(err, RemoveIfThere(r.Disk, path)))
	}
	return nil
}

// DecodeRequest decodes the output of Encode. The error is a *RefusedError.
func DecodeRequest(name string, text []byte) (*action.Request, error) {
	q, why := action.Decode(text)
	if why != "" {
		return nil, &RefusedError{name, why}
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

// WaitingNames returns the names of the requests that have not been carried out, in order.
func (r *Run) WaitingNames(table *jobs.Table) ([]string, error) {
	names, _, err := r.RequestNames()
	// Of the others, only the file has to be removed.
	return slices.DeleteFunc(names, func(name string) bool { return table.Requests[name] }), err
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
func (r *Run) ReadRequest(name string) (*action.Request, error) {
	text, err := r.readChecked(r.Path(RequestsDir, name+requestSuffix), action.MaxRequest)
	if ignored, ok := errors.AsType[*ignoredError](err); ok {
		return nil, &RefusedError{name, ignored.why}
	}
	if err != nil {
		return nil, err
	}
	return DecodeRequest(name, text)
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

// WaitingRequests returns the requests that wait for the next resume and that it can carry out, in
// their order. A request that cannot be read now is an error.
func (r *Run) WaitingRequests(table *jobs.Table) (list []*action.Request, err error) {
	names, err := r.WaitingNames(table)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		q, err := r.ReadRequest(name)
		var refused *RefusedError
		switch {
		case errors.As(err, &refused), errors.Is(err, fs.ErrNotExist): // it has no effect
		case err != nil:
			return nil, err
		default:
			list = append(list, q)
		}
	}
	target := action.Target{IsFinished: r.hasEnded(table, list)}
	return slices.DeleteFunc(list, func(q *action.Request) bool {
		e := q.EffectOn(target)
		return e == action.IsRefused || e == action.IsFulfilled
	}), nil
}

// hasEnded reports whether nothing can give the run jobs to run any more.
func (r *Run) hasEnded(table *jobs.Table, waiting []*action.Request) bool {
	input, err := r.ReadInput()
	return err == nil && input.State != InputOpen && table.Unfinished() == 0 &&
		!slices.ContainsFunc(waiting, (*action.Request).AddsJobs)
}

// UndispatchedTarget returns the state of a run that nobody dispatches. The table has its stored
// jobs, too.
func (r *Run) UndispatchedTarget(table *jobs.Table) (action.Target, error) {
	waiting, err := r.WaitingRequests(table)
	return action.Target{IsFinished: err == nil && r.hasEnded(table, waiting)}, err
}
