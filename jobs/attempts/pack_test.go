package attempts_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/disktest"
	"dcs-tui/jobs/rundir/memdisk"
)

func all(jobs.AttemptID) bool { return true }

// seen is all that a reader sees of the attempts of a run.
func seen(t *testing.T, d rundir.Disk, dir string) string {
	t.Helper()
	var b strings.Builder
	err := attempts.EachFate(d, dir, run, "", nil, func(f attempts.Fate) error {
		fmt.Fprintf(&b, "%s %d %s %q\n", f.Attempt, f.State, f.Host, f.Outcome.LastLine)
		for _, kind := range []jobs.File{jobs.FileOut, jobs.FileErr} {
			text, size, err := rundir.ReadPart(d, jobs.AttemptFile(dir, f.Attempt, kind), -4, 10)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s.%s: %v", f.Attempt, kind, err)
			}
			fmt.Fprintf(&b, "  %s %q %d\n", kind, text, size)
		}
		return nil
	})
	must(t, err)
	return b.String()
}

// fill writes attempts of all kinds: with and without outputs, unfinished ones, tombstones, damaged
// ones, and one with an output that is too large.
func fill(t *testing.T, d rundir.Disk, dir string) {
	t.Helper()
	put := func(id jobs.AttemptID, f jobs.File, content []byte) {
		path := jobs.AttemptFile(dir, id, f)
		if d == rundir.OS {
			must(t, os.WriteFile(path, content, 0o600)) // nothing here loses its power
		} else {
			must(t, rundir.Overwrite(d, path, content))
		}
	}
	for job := 1; job <= 8; job++ {
		id := attemptID(job, 1)
		put(id, jobs.FileStatus, finished(id, "h", jobs.Outcome{Exit: job % 2}))
		put(id, jobs.FileOut, fmt.Appendf(nil, "output of %d", job))
		put(id, jobs.FileErr, fmt.Appendf(nil, "error of %d\n", job)[:(job%3)*5])
	}
	unfinished, tomb := claim(attemptID(9, 1), "h"), claim(attemptID(10, 1), "h")
	tomb.Tombstone = true
	put(attemptID(9, 1), jobs.FileStatus, unfinished.Encode())
	put(attemptID(9, 1), jobs.FileOut, []byte("so far"))
	put(attemptID(10, 1), jobs.FileStatus, tomb.Encode())
	put(attemptID(11, 1), jobs.FileStatus, []byte("damaged"))
	large := attemptID(12, 1)
	put(large, jobs.FileStatus, finished(large, "h", jobs.Outcome{}))
	put(large, jobs.FileOut, make([]byte, 256<<10+1))
	put(attemptID(13, 1), jobs.FileOut, []byte("without a status"))
}

// makeDirs creates dir with the directory of the first shard.
func makeDirs(t *testing.T, d rundir.Disk, dir string) {
	t.Helper()
	for _, path := range []string{dir, filepath.Join(dir, "attempts"), filepath.Join(dir, "attempts", "000")} {
		must(t, d.Mkdir(path, 0o700))
		must(t, d.SyncDir(filepath.Dir(path)))
	}
}

// TestPackHidesNothing checks that readers see the same before and after packing, that a pack takes
// only whole attempts that have finished and are small, and that unzip can read it (X2).
func TestPackHidesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	makeDirs(t, rundir.OS, dir)
	fill(t, rundir.OS, dir)
	before := seen(t, rundir.OS, dir)
	p := &attempts.Packer{Disk: rundir.OS, Dir: dir, Run: run, May: func(id jobs.AttemptID) bool { return id.Job != 8 }}
	if n, err := p.Pack("000"); n != 7 || err != nil {
		t.Fatalf("packed %d attempts, %v", n, err)
	}
	if after := seen(t, rundir.OS, dir); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	left, err := rundir.WithoutPacks(rundir.OS).Names(filepath.Join(dir, "attempts", "000"))
	must(t, err)
	want := []string{"10.1.status", "11.1.status", "12.1.out", "12.1.status", "13.1.out", "8.1.err", "8.1.out",
		"8.1.status", "9.1.out", "9.1.status"}
	if !slices.Equal(left, want) {
		t.Errorf("files that are left: %v", left)
	}
	p.May = all
	if n, err := p.Pack("000"); n != 1 || err != nil { // a second pack beside the first
		t.Fatalf("packed %d attempts, %v", n, err)
	}
	if n, err := p.Pack("000"); n != 0 || err != nil {
		t.Fatalf("packed %d attempts, %v", n, err)
	}
	must(t, os.Remove(filepath.Join(dir, "attempts", "000", "9.1.out"))) // as others may do
	for _, name := range []string{"9.1.status", "10.1.status", "11.1.status", "12.1.out", "12.1.status", "13.1.out"} {
		must(t, os.Remove(filepath.Join(dir, "attempts", "000", name)))
	}
	must(t, os.Remove(filepath.Join(dir, "attempts", "000"))) // a copy may lack empty directories
	if got := seen(t, rundir.WithPacks(rundir.WithoutPacks(rundir.OS)), dir); strings.Count(got, "h ") != 8 {
		t.Errorf("without the directory:\n%s", got)
	}
	packs, err := filepath.Glob(filepath.Join(dir, "attempts", "000.*.zip"))
	must(t, err)
	if len(packs) != 2 {
		t.Fatalf("packs: %v", packs)
	}
	numFiles := 0
	for _, path := range packs {
		z, err := zip.OpenReader(path)
		must(t, err)
		for _, e := range z.File {
			f, err := e.Open()
			must(t, err)
			_, err = io.Copy(io.Discard, f)
			must(t, err)
			numFiles++
		}
		must(t, z.Close())
	}
	if numFiles != 24 {
		t.Errorf("the packs have %d files", numFiles)
	}
}

