package client

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"weak"
)

// binary is a program of ours that can be sent to hosts of its kind. The file
// stays open, so it does not matter if its name is deleted or given to another.
type binary struct {
	file *os.File
	size int64
	hash string // sha256 in hex
	name string // for messages

	mu     sync.Mutex
	packed weak.Pointer[bytes.Buffer] // gzip'd; kept only while somebody sends it
}

func loadBinary(path, name string) (*binary, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return &binary{file: f, size: n, hash: hex.EncodeToString(h.Sum(nil)), name: name}, nil
}

// plain returns the content as it is.
func (b *binary) plain() (io.Reader, int64, error) {
	return io.NewSectionReader(b.file, 0, b.size), b.size, nil
}

// gzipped returns the content compressed. Compressing is done once for all who
// send at the same time; the others wait.
func (b *binary) gzipped() (io.Reader, int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	buf := b.packed.Value()
	if buf == nil {
		buf = &bytes.Buffer{}
		z, err := gzip.NewWriterLevel(buf, gzip.BestSpeed)
		if err != nil {
			return nil, 0, err
		}
		if _, err = io.Copy(z, io.NewSectionReader(b.file, 0, b.size)); err == nil {
			err = z.Close()
		}
		if err != nil {
			return nil, 0, fmt.Errorf("compress %s: %w", b.name, err)
		}
		b.packed = weak.Make(buf)
	}
	return &held{bytes.NewReader(buf.Bytes()), buf}, int64(buf.Len()), nil
}

// held keeps the whole buffer alive, for the weak pointer to it.
type held struct {
	io.Reader
	buf *bytes.Buffer
}

// binaries finds the program for a kind of machine: our own, or one built for
// that machine beside ours.
type binaries struct {
	goos, goarch string // what our own runs on
	own          func() (*binary, error)
	dir          func() (string, error) // where our executable is

	mu    sync.Mutex
	other map[string]*binary // by "linux-arm64"
}

func newBinaries() *binaries {
	return &binaries{
		goos: runtime.GOOS, goarch: runtime.GOARCH,
		own: ownBinary,
		dir: func() (string, error) {
			exe, err := os.Executable()
			return filepath.Dir(exe), err
		},
		other: map[string]*binary{},
	}
}

// ownBinary is this process's program, hashed once. /proc/self/exe still opens
// it when the file was deleted or replaced meanwhile.
var ownBinary = sync.OnceValues(func() (*binary, error) {
	return loadBinary("/proc/self/exe", "our own program")
})

// errNoBinary says that there is no program for that machine.
type errNoBinary struct {
	kernel, machine string
	advice          string
}

func (e *errNoBinary) Error() string {
	return fmt.Sprintf("the host is %s %s, and this dcs-tui was not built for that", e.kernel, e.machine)
}

// forSystem returns the program for a host on which uname says so.
func (b *binaries) forSystem(kernel, machine string) (*binary, error) {
	goos, goarch := strings.ToLower(kernel), archOf(machine)
	if goos == b.goos && (goarch == b.goarch || goarch == "amd64" && b.goarch == "386") {
		return b.own()
	}
	no := &errNoBinary{kernel: kernel, machine: machine}
	if goos != "linux" {
		no.advice = "only Linux hosts can be used"
		return nil, no
	}
	if goarch == "" {
		no.advice = "Go names no such architecture that we know"
		return nil, no
	}
	dir, err := b.dir()
	if err != nil {
		return nil, fmt.Errorf("find our own executable: %w", err)
	}
	kind := goos + "-" + goarch
	path := filepath.Join(dir, "dcs-tui-"+kind)
	b.mu.Lock()
	defer b.mu.Unlock()
	if o := b.other[kind]; o != nil {
		return o, nil
	}
	o, err := loadBinary(path, path)
	if errors.Is(err, fs.ErrNotExist) {
		no.advice = fmt.Sprintf("build it from the same sources: CGO_ENABLED=0 GOOS=%s GOARCH=%s go build -o %s .", goos, goarch, path)
		return nil, no
	}
	if err != nil {
		return nil, err
	}
	b.other[kind] = o
	return o, nil
}

// archOf translates the machine of uname to Go's word, "" when it is unknown.
func archOf(machine string) string {
	switch machine {
	case "x86_64", "amd64":
		return "amd64"
	case "aarch64", "arm64":
		return "arm64"
	case "i386", "i486", "i586", "i686":
		return "386"
	case "loongarch64":
		return "loong64"
	case "ppc64", "ppc64le", "riscv64", "s390x", "mips64":
		return machine
	}
	if strings.HasPrefix(machine, "armv") {
		return "arm"
	}
	return ""
}
