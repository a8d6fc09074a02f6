//go:build linux

package faults

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// jobScript is the script of every job of the lab. It first writes a mark that this attempt runs,
// independent of the program's own records. Then it behaves as requested:
//
//	job RUN KIND SECONDS CODE
//
// Last, it writes a mark that it ends. Its output is known in advance, and its exit code is CODE
// even if other steps fail.
const jobScript = `#!/bin/sh
echo "$DCS_HOST $$" >>` + marksDir + `/$1/$DCS_ATTEMPT
case $2 in
plain) sleep $3 ;;
fork) (sleep 3000) & sleep $3 ;;
setsid) setsid sh -c '(sleep 3000; :) & sleep 3000' >/dev/null 2>&1 & sleep $3 ;;
daemon)
	setsid sh -c 'setsid sh -c "trap \"\" TERM HUP; while :; do sleep 1; done" >/dev/null 2>&1 & exit 0'
	sleep $3 ;;
deaf) trap '' TERM HUP INT; sleep $3 ;;
gate) while [ ! -e ` + marksDir + `/$1/gate ]; do sleep 0.1; done ;;
esac
echo >` + marksDir + `/$1/$DCS_ATTEMPT.end
echo "end of $DCS_JOB_ID"
exit $4
`

// job is one job of a run with its expected result.
type job struct {
	kind    string
	seconds float64
	code    int
	after   int // the job that must end first, 0: none
}

// kinds are the kinds of jobs. Most are plain.
var kinds = []string{"plain", "plain", "plain", "plain", "fork", "setsid", "daemon", "deaf"}

// mixedJobs returns n jobs of all kinds, of 0.2 to 6 s, some of which fail.
func mixedJobs(rnd *rand.Rand, n int) []job {
	list := make([]job, n)
	for i := range list {
		list[i] = job{kind: kinds[rnd.IntN(len(kinds))], seconds: 0.2 + 5.8*rnd.Float64()*rnd.Float64()}
		if rnd.IntN(12) == 0 {
			list[i].code = 3 + rnd.IntN(4)
		}
	}
	return list
}

// equalJobs returns n jobs of one kind.
func equalJobs(n int, kind string, seconds float64) []job {
	list := make([]job, n)
	for i := range list {
		list[i] = job{kind: kind, seconds: seconds}
	}
	return list
}

// writeJobs writes the jobs file of a run and creates the directory of its marks.
func (l *lab) writeJobs(run string, list []job) (file string, err error) {
	var b strings.Builder
	for _, j := range list {
		// A failing job fails in its first attempt.
		if j.code != 0 {
			b.WriteString("#DCS tries=1\n")
		}
		if j.after > 0 {
			fmt.Fprintf(&b, "#DCS after=%d\n", j.after)
		}
		fmt.Fprintf(&b, "%s/job %s %s %.2f %d\n", binDir, run, j.kind, j.seconds, j.code)
	}
	if err := os.MkdirAll(l.hub.path(marksDir+"/"+run), 0o700); err != nil {
		return "", err
	}
	file = filepath.Join(marksDir, run+".txt")
	return file, os.WriteFile(l.hub.path(file), []byte(b.String()), 0o600)
}

// openGate makes the jobs of kind gate continue.
func (l *lab) openGate(run string) error {
	return os.WriteFile(l.hub.path(marksDir+"/"+run+"/gate"), nil, 0o600)
}
