//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dcs-tui/internal/polltest"
	"dcs-tui/internal/progtest"
)

// TestFilesTravelToHostsThatShareNothing checks that hosts without a shared directory get the files
// that --send names, files that changed since, and the inputs of single jobs. Returned files are
// here when the job has succeeded, under names with blanks and newlines. A missing file is a
// failure with its own cause (T1).
func TestFilesTravelToHostsThatShareNothing(t *testing.T) {
	l := newLab(t, 2)
	l.runApart(`
mkdir apart/deep; cd apart/deep
mkdir -p code/lib in .hidden
printf '#!/bin/sh\n. "$(dirname "$0")"/lib/part.sh\n' > code/run.sh; chmod +x code/run.sh
echo 'part() { echo "version $VERSION of $1"; }' > code/lib/part.sh
echo secret > code/secret.key; printf '*.key\n!keep.key\n' > code/.dcsignore; echo kept > code/keep.key
nl='
'
printf 'odd\n' > "in/a b${nl}c.dat"
for i in 1 2 3 4 5 6 7 8; do echo "data $i" > in/$i.dat; done
{
  for i in 1 2 3 4 5 6 7 8; do
    echo "#DCS send=in/$i.dat return=out/$i.csv"
    echo "[ \$(ls in) = $i.dat ] && [ ! -e code/secret.key ] && [ -e code/keep.key ] &&" \
      "cat in/$i.dat code/keep.key > out/$i.csv && echo unwanted > out/unwanted && pwd"
  done
  echo '#DCS return=out/none.csv'
  echo 'mkdir out; echo x > out/other.csv'
  echo '#DCS send=in/gone.dat after=1'
  echo 'true'
} > jobs.txt
nlj='in/a b\nc.dat'
printf '{"command":"mkdir -p out; cp in/* out/","send":["%s"],"return":["out/**"]}\n' "$nlj" > odd.jsonl
code=0; $RUN --json --run-dir run --send code --tries 1 jobs.txt > ../../result.jsonl 2> ../../run.err || code=$?
echo $code > ../../code
ls out > ../../out.list; cat out/*.csv > ../../out.all
$RUN --run-dir odd odd.jsonl
printf '#DCS default return=grid/*\nmkdir grid; echo [x] > grid/[x]\n[x] 1..3\n' > grid.txt
$DCS grid --no-tui --ssh-config $SSH --hosts $HOSTS --run-dir grid.run grid.txt; cat grid/* > ../../grid.all
cmp "in/a b${nl}c.dat" "out/a b${nl}c.dat"
find . -name '.dcs-tui-*' > ../../temps; ls run/returning > ../../notes
find . -name out -prune -o -name '*.csv' -print >> ../../temps
`)
	list, all := "", ""
	for i := 1; i <= 8; i++ {
		list += fmt.Sprintf("%d.csv\n", i)
		all += fmt.Sprintf("data %d\nkept\n", i)
	}
	l.checkFiles(map[string]string{"code": "1\n", "out.list": list, "out.all": all, "temps": "", "notes": "",
		"grid.all": "1\n2\n3\n"})
	said := l.readFile(l.path("run.err"))
	for _, want := range []string{`it made no file "out/none.csv", which it returns`, "its files cannot be sent: ",
		"in/gone.dat"} {
		if !strings.Contains(said, want) {
			t.Errorf("nothing is said of %q:\n%s", want, said)
		}
	}
	// The helpers have removed the files of the jobs when they have left.
	l.until("the helpers have left", func() bool { return len(progtest.FindProcesses(l.ownProcess())) == 0 })
	var left, kept []string
	for i := range l.servers {
		names, _ := filepath.Glob(l.workDir(i) + "/*/files.*/*")
		left = append(left, names...)
		names, _ = filepath.Glob(l.workDir(i) + "/*/files.*/kept/9/out/other.csv")
		kept = append(kept, names...)
	}
	if len(left) != 1 || len(kept) != 1 {
		t.Errorf("left on the hosts: %v, %v; want only the files of the job whose pattern matched nothing", left, kept)
	}
}

