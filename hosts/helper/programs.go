package helper

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"dcs-tui/internal/platform"
)

// program is an executable of ours for one kind of host.
type program struct {
	size int64
	id   string // part of its name on hosts: hexadecimal, and different for each content
	name string // for messages

	content func() (io.Reader, error) // a reader of the program itself
	sum     func() (string, error)    // the SHA-256 of the content in hex; blocks while it is read once
	packed  func() ([]byte, error)    // the compressed content; blocks while it is made once
	close   func() error
}

// newProgram returns a program with that content. Its sum is computed when it is first needed.
func newProgram(name string, size int64, content func() (io.Reader, error)) *program {
	b := &program{size: size, name: name, content: content, close: func() error { return nil }}
	b.sum = sync.OnceValues(func() (string, error) {
		h := sha256.New()
		r, err := content()
		if err == nil {
			_, err = io.Copy(h, r)
		}
		if err != nil {
			return "", fmt.Errorf("read %s: %w", name, err)
		}
		return hex.EncodeToString(h.Sum(nil)), nil
	})
	return b
}

// loadCarried returns the program for a kind of host, such as "linux-arm64", from those that this
// program carries. They are compressed, and they are sent as they are. The error is fs.ErrNotExist if
// there is none.
func loadCarried(programs fs.FS, kind string) (*program, error) {
	if programs == nil {
		return nil, fs.ErrNotExist
	}
	packed, err := fs.ReadFile(programs, kind+".gz")
	if err != nil {
		return nil, err
	}
	if len(packed) < 4 {
		return nil, fmt.Errorf("the program for %s in this dcs-tui is damaged", kind)
	}
	size := binary.LittleEndian.Uint32(packed[len(packed)-4:]) // RFC 1952: ISIZE
	b := newProgram("the program for "+kind+" in this dcs-tui", int64(size), func() (io.Reader, error) {
		return gzip.NewReader(bytes.NewReader(packed))
	})
	b.packed = func() ([]byte, error) { return packed, nil }
	b.id = fmt.Sprintf("%x", sha256.Sum256(packed))
	return b, nil
}

// loadBinary opens a program. The file stays open, so its name may be deleted or reused. The id comes
// from the build id that Go's linker wrote into it, because hashing the whole file would delay the
// first connection. A program without a build id is hashed.
func loadBinary(path, name string) (*program, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	b := newProgram(name, info.Size(), func() (io.Reader, error) {
		return io.NewSectionReader(f, 0, info.Size()), nil
	})
	b.close = f.Close
	b.packed = sync.OnceValues(func() ([]byte, error) {
		var buf bytes.Buffer
		z, err := gzip.NewWriterLevel(&buf, gzip.BestSpeed)
		if err == nil {
			_, err = io.Copy(z, io.NewSectionReader(f, 0, b.size))
		}
		if err == nil {
			err = z.Close()
		}
		if err != nil {
			return nil, fmt.Errorf("compress %s: %w", name, err)
		}
		return buf.Bytes(), nil
	})
	if built := buildID(f); built != nil {
		b.id = fmt.Sprintf("%x", sha256.Sum256(fmt.Append(built, b.size)))
	} else if b.id, err = b.sum(); err != nil {
		f.Close()
		return nil, err
	}
	return b, nil
}

// NameOnHosts returns the name of the file that the program at path becomes on a host. Tests put it
// there, or remove it.
func NameOnHosts(path string) (string, error) {
	b, err := loadBinary(path, path)
	if err != nil {
		return "", err
	}
	return "dcs-tui-" + b.id, b.close()
}

// buildID returns the note of a Go program that holds its build id. It returns nil if there is
// none.
func buildID(f io.ReaderAt) []byte {
	program, err := elf.NewFile(f)
	if err != nil {
		return nil
	}
	note := program.Section(".note.go.buildid")
	if note == nil || note.Size > maxBuildID {
		return nil
	}
	b, err := note.Data()
	if err != nil || !bytes.ContainsRune(b, '/') { // -ldflags=-buildid= leaves it empty
		return nil
	}
	return b
}

