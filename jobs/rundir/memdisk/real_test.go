package memdisk_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/memdisk"
)

// TestAgreesWithTheKernel checks that random calls on this disk and on the kernel's give the same
// names, bytes, sizes, kinds, and errors. The simulator relies on it.
func TestAgreesWithTheKernel(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	for seed := range uint64(40) {
		fake := script(seed, newDisk(t), "/w")
		within := t.TempDir()
		for _, real := range [][]string{
			script(seed, rundir.OS, t.TempDir()),
			script(seed, rundir.Within(within), within),
		} {
			for i := range real {
				if real[i] != fake[i] {
					t.Fatalf("seed %d, step %d: the kernel says\n%s\nand this disk says\n%s", seed, i, real[i], fake[i])
				}
			}
		}
	}
}

func newDisk(t testing.TB) *memdisk.Mount {
	t.Helper()
	m := memdisk.New().Mount("a")
	must(t, m.Mkdir("/w", 0o700))
	return m
}

// script does random operations below dir and returns the result of each.
func script(seed uint64, d rundir.Disk, dir string) []string {
	rng := rand.New(rand.NewPCG(seed, 1))
	var said []string
	open := map[int]rundir.File{}
	path := func() string {
		parts := []string{"", "d", "d", "d/e"}
		return filepath.Join(dir, parts[rng.IntN(4)], string("abde"[rng.IntN(4)]))
	}
	say := func(what string, err error, more ...any) {
		text := what + " " + fmt.Sprint(more...)
		var no syscall.Errno
		switch {
		case errors.As(err, &no):
			text += " error " + no.Error()
		case errors.Is(err, io.EOF):
			text += " EOF"
		case errors.Is(err, fs.ErrClosed):
			// The kernel's error when package os is bypassed.
			text += " error " + syscall.EBADF.Error()
		case err != nil:
			text += " error " + err.Error()
		}
		said = append(said, strings.ReplaceAll(text, dir, ""))
	}
	flags := []int{os.O_RDONLY, os.O_RDWR, os.O_WRONLY, os.O_RDWR | os.O_CREATE, os.O_RDWR | os.O_CREATE | os.O_EXCL,
		os.O_WRONLY | os.O_CREATE | os.O_TRUNC}
	for i := range 400 {
		k := rng.IntN(4)
		f := open[k]
		switch op := rng.IntN(14); {
		case op == 0:
			p := path()
			say("mkdir "+p, d.Mkdir(p, 0o711))
		case op == 1:
			p := path()
			if p == filepath.Dir(p) {
				continue
			}
			say("remove "+p, d.Remove(p))
		case op == 2:
			from, to := path(), path()
			if filepath.Dir(from) != filepath.Dir(to) || strings.HasPrefix(to, from+"/") ||
				strings.HasPrefix(from, to+"/") {
				continue
			}
			say("rename "+from+" "+to, d.Rename(from, to))
		case op == 3:
			p := filepath.Dir(path())
			names, err := d.Names(p)
			say("list "+p, err, names)
		case op == 4:
			p := path()
			info, err := d.Stat(p)
			if err != nil {
				say("stat "+p, err)
				continue
			}
			size := info.Size()
			if info.IsDir() {
				size = 0
			}
			say("stat "+p, err, info.Name(), " ", info.Mode(), " ", size)
		case op == 5 || f == nil:
			if f != nil {
				say("close", f.Close())
				delete(open, k)
			}
			p := path()
			if info, err := d.Stat(p); err == nil && info.IsDir() {
				continue // unlike this disk, the kernel opens directories
			}
			flag := flags[rng.IntN(len(flags))]
			f, err := d.OpenFile(p, flag, 0o640)
			say(fmt.Sprintf("open %s %x", p, flag), err)
			if err == nil {
				open[k] = f
			}
		case op < 9:
			b := []byte(strings.Repeat(string(rune('a'+i%26)), 1+rng.IntN(30)))
			n, err := f.WriteAt(b, rng.Int64N(60))
			say("write", err, n)
		case op < 12:
			b := make([]byte, 1+rng.IntN(80))
			n, err := f.ReadAt(b, rng.Int64N(60))
			say("read", err, n, string(b))
		case op == 12:
			if i%2 == 0 {
				say("truncate", f.Truncate(rng.Int64N(60)))
			} else if i%5 == 0 {
				say("close", f.Close())
			}
		default:
			size, err := f.Size()
			say("size", err, size)
			say("sync", f.Sync())
		}
	}
	for _, f := range open {
		_ = f.Close()
	}
	return said
}
