//go:build linux

package faults

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

// jobResult is a line of `results --json`.
type jobResult struct {
	Job     int
	UID     string
	State   string
	Exit    *int
	Signal  *string
	Host    *string
	Seq     int
	Started *time.Time
	Ended   *time.Time
	Stdout  *string
	Command string
}

// checkRun ends the faults that have outlasted the run, and checks the promises for it.
func (d *director) checkRun() {
	d.t.Helper()
	d.repairAll()
	d.checkOver()
	rs := d.checkResults()
	marks := d.checkRanOnce()
	uid := ""
	for _, r := range rs {
		uid, _, _ = strings.Cut(r.UID, ".")
		d.checkJob(r, uid, marks[r.Job])
	}
	d.checkNoInstances()
	d.checkNothingLeft()
	d.checkNoPanic()
	d.checkJobLog()
	d.checkFenced()
	d.checkOverlaps()
}

// checkResults checks promises 1 and 2: each job has one result, and the numbers of the results
// have no gap.
func (d *director) checkResults() []jobResult {
	d.t.Helper()
	rs := d.resultsIn(d.poweredDesk(), d.runDir())
	byJob, bySeq := map[int]int{}, map[int]int{}
	for _, r := range rs {
		byJob[r.Job]++
		bySeq[r.Seq]++
	}
	for n := 1; n <= len(d.jobs); n++ {
		if byJob[n] != 1 || bySeq[n] != 1 {
			d.t.Errorf("job %d has %d results; the number %d was given %d times", n, byJob[n], n, bySeq[n])
		}
	}
	if len(rs) != len(d.jobs) {
		d.t.Errorf("%d results of %d jobs", len(rs), len(d.jobs))
	}
	return rs
}

// resultsIn returns the results that a machine reads in a run directory.
func (d *director) resultsIn(m *machine, dir string) (rs []jobResult) {
	d.t.Helper()
	out, code, err := d.lab.query(m, "results", "--json", dir)
	if err != nil || code != 0 {
		d.t.Fatalf("results: %d, %v\n%s", code, err, out)
	}
	for line := range strings.Lines(out) {
		var r jobResult
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			d.t.Fatalf("results: %v: %s", err, line)
		}
		rs = append(rs, r)
	}
	return rs
}

// checkRanOnce checks promise 2 by the marks that the jobs wrote: no attempt ran twice. It returns
// the attempts of each job that ran.
func (d *director) checkRanOnce() map[int][]jobs.AttemptID {
	d.t.Helper()
	ran := map[int][]jobs.AttemptID{}
	for _, m := range d.markedAttempts() {
		if n := strings.Count(m.text, "\n"); n > 1 {
			d.t.Errorf("attempt %s ran %d times: %q", m.id, n, m.text)
		}
		ran[int(m.id.Job)] = append(ran[int(m.id.Job)], m.id)
	}
	return ran
}

// checkJob checks promise 3: a job's result matches what its command did, and a complete sentinel
// of an attempt that ran contains the same result.
func (d *director) checkJob(r jobResult, uid string, ran []jobs.AttemptID) {
	d.t.Helper()
	want := d.jobs[r.Job-1]
	if r.Exit == nil {
		if r.State == "failed" && len(ran) >= 3 {
			d.numDied++ // B2: a job fails if three hosts died while it ran
			return
		}
		d.t.Errorf("job %d is %s with exit null, not what its command does (%d)", r.Job, r.State, want.code)
		return
	}
	state := "failed"
	if want.code == 0 {
		state = "succeeded"
	}
	if r.State != state || *r.Exit != want.code {
		d.t.Errorf("job %d is %s with exit %d; its command exits with %d", r.Job, r.State, *r.Exit, want.code)
	}
	for _, id := range ran {
		for _, dir := range d.attemptDirs(uid, r.Host) {
			base := filepath.Join(dir, fmt.Sprintf("%03d", r.Job/1000), id.String())
			b, err := os.ReadFile(base + "." + string(jobs.FileStatus))
			if err != nil {
				continue
			}
			f := attempts.Decode(b, uid, id)
			if o := f.Outcome; f.State == attempts.Finished && o.Exit == want.code && o.Signal == "" && o.Error == "" &&
				r.Host != nil && f.Host == *r.Host {
				d.checkOutput(r, base)
				return
			}
		}
	}
	if r.Host != nil && slices.Contains(d.preempted, *r.Host) && len(d.writeFailures) > 0 {
		return // the shared directory refused writes, and the instance is gone with its files
	}
	d.t.Errorf("job %d is %s, but no attempt that ran (%v) has a whole sentinel that says so", r.Job, r.State, ran)
}