// maxBuildID bounds the note, in bytes. Go writes about 100.
const maxBuildID = 4 << 10

// binaries finds the program for a kind of machine: one that this program carries, this program
// itself, or one beside it that was built for that machine.
type binaries struct {
	carried fs.FS // linux-amd64.gz and so on; may be nil
	whole   bool  // with all commands: carried is nil, because those have only the helper
	own     func() (*program, error)
	dir     func() (string, error) // directory of our executable

	mu    sync.Mutex
	found map[string]*program // by kind, such as "linux-arm64"
}

func newBinaries(carried fs.FS) *binaries {
	return &binaries{
		carried: carried,
		own:     ownBinary,
		dir: func() (string, error) {
			exe, err := os.Executable()
			if err == nil {
				exe, err = filepath.EvalSymlinks(exe) // macOS returns the link
			}
			return filepath.Dir(exe), err
		},
		found: map[string]*program{},
	}
}

// wholeBinaries returns the programs that have all commands.
func wholeBinaries() *binaries {
	b := newBinaries(nil)
	b.whole = true
	return b
}

// own is this process's program. It does not use sync.OnceValues, because the linker would keep the
// initializer, and all that it needs, in the program for hosts.
var own struct {
	once    sync.Once
	program *program
	err     error
}

// ownBinary returns this process's program, opened once.
func ownBinary() (*program, error) {
	own.once.Do(func() {
		var path string
		if path, own.err = platform.Executable(); own.err != nil {
			own.err = fmt.Errorf("find our own executable: %w", own.err)
			return
		}
		own.program, own.err = loadBinary(path, "our own program")
	})
	return own.program, own.err
}

// carriedArchs are the architectures for which a release carries programs.
var carriedArchs = []string{"amd64", "arm64"}

// prepare loads the program that most hosts need.
func (b *binaries) prepare() {
	arch := runtime.GOARCH
	if !slices.Contains(carriedArchs, arch) {
		arch = carriedArchs[0]
	}
	b.forSystem("Linux", arch)
}

// forSystem returns the program for a host with that output of uname. Without one, the advice says
// what to do.
func (b *binaries) forSystem(kernel, machine string) (_ *program, advice string, err error) {
	goos, goarch := strings.ToLower(kernel), archOf(machine)
	none := fmt.Errorf("the host is %s %s, and this dcs-tui has no program for that", kernel, machine)
	if goos != "linux" {
		return nil, "only Linux hosts can be used", none
	}
	if goarch == "" {
		return nil, "dcs-tui does not know this architecture", none
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	kind := goos + "-" + goarch
	if p := b.found[kind]; p != nil {
		return p, "", nil
	}
	p, err := loadCarried(b.carried, kind)
	isOurs := goarch == runtime.GOARCH || goarch == "amd64" && runtime.GOARCH == "386"
	switch {
	case !errors.Is(err, fs.ErrNotExist):
	case platform.RunsJobs && isOurs:
		p, err = b.own()
	default:
		p, advice, err = b.beside(kind, goarch, none)
	}
	if err == nil {
		b.found[kind] = p
	}
	return p, advice, err
}

// beside returns the program for a kind of host from the directory of ours. If there is none, it
// returns the error none, and advice.
func (b *binaries) beside(kind, goarch string, none error) (_ *program, advice string, err error) {
	dir, err := b.dir()
	if err != nil {
		return nil, "", fmt.Errorf("find our own executable: %w", err)
	}
	path := filepath.Join(dir, "dcs-tui-"+kind)
	p, err := loadBinary(path, path)
	if !errors.Is(err, fs.ErrNotExist) {
		return p, "", err
	}
	build := "build one from the same sources: CGO_ENABLED=0 GOOS=linux GOARCH=" + goarch + " go build -o " + path
	if b.whole {
		return nil, build + " .", none
	}
	advice = build + " ./hosts/helper/hostprog"
	if slices.Contains(carriedArchs, goarch) {
		advice = "use a release or `make build`: such a dcs-tui has the programs for linux/amd64 and linux/arm64; " +
			"or " + advice
	}
	return nil, advice, none
}

// archOf translates the machine of uname to Go's name, or returns "".
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