// TestFilesOfADispatcherThatIsKilled kills the dispatcher while files are returned. It checks that
// no partial file remains, and that the successor copies the missing files, sends changed files,
// and does not repeat succeeded jobs (T1).
func TestFilesOfADispatcherThatIsKilled(t *testing.T) {
	polltest.Long(t)
	const n = 12
	l := newLab(t, 2)
	l.mkdir("ran")
	l.runApart(`
cd apart
echo old > version
for i in $(seq ` + fmt.Sprint(n) + `); do
  echo "#DCS return=out/$i.bin"
  [ $i -le 4 ] && wait= || wait="until [ -e ` + l.path("gate") + ` ]; do sleep 0.05; done; " # for the second dispatcher
  echo "${wait}echo \$DCS_ATTEMPT >> ` + l.path("ran") +
		`/$i; mkdir out; head -c 3000000 /dev/zero | tr '\\\\0' a > out/$i.bin; cat version >> out/$i.bin"
done > jobs.txt
$RUN --run-dir run --send version --tries 1 jobs.txt & pid=$!
until [ -n "$(ls out 2>/dev/null)" ]; do sleep 0.02; done
kill -9 $pid; wait $pid || true
echo "$(ls out)" > ../out.first
for f in out/*.bin; do
  [ -e "$f" ] && [ $(stat -c %s $f) != 3000004 ] && echo "$f is partial" >> ../partial
done || true
echo new > version
touch ` + l.path("gate") + `
$DCS resume --no-tui --json run > ../result.jsonl
find . -name '.dcs-tui-*' > ../temps
for i in $(seq ` + fmt.Sprint(n) + `); do stat -c %s out/$i.bin; done > ../sizes
tail -qc 4 out/*.bin | sort | uniq -c > ../versions
`)
	if b, err := os.ReadFile(l.path("partial")); err == nil {
		t.Errorf("a failed transfer has left %s", b)
	}
	l.checkFiles(map[string]string{"sizes": strings.Repeat("3000004\n", n), "temps": ""})
	if got := l.readFile(l.path("versions")); !strings.Contains(got, "new") {
		t.Errorf("what has changed before the resume did not reach any host:\n%s", got)
	}
	l.checkAttemptsRanOnce(n)
}

// TestFilesThatLeadOut checks that symbolic links that point outside the sent files or outside a
// job's directory are refused by name, and that other jobs are not affected (T1).
func TestFilesThatLeadOut(t *testing.T) {
	l := newLab(t, 1)
	l.runApart(`
cd apart
mkdir -p tree other; echo private > other/private; ln -s ../other/private tree/link; ln -s /etc/passwd out.link
{
  printf '#DCS return=found\nln -s /etc/hostname found\n'
  printf '#DCS return=good\nmkdir d; echo inside > d/f; ln -s d/f good\n'
  printf '#DCS send=out.link after=2\ntrue\n'
} > jobs.txt
code=0; $RUN --run-dir run --tries 1 jobs.txt 2> ../run.err || code=$?
echo $code > ../code; cat good > ../good; ls > ../list
code=0; $RUN --run-dir run2 --send ../outside jobs.txt 2> ../send.err || code=$?
echo $code >> ../code
code=0; $RUN --run-dir run3 --send tree jobs.txt 2> ../tree.err || code=$?
echo $code >> ../code
`)
	l.checkFiles(map[string]string{"good": "inside\n", "code": "1\n2\n2\n"})
	if got := l.readFile(l.path("list")); strings.Contains(got, "found") {
		t.Errorf("a link that leads out was returned: %s", got)
	}
	said := l.readFile(l.path("run.err"))
	for _, want := range []string{"out.link", `"found", which it returns, is a symbolic link`} {
		if !strings.Contains(said, want) {
			t.Errorf("nothing is said of %q:\n%s", want, said)
		}
	}
	if got := l.readFile(l.path("tree.err")); !strings.Contains(got, "apart/tree/link leads out") {
		t.Errorf("of the link in a tree it is said:\n%s", got)
	}
}