// attemptDirs returns the directories in which a host may have kept its attempts.
func (d *director) attemptDirs(uid string, host *string) []string {
	dirs := []string{d.lab.hub.path(d.runDir() + "/attempts")}
	if host != nil {
		dirs = append(dirs, d.lab.hub.path("/srv/"+*host+homeOf+uid+"/attempts"))
	}
	return dirs
}

// checkOutput compares the output of the job, unless the disk refused writes while it ran.
func (d *director) checkOutput(r jobResult, base string) {
	for _, s := range d.writeFailures {
		if r.Ended.After(s.from.Add(-time.Second)) && r.Started.Before(s.to.Add(time.Second)) {
			return
		}
	}
	b, err := os.ReadFile(base + ".out")
	if want := fmt.Sprintf("end of %d\n", r.Job); err != nil || string(b) != want {
		d.t.Errorf("job %d printed %q, not %q (%v)", r.Job, b, want, err)
	}
}

// checkOver checks that the run is recorded as ended: resume finds no job, and the run has no
// dispatcher.
func (d *director) checkOver() {
	d.t.Helper()
	var status struct {
		Jobs  map[string]int
		Ended bool
		Owner *string
	}
	for range 5 {
		out, code, err := d.lab.query(d.poweredDesk(), "status", "--json", d.runDir())
		if err != nil || code != 0 || json.Unmarshal([]byte(out), &status) != nil {
			d.t.Fatalf("status: %d, %v\n%s", code, err, out)
		}
		if status.Ended {
			break
		}
		// Ask the hosts that could not be asked at the end.
		d.logEvent("resume: the run is not written down as ended")
		d.numNotEnded++
		d.over = false
		d.current = nil
		d.awaitEnd()
	}
	if !status.Ended || status.Jobs["queued"] != 0 || status.Jobs["running"] != 0 || status.Owner != nil {
		d.t.Errorf("the run is over, but its status says %+v\n%s", status, d.newestOutput())
	}
	before := d.numMarks()
	out, code, err := d.lab.query(d.poweredDesk(), "resume", "--no-tui", d.runDir())
	if err != nil || code != 0 && code != 1 && code != 130 || d.numMarks() != before {
		d.t.Errorf("resume of a finished run: exit %d, %v, %d jobs more\n%s", code, err, d.numMarks()-before, out)
	}
}

// poweredDesk returns a desk that is powered on, or the first one if none is.
func (d *director) poweredDesk() *machine {
	for _, m := range d.lab.desks {
		if m.running.Load() != nil {
			return m
		}
	}
	return d.lab.desks[0]
}

// homeOf is the path from the directory of a host's own files to work_dir in its home.
const homeOf = "/" + "root" + "/.dcs-tui/"

// allowed matches the files that a run may leave on a host: the program, for later runs; the marks
// that fence off older dispatchers; the directories of its attempts; the directory that all users
// share, which is empty; and, on a desk, the directory of control sockets. Sockets of killed
// dispatchers may remain there until the next dispatcher removes them.
var allowed = regexp.MustCompile(`^(root|vartmp|vartmp/dcs-share|tmp|tmp/dcs-0(/[a-z0-9]{12}\.sock)?|sshd\.log|` +
	`boot_id|vartmp/dcs-0(/runs|/bin(/dcs-tui-[0-9a-f]{64}|/\.new-[0-9a-f]+)?)?|` +
	`root/\.dcs-tui(/[a-z0-9]{12}(/epoch\.\d+|/(place|machine)\.ws\d)?)?)$`)