// TestPackSurvivesEveryFailure checks that whatever operation of the disk fails, every file can be
// read, and the next packing goes on.
func TestPackSurvivesEveryFailure(t *testing.T) {
	numFailed := 0
	for n := 1; ; n += polltest.Scale(7, 2, 1) {
		dir := filepath.Join(t.TempDir(), "run")
		makeDirs(t, rundir.OS, dir)
		fill(t, rundir.OS, dir)
		before := seen(t, rundir.OS, dir)
		failing := new(disktest.Disk)
		failing.FailAt(n, syscall.EIO, n%2 == 0)
		p := &attempts.Packer{Disk: failing, Dir: dir, Run: run, May: all}
		_, err := p.Pack("000")
		if err != nil {
			numFailed++
		}
		if got := seen(t, rundir.OS, dir); got != before {
			t.Fatalf("after the failure of %s:\n%s", failing.Failed, got)
		}
		p.Disk = rundir.OS
		if _, err := p.Pack("000"); err != nil {
			t.Fatalf("again after the failure of %s: %v", failing.Failed, err)
		}
		if got := seen(t, rundir.OS, dir); got != before {
			t.Fatalf("again after the failure of %s:\n%s", failing.Failed, got)
		}
		if failing.Failed == "" {
			break
		}
	}
	if numFailed < 5 {
		t.Errorf("only %d failures were reported", numFailed)
	}
}

// readOnlyDisk refuses to create and to remove files, as a read-only file system does.
type readOnlyDisk struct{ rundir.Disk }

func (d readOnlyDisk) OpenFile(path string, flag int, perm fs.FileMode) (rundir.File, error) {
	if flag&os.O_CREATE != 0 {
		return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.EROFS}
	}
	return d.Disk.OpenFile(path, flag, perm)
}

func (d readOnlyDisk) Remove(path string) error {
	return &fs.PathError{Op: "remove", Path: path, Err: syscall.EROFS}
}

// TestPackOnAReadOnlyFileSystem checks that the error does not ask for a file that was never created.
func TestPackOnAReadOnlyFileSystem(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	makeDirs(t, rundir.OS, dir)
	fill(t, rundir.OS, dir)
	shards, err := os.ReadDir(filepath.Join(dir, rundir.AttemptsDir))
	if err != nil {
		t.Fatal(err)
	}
	p := attempts.Packer{Disk: readOnlyDisk{rundir.OS}, Dir: dir, May: all}
	if _, err = p.Pack(shards[0].Name()); !errors.Is(err, syscall.EROFS) || strings.Contains(err.Error(), "remove") {
		t.Errorf("got %v, want only that nothing can be created", err)
	}
}

// TestPackSurvivesPowerLoss checks that a loss of power at any operation, with any of the changes
// that are not durable, loses no durable file.
func TestPackSurvivesPowerLoss(t *testing.T) {
	errOff := errors.New("the power is off")
	for cut := 1; ; cut++ {
		for fate := range 3 {
			server := memdisk.New()
			m := server.Mount("a")
			makeDirs(t, m, "/run")
			fill(t, m, "/run")
			must(t, m.SyncDir("/run/attempts/000"))
			before := seen(t, m, "/run")
			ops := 0
			m.Fault = func(string, string) error {
				if ops++; ops >= cut {
					return errOff
				}
				return nil
			}
			p := &attempts.Packer{Disk: m, Dir: "/run", Run: run, May: all, Token: func() string { return "token" }}
			_, err := p.Pack("000")
			m.Fault = nil
			m.PowerLoss(func(l memdisk.Loss) memdisk.Fate {
				return memdisk.Fate{Keep: []int{0, l.Len, l.Len / 2}[fate]}
			})
			if got := seen(t, rundir.WithPacks(m), "/run"); got != before {
				t.Fatalf("cut at operation %d, fate %d:\n%s\ninstead of\n%s", cut, fate, got, before)
			}
			if err == nil {
				return
			}
		}
	}
}

