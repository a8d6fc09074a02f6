package client

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"dcs-tui/hosts"
	"dcs-tui/hosts/helper/wire"
)

// TestMain: what Connect sends to the far side is this very test binary. There
// it answers __sum as the real one does and plays a helper for __host.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 {
		switch os.Args[1] {
		case "__sum":
			f, err := os.Open("/proc/self/exe")
			if err != nil {
				panic(err)
			}
			h := sha256.New()
			io.Copy(h, f)
			fmt.Printf("%x\n", h.Sum(nil))
			os.Exit(0)
		case "__host":
			os.Exit(fakeHost(os.Getenv("DCS_FAKE")))
		}
	}
	// Built with -race, each helper would sleep for a second when it exits.
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	goleak.VerifyTestMain(m)
}

// fakeHost plays a helper; how says what is wrong with it.
func fakeHost(how string) int {
	if how == "dies" {
		fmt.Fprintln(os.Stderr, "\x1b[31mno\x07 spool\x1b[0m here")
		return 3
	}
	r, w := wire.NewReader(os.Stdin), wire.NewWriter(os.Stdout)
	m, err := r.Read()
	if err != nil {
		fmt.Fprintln(os.Stderr, "open:", err)
		return 4
	}
	open := m.(*hosts.Open)
	exe, _ := os.Executable()
	var mask string
	if b, err := os.ReadFile("/proc/self/status"); err == nil {
		_, mask, _ = strings.Cut(string(b), "Umask:\t")
		mask, _, _ = strings.Cut(mask, "\n")
	}
	hello := &hosts.Hello{Version: open.Version, Dir: filepath.Dir(filepath.Dir(exe)), Spool: open.Host, BootID: mask, PID: os.Getpid()}
	switch how {
	case "mute":
		io.Copy(io.Discard, os.Stdin)
		return 0
	case "old":
		hello.Version = 99
	case "fenced":
		hello.FencedBy = 7
	case "cwd":
		hello.CwdError = "no such directory"
	case "workdir":
		hello.Error = "work_dir cannot be used: mkdir /proc/nowhere: no such file or directory; set work_dir for this host"
	case "full":
		hello.Error, hello.Passing = "no job can be run here, its files could not be written: no space left on device", true
	case "fatal":
		w.Write(hosts.Trouble{Text: "spool cannot be made", Fatal: true})
	}
	w.Write(hosts.Trouble{Text: "early"}, hello)
	for {
		m, err := r.Read()
		if err != nil {
			return 5
		}
		switch m := m.(type) {
		case *hosts.Ping:
			if how == "panics" {
				panic("the helper is broken")
			}
			if how == "aborts" { // prints its stacks and registers
				syscall.Kill(os.Getpid(), syscall.SIGABRT)
				select {}
			}
			w.Write(hosts.Beat{Seq: m.Seq})
		case *hosts.Bye:
			return 0
		}
	}
}