// bareSpool matches what a helper creates before it has any job: no spec, no sentinel, and no stop
// request. Its claim of slots is no longer locked.
var bareSpool = regexp.MustCompile(`^vartmp/dcs-share/claim-[0-9a-f]{16}\.0\.[A-Z2-7]{12}$|` +
	`^vartmp/dcs-0/runs/[a-z0-9]{12}(/ws\d(/(in|taken|free|stop|done|progress|script|boot|control|reports|` +
	`machine\.ws\d|config\.\d+|log(/\d+\.\d+)?|helpers(/\d+\.\d+\.\d+)?))?)?$`)

// checkNothingLeft checks promise 4 by a scan of all processes and files of each host, whoever owns
// them.
func (d *director) checkNothingLeft() {
	d.t.Helper()
	for _, m := range d.lab.machines() {
		// A helper whose link was cut silently leaves after 30 s; a shell that waited for the lines
		// of its bootstrap leaves after 90 s.
		if !polltest.Within(100*time.Second, func() bool { return len(m.unexpectedProcesses()) == 0 }) {
			for _, p := range m.unexpectedProcesses() {
				env, _ := os.ReadFile(p.dir + "/environ")
				cookie := ""
				for v := range strings.SplitSeq(string(env), "\x00") {
					if strings.HasPrefix(v, "DCS_COOKIE=") {
						cookie = v
					}
				}
				d.t.Errorf("left behind on %s: %s %s", m.name, p, cookie)
			}
		}
		root := d.lab.hub.path("/srv/" + m.name)
		unused := !d.claimedOn(m.name)
		filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if rel, _ := filepath.Rel(root, path); err == nil && rel != "." {
				if unused && bareSpool.MatchString(rel) {
					// A helper was there and never got a job; the end of the run does not wait for
					// such a host.
					return nil
				}
				if !allowed.MatchString(rel) {
					d.t.Errorf("left behind on %s: the file %s", m.name, rel)
				}
			}
			return nil
		})
	}
	names, err := os.ReadDir(d.lab.hub.path(sharedDir))
	if err != nil {
		d.t.Error(err)
	}
	for _, e := range names {
		if !slices.Contains(d.lab.runs, e.Name()) {
			d.t.Errorf("left behind in the shared directory: %s", e.Name())
		}
	}
}

// claimedOn reports whether any attempt of the run was claimed on the host.
func (d *director) claimedOn(host string) bool {
	claims, _ := filepath.Glob(d.lab.hub.path(d.runDir()) + "/attempts/*/*.status")
	own, _ := filepath.Glob(d.lab.hub.path("/srv/"+host) + homeOf + "*/attempts/*/*.status")
	claims = append(claims, own...)
	return slices.ContainsFunc(claims, func(path string) bool {
		b, _ := os.ReadFile(path)
		return strings.Contains(string(b), " "+host+" ")
	})
}

var panicked = regexp.MustCompile(`(?m)^(panic:|fatal error:|goroutine \d+ \[).*`)

// checkJobLog checks X8 and D6: the job log has one line for each job, with its exit code, even if
// several dispatchers wrote it or the disk refused writes.
func (d *director) checkJobLog() {
	d.t.Helper()
	lines := strings.Split(strings.TrimSuffix(d.lab.readFile(d.runDir()+"/joblog.tsv"), "\n"), "\n")
	seen := map[string]int{}
	for _, line := range lines[1:] {
		f := strings.Split(line, "\t")
		seen[f[0]]++
		n, _ := strconv.Atoi(f[0])
		if len(f) < 9 || n < 1 || n > len(d.jobs) || d.numDied == 0 && f[6] != strconv.Itoa(d.jobs[n-1].code) {
			d.t.Errorf("the job log has the line %q", line)
		}
	}
	for n := range d.jobs {
		if lines := seen[strconv.Itoa(n+1)]; lines != 1 {
			d.t.Errorf("the job log has %d lines of job %d", lines, n+1)
		}
	}
}

// checkNoPanic checks that no output of dispatchers and helpers contains a panic.
func (d *director) checkNoPanic() {
	d.t.Helper()
	files, _ := filepath.Glob(filepath.Join(d.lab.dir, d.name+"-*.err"))
	logs, _ := filepath.Glob(d.lab.hub.path(d.runDir() + "/hosts/*"))
	for _, f := range append(files, logs...) {
		b, _ := os.ReadFile(f)
		if line := panicked.Find(b); line != nil {
			d.t.Errorf("%s: %s", filepath.Base(f), line)
		}
	}
}