// TestPacksThatNobodyMadeAreIgnored checks that a file in the place of a pack cannot stop or mislead
// a reader: other files count, and the error names the pack.
func TestPacksThatNobodyMadeAreIgnored(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"empty": func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"text":  func(path string) error { return os.WriteFile(path, []byte("PK\x05\x06 not really"), 0o600) },
		"huge": func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<42))
		},
		"endless directory": func(path string) error {
			return os.WriteFile(path, archive(400_000, 46*400_000, 100), 0o600)
		},
		// A reader of zip archives allocates memory for as many files as the end claims.
		"zip64 of many files": func(path string) error {
			return writeSparse(path, 1<<42, archive64(1<<37, archive(0, math.MaxUint32, math.MaxUint16)))
		},
		// It takes this size, too, as a sign that there may be large numbers.
		"zip64 beside small numbers": func(path string) error {
			return writeSparse(path, 1<<42, archive64(1<<37, archive(0, math.MaxUint16, 100)))
		},
		"file before the beginning": func(path string) error {
			return os.WriteFile(path, archiveAt(-1000), 0o600)
		},
		"link": func(path string) error { return os.Symlink("/dev/zero", path) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.exit(attemptID(1, 1), "h", jobs.Outcome{})
			path := filepath.Join(p.dir, "attempts", "000.aaaaaaaaaaaa.zip")
			must(t, put(path))
			found := 0
			err := attempts.EachFate(rundir.OS, p.dir, run, "", nil, func(f attempts.Fate) error {
				found++
				return nil
			})
			if found != 1 || !errors.Is(err, rundir.ErrDamagedPack) ||
				!strings.Contains(err.Error(), filepath.Base(path)) {
				t.Errorf("found %d attempts, %v", found, err)
			}
		})
	}
}

// TestWhatIsNoFileIsNoPack checks that a pipe and a directory with the name of a pack are no damage.
func TestWhatIsNoFileIsNoPack(t *testing.T) {
	p := newPlace(t)
	p.exit(attemptID(1, 1), "h", jobs.Outcome{})
	must(t, syscall.Mkfifo(filepath.Join(p.dir, "attempts", "000.aaaaaaaaaaaa.zip"), 0o600))
	must(t, os.Mkdir(filepath.Join(p.dir, "attempts", "000.bbbbbbbbbbbb.zip"), 0o700))
	if got := seen(t, rundir.OS, p.dir); strings.Count(got, "h ") != 1 {
		t.Errorf("found %s", got)
	}
}

// TestNoDamageHidesAPackedAttempt checks that a pack of which any byte was changed, or any part of the end
// was cut off, shows the outcomes of all its attempts or is reported as damaged. Otherwise an attempt
// whose record is lost, too, would count as never started, and its job would run again.
func TestNoDamageHidesAPackedAttempt(t *testing.T) {
	p := newPlace(t)
	for job := 1; job <= 2; job++ {
		p.exit(attemptID(job, 1), "h", jobs.Outcome{Exit: job})
		must(t, os.WriteFile(jobs.AttemptFile(p.dir, attemptID(job, 1), jobs.FileErr), []byte("error\n"), 0o600))
	}
	if n, err := (&attempts.Packer{Disk: rundir.OS, Dir: p.dir, Run: run, May: all}).Pack("000"); n != 2 || err != nil {
		t.Fatalf("packed %d, %v", n, err)
	}
	packs, err := filepath.Glob(filepath.Join(p.dir, "attempts", "000.*.zip"))
	must(t, err)
	whole, err := os.ReadFile(packs[0])
	must(t, err)
	exits := func() (sum int, err error) {
		err = attempts.EachFate(rundir.WithPacks(rundir.WithoutPacks(rundir.OS)), p.dir, run, "h", nil,
			func(f attempts.Fate) error {
				if f.State == attempts.Finished {
					sum += f.Outcome.Exit << (4 * f.Attempt.Job)
				}
				return nil
			})
		return sum, err
	}
	want, err := exits()
	must(t, err)
	found := 0
	check := func(what string, at int, bad []byte) {
		must(t, os.WriteFile(packs[0], bad, 0o600))
		got, err := exits()
		switch {
		case errors.Is(err, rundir.ErrDamagedPack):
			found++
		case got != want || err != nil:
			t.Errorf("%s %d: %#x instead of %#x, %v", what, at, got, want, err)
		}
	}
	directory := bytes.Index(whole, []byte("PK\x01\x02"))
	for at := range whole {
		if at < directory && at%16 != 0 && testing.Short() {
			continue // contents have checksums
		}
		bad := bytes.Clone(whole)
		bad[at] ^= []byte{1, 0x20, 0xff}[at%3]
		check("changed byte", at, bad)
		if at%16 == 0 {
			check("cut at", at, whole[:at])
		}
	}
	if found < len(whole)/10 {
		t.Errorf("damage was found %d times", found)
	}
}