// TestFilesThatChangeDuringARun checks that changed files reach the hosts and are used by jobs that
// start later. A failed attempt returns no files; the attempt that counts does. --keep-files keeps
// the files on the host (T1).
func TestFilesThatChangeDuringARun(t *testing.T) {
	polltest.Long(t)
	l := newLab(t, 1)
	l.runApart(`
cd apart; echo old > config
for i in $(seq 2000); do echo 'cat config > seen.$DCS_JOB_ID; sleep 0.2'; done > jobs.txt
printf 'mkdir -p out; echo $DCS_ATTEMPT > out/who; [ $DCS_ATTEMPT != 1.1 ] && [ $DCS_ATTEMPT != 1.2 ]\n' > retry.txt
$RUN --json --run-dir run --send config --return 'seen.*' jobs.txt > ../result.jsonl & pid=$!
until [ -e seen.1 ]; do sleep 0.02; done
cat seen.1 > ../first
echo new > config
until grep -q new seen.* ; do sleep 0.05; done
$DCS cancel run --yes; wait $pid || true
code=0; $RUN --run-dir retry --return 'out/who' --tries 3 --keep-files retry.txt || code=$?
echo $code > ../code; cat out/who > ../who
`)
	l.checkFiles(map[string]string{"first": "old\n", "code": "0\n", "who": "1.3\n"})
	if kept, _ := filepath.Glob(l.workDir(0) + "/*/files.ws1/jobs/1.3/out/who"); len(kept) != 1 {
		t.Error("--keep-files left no directory of the job on the host")
	}
}

// TestFilesWaitForSpaceHere checks that a job does not end while the local disk is full, even if
// the link breaks meanwhile. A message reports that, and complete files arrive once there is space.
// A cancel ends the wait and returns no files (T1).
func TestFilesWaitForSpaceHere(t *testing.T) {
	l := newLab(t, 1)
	cut := make(chan struct{})
	go func() {
		defer close(cut)
		polltest.Within(polltest.Patience, func() bool { return l.numFiles("cut") > 0 || t.Context().Err() != nil })
		l.servers[0].Drop()
	}()
	t.Cleanup(func() { <-cut })
	l.runApart(`
cd apart; mkdir out; mount -t tmpfs -o size=1m none out
echo 'head -c 3000000 /dev/zero > out/big' | sed 's/^/mkdir out; /' > jobs.txt
$RUN --run-dir run --return out/big --tries 1 jobs.txt 2> ../run.err & pid=$!
until grep -q 'cannot be copied now' ../run.err; do sleep 0.05; done
until $DCS status run --json | grep -q '"running":1'; do sleep 0.1; done
touch ../cut
until [ $(grep -c 'cannot be copied now' ../run.err) -ge 2 ]; do sleep 0.05; done
mount -o remount,size=9m out
wait $pid
stat -c %s out/big > ../size; ls -A out > ../after
rm out/big; mount -o remount,size=1m out
$RUN --json --run-dir canceled --return out/big --tries 1 jobs.txt 2> ../canceled.err > ../canceled.json & pid=$!
until grep -q 'cannot be copied now' ../canceled.err; do sleep 0.05; done
$DCS cancel canceled 1 --yes
wait $pid || true
ls -A out > ../left; umount out
`)
	if got := l.readFile(l.path("run.err")); !strings.Contains(got, "no space left on device") {
		t.Errorf("nothing is said of the full disk:\n%s", got)
	}
	l.checkFiles(map[string]string{"size": "3000000\n", "after": "big\n", "left": ""})
	if got := l.completeResults(l.readFile(l.path("canceled.json"))); len(got) != 1 || got[0].State != "canceled" {
		t.Errorf("the canceled job: %+v", got)
	}
}

