//go:build linux

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"dcs-tui/internal/polltest"
)

// TestHostsPackWhatTheyKeep uses hosts that share no directory with the dispatcher, which is killed in
// the middle of the run. It checks that the hosts have few files after the run; that logs and fetch
// read them; and that no job runs again when the end of the journal is lost (promises 1 and 2, X1, X2).
func TestHostsPackWhatTheyKeep(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	const n = 300
	l := newLab(t, 2)
	l.mkdir("ran")
	var text strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&text, "echo $DCS_ATTEMPT >> %s; [ %d -le 200 ] || until [ -e %s ]; do sleep 0.05; done; "+
			"echo out %[2]d\n", l.path(fmt.Sprintf("ran/%d", i)), i, l.path("gate"))
	}
	l.writeFile("jobs.txt", text.String())
	l.runApart(`
$RUN --pack-files 100 --run-dir apart/run jobs.txt & pid=$!
until [ $(ls ran | wc -l) -ge 204 ]; do sleep 0.05; done
kill -9 $pid; wait $pid || true
touch gate
$DCS resume --no-tui apart/run
find ` + l.workDir(0) + `/*/attempts ` + l.workDir(1) + `/*/attempts -type f > files
$DCS logs apart/run 1 > one.out
$DCS logs apart/run 300 > last.out
for part in 2 10; do
	for f in apart/run/journal/*.jsonl; do truncate -s $(($(stat -c %s $f) / $part)) $f; done
	$DCS resume --no-tui apart/run 2>> resumed.err
done
$DCS results --json apart/run > results
$DCS fetch apart/run --json > fetch.json
mv ` + l.workDir(0) + ` ` + l.workDir(0) + `.away; mv ` + l.workDir(1) + ` ` + l.workDir(1) + `.away
$DCS logs apart/run 299 > fetched.out`)
	l.checkFiles(map[string]string{"one.out": "out 1\n", "last.out": "out 300\n", "fetched.out": "out 299\n"})
	// Each host has a pack, and what too few attempts of it would have in a second one.
	if files := l.readFile(l.path("files")); strings.Count(files, "\n") > 2*(1+3*3) {
		t.Errorf("the hosts have\n%s", files)
	}
	for i := 1; i <= n; i++ {
		if got := l.readFile(l.path(fmt.Sprintf("ran/%d", i))); got != fmt.Sprintf("%d.1\n", i) {
			t.Errorf("job %d ran as %q", i, got)
		}
	}
	if got := strings.Count(l.readFile(l.path("results")), `"succeeded"`); got != n {
		t.Errorf("%d jobs have succeeded, want %d\n%s", got, n, l.readFile(l.path("resumed.err")))
	}
	if b := l.readFile(l.path("fetch.json")); !strings.Contains(b, fmt.Sprintf(`"fetched":%d,`, n)) ||
		!strings.Contains(b, `"left":0,`) {
		t.Errorf("fetch: %s", b)
	}
}