// TestAPackOfAJobDoesNotPassForOurs checks that a file that a job has made with the name of a pack is never
// read instead of the pack that has the output. Without the status files of its attempts it is reported, and
// hides nothing. With them, both packs are named for a file that differs, and other files are still read. A
// second pack of the same files, which a killed packer leaves, is none.
func TestAPackOfAJobDoesNotPassForOurs(t *testing.T) {
	for _, name := range []string{"000.0.zip", "000.zzzzzzzzzzzzzzzzzzzzzzzzzzz.zip"} { // before and after ours
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			one, two := attemptID(1, 1), attemptID(2, 1)
			for _, id := range []jobs.AttemptID{one, two} {
				p.exit(id, "h", jobs.Outcome{})
				p.put(id, jobs.FileOut, []byte("ours"))
			}
			packer := &attempts.Packer{Disk: rundir.WithoutPacks(rundir.OS), Dir: p.dir, Run: run, May: all}
			if n, err := packer.Pack("000"); n != 2 || err != nil {
				t.Fatalf("packed %d attempts, %v", n, err)
			}
			above := filepath.Join(p.dir, "attempts")
			packs, err := filepath.Glob(filepath.Join(above, "000.*.zip"))
			must(t, err)
			copied, err := os.ReadFile(packs[0])
			must(t, err)
			must(t, os.WriteFile(filepath.Join(above, "000.copy.zip"), copied, 0o600))
			read := func(id jobs.AttemptID) string {
				d := rundir.WithPacks(rundir.WithoutPacks(rundir.OS)) // as another process
				b, err := rundir.ReadFile(d, p.path(id, jobs.FileOut))
				if err != nil {
					return err.Error()
				}
				return string(b)
			}
			if got := read(one); got != "ours" {
				t.Errorf("with a copy: %s", got)
			}
			fake := filepath.Join(above, name)
			must(t, os.WriteFile(fake, zipOf(t, zip.Store, "1.1.out", "fake"), 0o600))
			if got := read(one); got != "ours" {
				t.Errorf("with a pack without a status file: %s", got)
			}
			err = attempts.EachFate(rundir.WithPacks(rundir.WithoutPacks(rundir.OS)), p.dir, run, "h", nil,
				func(attempts.Fate) error { return nil })
			if !errors.Is(err, rundir.ErrDamagedPack) || !strings.Contains(err.Error(), name) ||
				!strings.Contains(err.Error(), "1.1.out without 1.1.status") {
				t.Errorf("a pack without a status file: %v", err)
			}
			status := string(finished(one, "h", jobs.Outcome{}))
			must(t, os.WriteFile(fake, zipOf(t, zip.Store, "1.1.out", "fake", "1.1.status", status), 0o600))
			if got := read(one); !strings.Contains(got, name) || !strings.Contains(got, "has another 1.1.out") {
				t.Errorf("with a pack of a job: %s", got)
			}
			if got := read(two); got != "ours" {
				t.Errorf("another output: %s", got)
			}
		})
	}
}

// zipOf returns a zip archive of files: their names and contents.
func zipOf(t *testing.T, method uint16, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for f := range slices.Chunk(files, 2) {
		w, err := z.CreateHeader(&zip.FileHeader{Name: f[0], Method: method})
		must(t, err)
		_, err = w.Write([]byte(f[1]))
		must(t, err)
	}
	must(t, z.Close())
	return b.Bytes()
}

