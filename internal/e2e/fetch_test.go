//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"dcs-tui/internal/polltest"
)

// runApart runs a script with the program, which must succeed. In the script's mount namespace,
// l.path("apart") is a directory that no host sees, and $RUN runs jobs on the hosts. Standard error in
// files is shown if it fails.
func (l *lab) runApart(script string) {
	l.t.Helper()
	if err := exec.Command("unshare", "-m", "true").Run(); err != nil {
		l.t.Skipf("no mount namespaces for this user (%v): what hosts keep to themselves is not tested over ssh", err)
	}
	l.mkdir("apart")
	cmd := exec.Command("unshare", "-m", "sh", "-euc", "mount -t tmpfs -o mode=700 none apart\n"+script)
	hosts, ssh := l.inventory(2), l.servers[0].ConfigFile
	cmd.Env = append(os.Environ(), "DCS="+program, "HOSTS="+hosts, "SSH="+ssh,
		"RUN="+program+" run --no-tui --ssh-config "+ssh+" --hosts "+hosts)
	p := l.startCommand(cmd)
	if p.wait().code != 0 {
		for _, file := range l.glob("*.err") {
			l.t.Logf("%s:\n%s", file, l.readFile(file))
		}
	}
	p.mustSucceed()
}

// TestFetchFromHostsThatKeepTheirOutputs uses hosts that share no directory with the dispatcher,
// and kills the dispatcher in the middle of a grid. It checks that no declared metric is lost, and
// that fetch copies the outputs of every attempt, so that metrics requested later are found without
// the hosts (X1, X2, E3).
func TestFetchFromHostsThatKeepTheirOutputs(t *testing.T) {
	polltest.Long(t)
	const n = 60
	l := newLab(t, 2)
	l.mkdir("ran")
	// Both hosts have outputs: no job goes on before each has one.
	l.writeFile("grid.txt", "echo y=[x]7; echo loss=0.[x]; echo to err [x] >&2; touch on.$DCS_HOST; "+
		"until test -e on.ws1 -a -e on.ws2; do sleep 0.05; done; touch ran/[x]; "+
		"test [x] -le 30 || until test -e gate; do sleep 0.05; done\n"+
		fmt.Sprintf("[x] 1..%d\n@result y\n", n))
	l.runApart(`
$DCS grid --no-tui --ssh-config $SSH --hosts $HOSTS --run-dir apart/run --tries 1 grid.txt & pid=$!
until [ $(ls ran | wc -l) -ge 25 ]; do sleep 0.02; done
kill -9 $pid; wait $pid || true
[ $(ls ran | wc -l) -lt ` + fmt.Sprint(n) + ` ]
touch gate
$DCS resume --no-tui apart/run
$DCS results apart/run --columns x,y --format csv > declared.csv
[ -z "$(ls apart/run/attempts)" ]
$DCS logs apart/run 1 > one.out
$DCS fetch apart/run --json > fetch.json
mv ` + l.workDir(0) + ` ` + l.workDir(0) + `.away; mv ` + l.workDir(1) + ` ` + l.workDir(1) + `.away
$DCS results apart/run --result loss --columns x,y,loss --format csv > asked.csv 2> asked.err
$DCS logs apart/run 60 > last.out
cp -r apart/run/attempts brought`)
	declared, asked := "x,y\n", "x,y,loss\n"
	for x := 1; x <= n; x++ {
		declared += fmt.Sprintf("%d,%d7\n", x, x)
		asked += fmt.Sprintf("%d,%d7,0.%d\n", x, x, x)
	}
	l.checkFiles(map[string]string{"declared.csv": declared, "asked.csv": asked, "asked.err": "",
		"one.out": "y=17\nloss=0.1\n", "last.out": "y=607\nloss=0.60\n"})
	var got struct {
		Fetched, Left, Files int
		Bytes                int64
		Hosts                []struct{ Host, Error string }
	}
	b := l.readFile(l.path("fetch.json"))
	if err := json.Unmarshal([]byte(b), &got); err != nil || got.Fetched < n || got.Left != 0 ||
		got.Files != l.numFiles("brought/000/*") || len(got.Hosts) != 2 {
		t.Errorf("fetch: got %s, %v; want every file of 2 hosts", b, err)
	}
	// The copies are equal byte for byte. Tombstones of attempts that never started stay on the hosts.
	for _, dir := range []string{l.workDir(0), l.workDir(1)} {
		compare := exec.Command("sh", "-c", "cd "+dir+".away/*/attempts && "+
			"find . -name '*.out' -o -name '*.err' -o -name '*.status' | while read f; do "+
			"grep -q ^dcs-tombstone $f || cmp $f "+l.path("brought")+"/$f; done")
		if out, err := compare.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%v: %s", err, out)
		}
	}
	if entries, err := os.ReadDir(l.path("brought/000")); err != nil || strings.HasPrefix(entries[0].Name(), ".") {
		t.Errorf("brought/000: got %v, %v; want no temporary files", entries, err)
	}
}
