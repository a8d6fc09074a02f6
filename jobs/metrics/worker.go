package metrics

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
)

// clocksDiffer is the maximum difference between the clocks of a host and a file server.
const clocksDiffer = 2 * time.Minute

// worker reads the outputs of some jobs of a list.
type worker struct {
	*Reader
	ctx      context.Context
	names    *dirListings
	buf      []byte
	fresh    map[jobs.AttemptID][]string
	problems problems
}

// readJob returns the metrics of one job, or nil if there is nothing to read.
func (w *worker) readJob(res *results.Result, cwd string) []string {
	if res.Stdout == "" || !res.State.Terminal() {
		return nil
	}
	if have, ok := w.known[res.Attempt]; ok {
		return have
	}
	values := make([]string, len(w.columns))
	whole := true // everything that exists was read
	for _, file := range w.files {
		if file == "" {
			whole = w.searchStdout(res, values) && whole
		} else {
			whole = w.searchWritten(file, res, cwd, values) && whole
		}
	}
	if whole && w.cache == nil {
		w.fresh[res.Attempt] = values
	}
	return values
}

// searchStdout searches the standard output.
func (w *worker) searchStdout(res *results.Result, values []string) bool {
	if w.isRemote(res) {
		return w.searchFetched(res, values)
	}
	if w.cache.find(res.Attempt, w.columns, values) {
		return true
	}
	if shown, err := w.names.isListed(res.Stdout); err == nil && !shown && w.kept.find(res.Attempt, w.columns, values) {
		return true // the host's directory of outputs is not known
	}
	return w.searchLocal(res, res.Stdout, values, true)
}

// searchLocal searches a standard output on this file system. It reads the end of the file first,
// and the rest only if a metric is missing. If complete is set, the result is stored.
func (w *worker) searchLocal(res *results.Result, path string, values []string, complete bool) bool {
	f, ok := w.open(path, path, res)
	if !ok {
		return false
	}
	defer f.Close() // opened only for reading
	for limit := int64(firstRead); ; limit = MaxRead {
		data, err := f.readEnd(&w.buf, limit)
		if err != nil {
			w.problems.add(unreadable, res, err.Error())
			return false
		}
		whole := int64(len(data)) == f.size
		found := w.search(data, whole, values, "")
		if !found && !whole && limit == MaxRead {
			w.problems.add(outputCutOff, res, "")
		}
		if w.cache != nil && complete && (found || whole) && isSettled(res, f.written) {
			w.cache.add(res.Attempt, w.columns, values, true)
		}
		if found || whole || limit == MaxRead {
			return complete
		}
	}
}

func (w *worker) searchFetched(res *results.Result, values []string) bool {
	if w.kept.find(res.Attempt, w.columns, values) {
		return true
	}
	if w.Fetch == nil {
		fetched := jobs.AttemptFile(w.runDir, res.Attempt, jobs.FileOut)
		if shown, err := w.names.isListed(fetched); err == nil && shown {
			// The status file is not here, so the copy may be incomplete.
			return w.searchLocal(res, fetched, values, false)
		}
		w.problems.addElsewhere(outputOnHostOnly, res, w.runDir)
		return false
	}
	data, size, err := w.Fetch(w.ctx, res, MaxRead)
	if err != nil {
		w.problems.add(unreadable, res, err.Error())
		return false
	}
	whole := int64(len(data)) >= size
	if !w.search(data, whole, values, "") && !whole {
		w.problems.add(outputCutOff, res, "")
	}
	w.kept.add(res.Attempt, w.columns, values, whole)
	return true
}

// search finds the missing metrics that are in file. It reports whether all metrics have been
// found.
func (w *worker) search(data []byte, whole bool, values []string, file string) bool {
	text := NewText(data, whole)
	all := true
	for i, c := range w.columns {
		if c.File == file && values[i] == "" {
			values[i] = c.Find(text)
			all = all && values[i] != ""
		}
	}
	return all
}

// searchWritten searches a file that the job wrote. Of a job whose host does not share its files,
// only files that the job has returned are here, at their places below the run's directory.
func (w *worker) searchWritten(file string, res *results.Result, cwd string, values []string) bool {
	path := nameFor(file, res.Attempt, w.runDir, res.Params)
	isFar, isBelow := res.Apart || w.isRemote(res), filepath.IsLocal(path)
	for _, base := range []string{cwd, w.cwd} {
		if !filepath.IsAbs(path) {
			path = filepath.Join(base, path)
		}
	}
	path = filepath.Clean(path)
	if isFar && !(isBelow && w.mayHaveReturned(res, path)) {
		w.problems.addElsewhere(filesOnHostOnly, res, w.runDir)
		return false
	}
	if !strings.ContainsAny(file, "{[") {
		w.problems.addSharedFile(res, path)
	}
	target, err := filepath.EvalSymlinks(path) // a job may write a link to its newest file
	if err != nil {
		target = path // opening it shows the error
	}
	f, ok := w.open(path, target, res)
	if !ok {
		return false
	}
	defer f.Close() // opened only for reading
	start := res.Started()
	isOld := start != 0 && !f.written.IsZero() && start.Time().Sub(f.written) > clocksDiffer
	if isFar && isOld { // not the file that the job wrote
		w.problems.addElsewhere(filesOnHostOnly, res, w.runDir)
		return false
	}
	data, err := f.readEnd(&w.buf, MaxRead)
	if err != nil {
		w.problems.add(unreadable, res, err.Error())
		return false
	}
	if isOld {
		w.problems.add(olderThanAttempt, res, path)
	}
	if whole := int64(len(data)) == f.size; !w.search(data, whole, values, file) && !whole {
		w.problems.add(outputCutOff, res, "")
	}
	return true
}

// mayHaveReturned reports whether a job may have returned the file with this path: it has returned
// files, and there is such a file.
func (w *worker) mayHaveReturned(res *results.Result, path string) bool {
	if res.Outcome == nil || res.Outcome.Files == 0 {
		return false
	}
	shown, err := w.names.isListed(path)
	return err == nil && shown
}

// open opens target, to which path leads, if a listing of the directory of path contains it.
func (w *worker) open(path, target string, res *results.Result) (f openedFile, ok bool) {
	shown, err := w.names.isListed(path)
	if err == nil && !shown {
		err = fs.ErrNotExist
	}
	if err == nil {
		f, err = openFile(w.disk, target, os.O_RDONLY)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		w.problems.add(fileAbsent, res, path)
	case err != nil:
		w.problems.add(unreadable, res, err.Error())
	}
	return f, err == nil
}