// TestPacksOfOtherProgramsAreRead checks that an archive which another program has made of the files of
// whole attempts is read like ours, though it has longer fields before the contents, as those of `zip -0`,
// and that the error for any other names the difference.
func TestPacksOfOtherProgramsAreRead(t *testing.T) {
	p, id := newPlace(t), attemptID(1, 1)
	status := string(finished(id, "h", jobs.Outcome{Exit: 3}))
	whole := zipOf(t, zip.Store, "1.1.out", "ours", "1.1.status", status)
	header := bytes.LastIndex(whole[:bytes.Index(whole, []byte("PK\x01\x02"))], []byte("PK\x03\x04"))
	binary.LittleEndian.PutUint16(whole[header+28:], 9)
	fields := []byte("UT\x05\x00\x01\x00\x00\x00\x00")
	longer := slices.Insert(bytes.Clone(whole), header+30+len("1.1.status"), fields...)
	end := longer[len(longer)-22:]
	binary.LittleEndian.PutUint32(end[16:], binary.LittleEndian.Uint32(end[16:])+9) // where the directory begins
	// The first file has the content of the second, too.
	overlapping := zipOf(t, zip.Store, "1.1.out", "", "1.1.status", status)
	entry := overlapping[bytes.Index(overlapping, []byte("PK\x01\x02")):]
	for _, at := range []int{20, 24} {
		binary.LittleEndian.PutUint32(entry[at:], uint32(len(overlapping)-30-len("1.1.out")))
	}
	for name, c := range map[string]struct {
		pack []byte
		want string
	}{
		"longer fields": {longer, ""},
		"cut fields":    {whole, "what is before the content of 1.1.status"},
		"compressed":    {zipOf(t, zip.Deflate, "1.1.status", status), "compressed"},
		"other name":    {zipOf(t, zip.Store, "000/1.1.status", status), `"000/1.1.status"`},
		"a name twice":  {zipOf(t, zip.Store, "1.1.status", status, "1.1.status", status), "two files 1.1.status"},
		"overlapping":   {overlapping, "not a valid zip file"},
		"other job":     {zipOf(t, zip.Store, "1001.1.status", status), `"1001.1.status"`},
	} {
		t.Run(name, func(t *testing.T) {
			p.put(attemptID(2, 1), jobs.FileOut, nil)
			must(t, os.WriteFile(filepath.Join(p.dir, "attempts", "000.other.zip"), c.pack, 0o600))
			disk, exit := rundir.WithPacks(rundir.WithoutPacks(rundir.OS)), 0
			err := attempts.EachFate(disk, p.dir, run, "h", nil, func(f attempts.Fate) error {
				exit = f.Outcome.Exit
				return nil
			})
			switch {
			case c.want == "" && (exit != 3 || err != nil):
				t.Errorf("exit code %d, %v", exit, err)
			case c.want != "" && (!errors.Is(err, rundir.ErrDamagedPack) || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want one about %s", err, c.want)
			}
		})
	}
}

// archive returns a zip archive with a directory of n entries without names. Its end claims that it has
// the given numbers of bytes and entries.
func archive(n int, size uint32, entries uint16) []byte {
	entry := append([]byte("PK\x01\x02"), make([]byte, 42)...)
	b := append(bytes.Repeat(entry, n), "PK\x05\x06\x00\x00\x00\x00"...)
	b = binary.LittleEndian.AppendUint16(b, entries)
	b = binary.LittleEndian.AppendUint16(b, entries)
	b = binary.LittleEndian.AppendUint32(b, size)
	return append(b, 0, 0, 0, 0, 0, 0)
}

// archiveAt returns a zip archive with an entry whose file begins at the given offset.
func archiveAt(offset int64) []byte {
	b := archive(1, 46+12, 1)
	binary.LittleEndian.PutUint16(b[30:], 12) // length of the extra field
	binary.LittleEndian.PutUint32(b[42:], math.MaxUint32)
	extra := binary.LittleEndian.AppendUint64([]byte{1, 0, 8, 0}, uint64(offset)) // of zip64
	return slices.Insert(b, 46, extra...)
}

// archive64 returns the end of a zip64 archive of 1<<42 bytes that claims to have n files. The last
// part of it is end.
func archive64(n uint64, end []byte) []byte {
	b := append([]byte("PK\x06\x06"), make([]byte, 20)...)
	for _, v := range []uint64{n, n, 0, 0} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	b = append(b, "PK\x06\x07\x00\x00\x00\x00"...)
	b = binary.LittleEndian.AppendUint64(b, 1<<42-98) // where it begins
	b = binary.LittleEndian.AppendUint32(b, 1)
	return append(b, end...)
}

// writeSparse writes a file of a size that ends with end.
func writeSparse(path string, size int64, end []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(end, size-int64(len(end)))
	return errors.Join(err, f.Close())
}

// TestPackOfAnEarlierVersionIsRead checks that a pack with so many files that it needs the large numbers
// of zip64 is read: earlier versions put all files of a directory into one.
func TestPackOfAnEarlierVersionIsRead(t *testing.T) {
	const n = 1<<16 + 100
	p := newPlace(t)
	must(t, os.MkdirAll(filepath.Join(p.dir, "attempts"), 0o700))
	f, err := os.Create(filepath.Join(p.dir, "attempts", "000.aaaaaaaaaaaa.zip"))
	must(t, err)
	z := zip.NewWriter(f)
	for i := range n {
		_, err := z.CreateRaw(&zip.FileHeader{Name: attemptID(1, i+1).String() + ".status", Method: zip.Store,
			Modified: time.Unix(1, 0)})
		must(t, err)
	}
	must(t, errors.Join(z.Close(), f.Close()))
	names, err := rundir.OS.Names(filepath.Join(p.dir, "attempts", "000"))
	if len(names) != n || err != nil {
		t.Errorf("%d files, %v", len(names), err)
	}
}

// TestPackOfManyAttemptsIsRead checks that no pack has more files than readers accept.
func TestPackOfManyAttemptsIsRead(t *testing.T) {
	const n = 4500
	p := newPlace(t)
	for i := range n {
		p.exit(attemptID(1, i+1), "h", jobs.Outcome{})
	}
	packer := &attempts.Packer{Disk: rundir.OS, Dir: p.dir, Run: run, May: all}
	if packed, err := packer.Pack("000"); packed != n || err != nil {
		t.Fatalf("packed %d attempts, %v", packed, err)
	}
	names, err := os.ReadDir(filepath.Join(p.dir, "attempts"))
	must(t, err)
	if len(names) != 3 { // the directory and two packs
		t.Errorf("names in the directory of attempts: %v", names)
	}
	found := 0
	must(t, attempts.EachFate(rundir.OS, p.dir, run, "", nil, func(f attempts.Fate) error {
		found++
		return nil
	}))
	if found != n {
		t.Errorf("found %d attempts", found)
	}
}

// TestOffersWaitForRecords checks that attempts may be packed only when their records are durable, the oldest
// first, that no attempts wait for older ones, and that those that were put back are tried again no sooner
// than was asked for.
func TestOffersWaitForRecords(t *testing.T) {
	var o attempts.Offers
	offer := func(job int, records int64) {
		o.Add(attempts.Offer{Attempts: []jobs.AttemptID{attemptID(job, 1)}, Records: records})
	}
	o.Add(attempts.Offer{Records: 1})
	offer(1, 5)
	offer(2, 9)
	offer(3, 4)
	for i, c := range []struct {
		now     time.Duration
		durable int64
		want    int
	}{{0, 3, 0}, {0, 4, 3}, {time.Second, 4, 0}, {time.Minute, 5, 1}, {2 * time.Minute, 8, 0},
		{2 * time.Minute, 9, 2}, {time.Hour, 9, 0}} {
		f, ok := o.Next(c.now, c.durable)
		if ok != (c.want > 0) || ok && f.Attempts[0] != attemptID(c.want, 1) {
			t.Errorf("%d: got %v, %t; want job %d", i, f, ok, c.want)
		}
		if c.want == 1 {
			o.PutBack(f, c.now+time.Second)
			if early, ok := o.Next(c.now+time.Second-1, c.durable); ok {
				t.Errorf("before the time for which it was put back: %v", early)
			}
			if again, ok := o.Next(c.now+time.Second, c.durable); !ok || again.Attempts[0] != f.Attempts[0] {
				t.Errorf("after it was put back: %v, %t", again, ok)
			}
		}
	}
}

// TestPackWithoutAFreeFile checks that a packer that has reserved a file packs on a disk on which no more
// files can be created, again and again, also if others take what it frees after its own next file, and
// that it leaves no file of its own.
func TestPackWithoutAFreeFile(t *testing.T) {
	server := memdisk.New()
	m := server.Mount("m")
	p := &attempts.Packer{Disk: m, Dir: "/run", Run: run, May: all}
	makeDirs(t, m, "/run")
	must(t, p.Reserve())
	fillDisk := func() {
		for job := server.NumFiles(); job < 50; job++ {
			must(t, rundir.WriteNew(m, jobs.AttemptFile("/run", attemptID(job, server.NumFiles()), jobs.FileStatus),
				finished(attemptID(job, server.NumFiles()), "h", jobs.Outcome{})))
		}
	}
	server.MaxFiles = 50
	for round := range 5 {
		must(t, p.Reserve())
		fillDisk()
		if err := rundir.WriteNew(m, "/run/one more", nil); !rundir.IsFull(err) {
			t.Fatalf("round %d: another file: %v", round, err)
		}
		if n, err := p.Pack("000"); n < 20 || err != nil {
			t.Fatalf("round %d: packed %d attempts, %v", round, n, err)
		}
	}
	must(t, p.Reserve())
	must(t, p.Close())
	names, err := m.Names("/run/attempts")
	if len(names) != 1+5 || err != nil {
		t.Errorf("in the directory of attempts: %v, %v", names, err)
	}
}

// TestFailedPackKeepsTheReservedFile checks that a pack that cannot be written to its end leaves the
// reserved file, empty, for the next one.
func TestFailedPackKeepsTheReservedFile(t *testing.T) {
	server := memdisk.New()
	m := server.Mount("m")
	makeDirs(t, m, "/run")
	fill(t, m, "/run")
	p := &attempts.Packer{Disk: m, Dir: "/run", Run: run, May: all}
	must(t, p.Reserve())
	server.MaxFiles = server.NumFiles()
	before := seen(t, m, "/run")
	m.Fault = func(op, path string) error {
		if op == "write" {
			return memdisk.ShortWrite{N: 100, Err: syscall.EDQUOT}
		}
		return nil
	}
	if n, err := p.Pack("000"); n != 0 || !rundir.IsFull(err) {
		t.Errorf("packed %d attempts, %v", n, err)
	}
	m.Fault = nil
	if n, err := p.Pack("000"); n == 0 || err != nil || seen(t, rundir.WithPacks(m), "/run") != before {
		t.Errorf("packed %d attempts, %v:\n%s", n, err, seen(t, rundir.WithPacks(m), "/run"))
	}
}

// TestPackTakesOnlyAttemptsOfItsHost checks that a host packs nothing of another host that keeps its
// attempts in the same directory, and that a temporary file has the name that the caller wants.
func TestPackTakesOnlyAttemptsOfItsHost(t *testing.T) {
	p := newPlace(t)
	for job := 1; job <= 4; job++ {
		p.exit(attemptID(job, 1), []string{"even", "odd"}[job%2], jobs.Outcome{})
	}
	temp := filepath.Join(p.dir, "attempts", ".new.even.0.1.1.1")
	packer := &attempts.Packer{Disk: rundir.OS, Dir: p.dir, Run: run, Host: "even", May: all, Temp: func() string {
		must(t, os.WriteFile(temp, nil, 0o600)) // it exists, so no pack can be written there
		return temp
	}}
	if n, err := packer.Pack("000"); n != 0 || !errors.Is(err, fs.ErrExist) {
		t.Fatalf("packed %d attempts, %v", n, err)
	}
	packer.Temp = func() string { return temp }
	if n, err := packer.Pack("000"); n != 2 || err != nil {
		t.Fatalf("packed %d attempts, %v", n, err)
	}
	left, err := rundir.WithoutPacks(rundir.OS).Names(filepath.Join(p.dir, "attempts", "000"))
	must(t, err)
	if want := []string{"1.1.status", "3.1.status"}; !slices.Equal(left, want) {
		t.Errorf("files that are left: %v", left)
	}
}

// TestPackListsOneDirectory checks that the time to pack the attempts of a directory does not grow with
// the packs of all others, of which a large run has thousands.
func TestPackListsOneDirectory(t *testing.T) {
	p := newPlace(t)
	p.exit(attemptID(1, 1), "a", jobs.Outcome{})
	d := &disk{Disk: rundir.WithoutPacks(rundir.OS)}
	packer := &attempts.Packer{Disk: d, Dir: p.dir, Run: run, May: func(jobs.AttemptID) bool { return false }}
	for _, shard := range []string{"000", "001"} {
		if _, err := packer.Pack(shard); err != nil {
			t.Error(err)
		}
	}
	if want := []string{"000", "001"}; !slices.Equal(d.listed, want) {
		t.Errorf("listed %v, want %v", d.listed, want)
	}
}

// endingDisk calls end before it looks at a status file.
type endingDisk struct {
	rundir.Disk
	end func()
}

func (d endingDisk) Lstat(path string) (os.FileInfo, error) {
	if strings.HasSuffix(path, string(jobs.FileStatus)) {
		d.end()
	}
	return d.Disk.Lstat(path)
}

// TestPackHasWholeOutputs checks that all of an output is in a pack if the attempt ends while it is packed.
func TestPackHasWholeOutputs(t *testing.T) {
	p, id := newPlace(t), attemptID(1, 1)
	p.claim(id, "a", false)
	p.put(id, jobs.FileOut, []byte("begin"))
	d := endingDisk{rundir.WithoutPacks(rundir.OS), func() {
		p.put(id, jobs.FileOut, []byte("begin and end"))
		p.exit(id, "a", jobs.Outcome{})
	}}
	if n, err := (&attempts.Packer{Disk: d, Dir: p.dir, Run: run, May: all}).Pack("000"); n != 1 || err != nil {
		t.Fatalf("packed %d attempts, %v", n, err)
	}
	if b, err := rundir.ReadFile(rundir.OS, p.path(id, jobs.FileOut)); string(b) != "begin and end" || err != nil {
		t.Errorf("the pack has %q, %v", b, err)
	}
}

// staleDisk has cached that outputs are empty. As on NFS, it asks the server when a file is opened.
type staleDisk struct {
	rundir.Disk
	empty string // an empty file
}

func (d staleDisk) Lstat(path string) (os.FileInfo, error) {
	if strings.HasSuffix(path, string(jobs.FileStatus)) {
		return d.Disk.Lstat(path)
	}
	return d.Disk.Lstat(d.empty)
}

// TestPackOpensOutputs checks that an output is in a pack although the size of its file is out of date.
func TestPackOpensOutputs(t *testing.T) {
	p, id := newPlace(t), attemptID(1, 1)
	p.put(id, jobs.FileOut, []byte("all of it"))
	p.exit(id, "a", jobs.Outcome{})
	d := staleDisk{rundir.WithoutPacks(rundir.OS), filepath.Join(t.TempDir(), "empty")}
	must(t, os.WriteFile(d.empty, nil, 0o600))
	if n, err := (&attempts.Packer{Disk: d, Dir: p.dir, Run: run, May: all}).Pack("000"); n != 1 || err != nil {
		t.Fatalf("packed %d attempts, %v", n, err)
	}
	if b, err := rundir.ReadFile(rundir.OS, p.path(id, jobs.FileOut)); string(b) != "all of it" || err != nil {
		t.Errorf("the pack has %q, %v", b, err)
	}
}

// TestOldRemainsOfPacksAreRemoved checks that a pack that was never finished goes, but not one that
// another process may be writing.
func TestOldRemainsOfPacksAreRemoved(t *testing.T) {
	p := newPlace(t)
	p.exit(attemptID(1, 1), "h", jobs.Outcome{})
	above := filepath.Join(p.dir, "attempts")
	now := time.Now()
	for name, age := range map[string]time.Duration{".new.000.old.zip": 25 * time.Hour, ".new.000.young.zip": time.Hour,
		"000.old.zip": 25 * time.Hour, ".new.notes.zip": 25 * time.Hour} {
		path := filepath.Join(above, name)
		must(t, os.WriteFile(path, nil, 0o600))
		must(t, os.Chtimes(path, now.Add(-age), now.Add(-age)))
	}
	must(t, attempts.SweepPacks(rundir.OS, p.dir, now))
	names, err := rundir.OS.Names(above)
	must(t, err)
	if want := []string{".new.000.young.zip", ".new.notes.zip", "000", "000.old.zip"}; !slices.Equal(names, want) {
		t.Errorf("left: %v", names)
	}
}

// TestDamagedPackIsAlwaysReported checks that a damaged pack is reported as such if the directory of its
// attempts is gone, or if something else cannot be read, too. Otherwise jobs whose records are lost run
// again.
func TestDamagedPackIsAlwaysReported(t *testing.T) {
	for name, dirs := range map[string][]string{"directory": {"001"}, "none": {""}, "other error": {"", "000"}} {
		t.Run(name, func(t *testing.T) {
			above := filepath.Join(t.TempDir(), "attempts")
			must(t, os.MkdirAll(filepath.Join(above, dirs[0]), 0o700))
			for _, file := range append(dirs[1:], "001.aaaaaaaaaaaa.zip") {
				must(t, os.WriteFile(filepath.Join(above, file), []byte("neither a directory nor a pack"), 0o600))
			}
			disk := rundir.WithPacks(rundir.WithoutPacks(rundir.OS))
			err := attempts.EachFate(disk, filepath.Dir(above), run, "h", nil, func(attempts.Fate) error { return nil })
			if !errors.Is(err, rundir.ErrDamagedPack) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// alteringDisk changes a byte of each write.
type alteringDisk struct{ rundir.Disk }

type alteringFile struct{ rundir.File }

func (d alteringDisk) OpenFile(path string, flag int, perm fs.FileMode) (rundir.File, error) {
	f, err := d.Disk.OpenFile(path, flag, perm)
	return alteringFile{f}, err
}

func (f alteringFile) WriteAt(b []byte, at int64) (int, error) {
	b = bytes.Clone(b)
	b[len(b)/2] ^= 1
	return f.File.WriteAt(b, at)
}

// TestPackIsReadAgain checks that no file is removed, and no pack stays, if the pack has another content
// than was written.
func TestPackIsReadAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	makeDirs(t, rundir.OS, dir)
	fill(t, rundir.OS, dir)
	before := seen(t, rundir.OS, dir)
	p := &attempts.Packer{Disk: alteringDisk{rundir.WithoutPacks(rundir.OS)}, Dir: dir, Run: run, May: all}
	if n, err := p.Pack("000"); n != 0 || err == nil || !strings.Contains(err.Error(), "another content") {
		t.Errorf("packed %d attempts, %v", n, err)
	}
	if got := seen(t, rundir.OS, dir); got != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, got)
	}
	if packs, _ := filepath.Glob(filepath.Join(dir, "attempts", "*.zip")); len(packs) > 0 {
		t.Errorf("packs that are left: %v", packs)
	}
}