// TestFilesWaitForSpaceOnAHost checks that jobs wait for their files if the disk of a host is full,
// and that a message reports that (T1).
func TestFilesWaitForSpaceOnAHost(t *testing.T) {
	polltest.Long(t)
	l := newLab(t, 1)
	work := l.path("work")
	l.mkdir("work")
	wrap := l.writeFile("wrap.sh", `#!/bin/sh
cd / && umount -l `+l.path("apart")+` && mount -t tmpfs -o size=8m none `+work+` && head -c 7000000 /dev/zero `+
		`> `+work+`/ballast && echo $$ > `+l.path("pid")+` && exec "$@"
`)
	l.writeFile("box.toml", fmt.Sprintf("[[host]]\nname = \"box\"\nlink = [\"unshare\", \"-m\", \"sh\", %q]\n"+
		"slots = 2\nyield = false\nnice = 0\nwork_dir = %q\n", wrap, work+"/dcs"))
	l.runApart(`
cd apart; head -c 4000000 /dev/zero > data
echo 'wc -c < data > n' > jobs.txt
$DCS run --no-tui --hosts ../box.toml --run-dir run --send data --return n jobs.txt 2> ../run.err & pid=$!
until grep -q 'there is no space in' ../run.err; do sleep 0.05; done
until grep -q 'there is no space in' run/live.json; do sleep 0.05; done
rm /proc/$(cat ../pid)/root` + work + `/ballast
wait $pid
cat n > ../n
`)
	l.checkFiles(map[string]string{"n": "4000000\n"})
}

// TestFilesOfCopies runs two attempts of a job with returned files on two hosts (--speculate),
// which end at about the same time. It checks that the local files are exactly those of the attempt
// that counts.
func TestFilesOfCopies(t *testing.T) {
	polltest.Long(t)
	const n = 8
	l := newLab(t, 2)
	l.runApart(`
cd apart
dir=` + l.dir + `
for i in $(seq ` + fmt.Sprint(n) + `); do
  echo "#DCS return=out/$i.*"
  # An attempt on ws2 waits in the middle of its files until one on ws1 is about to end.
  echo "part() { for f in a b c; do yes \$DCS_HOST | head -c 600000 >> out/$i.\$f; done; }; mkdir out; part;" \
    "if [ \$DCS_HOST = ws2 ]; then touch $dir/ws2; until [ -e $dir/ending.$i ]; do sleep 0.02; done; fi;" \
    "part; touch $dir/ending.$i; until [ -e $dir/ws2 ]; do sleep 0.02; done"
done > jobs.txt
$RUN --json --speculate --run-dir run jobs.txt > ../result.jsonl 2> ../run.err
find . -name '.dcs-tui-*' > ../temps
# The run may end before its last record is removed; the next dispatcher removes it then.
$DCS resume --no-tui --ssh-config $SSH --hosts $HOSTS run > /dev/null 2>&1
ls run/returning > ../notes
cd out; for f in *; do echo $f $(stat -c %s $f) $(sort -u $f); done > ../../files
`)
	if said := l.readFile(l.path("run.err")); !strings.Contains(said, "runs on ws1 too") {
		t.Errorf("no job had a copy:\n%s", said)
	}
	var want []string
	for _, r := range l.completeResults(l.readFile(l.path("result.jsonl"))) {
		if r.State != "succeeded" {
			t.Errorf("got %+v, want a success", r)
		}
		for _, f := range []string{"a", "b", "c"} {
			want = append(want, fmt.Sprintf("%d.%s 1200000 %s\n", r.Job, f, r.Host))
		}
	}
	slices.Sort(want)
	l.checkFiles(map[string]string{"files": strings.Join(want, ""), "temps": "", "notes": ""})
	if len(want) != 3*n {
		t.Errorf("%d results, want %d", len(want)/3, n)
	}
}
