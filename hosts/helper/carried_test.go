package helper

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"dcs-tui/hosts"
)

// carry returns programs for linux/amd64 and linux/arm64, and the text of each. Both are small
// scripts: they answer __sum, and play a helper that dies.
func carry(t *testing.T) (programs fstest.MapFS, texts map[string]string) {
	programs, texts = fstest.MapFS{}, map[string]string{}
	for _, kind := range []string{"linux-amd64", "linux-arm64"} {
		text := "#!/bin/sh\n[ $1 = __sum ] && { n=$(sha256sum <\"$0\"); echo ${n%% *}; exit 0; }\n" +
			"echo this is " + kind + " >&2\nexit 3\n"
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		fmt.Fprint(z, text)
		must(t, z.Close())
		programs[kind+".gz"], texts[kind] = &fstest.MapFile{Data: packed.Bytes()}, text
	}
	return programs, texts
}

// TestCarriedProgramIsChosenByTheHost checks that a host gets the carried program for the machine that
// its uname reports, whatever machine this is, and under a name that depends on its content. It is
// sent as it is to a host with gzip, and unpacked to another one.
func TestCarriedProgramIsChosenByTheHost(t *testing.T) {
	programs, texts := carry(t)
	for _, c := range []struct{ uname, link, kind string }{
		{"Linux aarch64", "ssh", "linux-arm64"},
		{"Linux aarch64", "local", "linux-arm64"},
		{"Linux x86_64", "ssh", "linux-amd64"},
		{"Linux x86_64", "local", "linux-amd64"},
	} {
		t.Run(c.uname+" "+c.link, func(t *testing.T) {
			f := newShellHost(t)
			dir := t.TempDir()
			file(t, filepath.Join(dir, "uname"), "#!/bin/sh\necho "+c.uname)
			f.env = []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
			sent := &counter{kept: &bytes.Buffer{}}
			f.wrap = func(s hosts.Stream) hosts.Stream { return tapped{s, sent} }
			conn := f.connector()
			conn.binaries = newBinaries(programs)
			conn.binaries.own = func() (*program, error) {
				t.Error("our own program was opened")
				return nil, os.ErrInvalid
			}
			for range 2 { // the second connection sends nothing
				_, err := f.connectVia(conn, c.link, "")
				if err == nil || !strings.Contains(err.Error(), "this is "+c.kind) {
					t.Fatalf("got %v, want the helper for %s", err, c.kind)
				}
			}
			packed := programs[c.kind+".gz"].Data
			name := fmt.Sprintf("dcs-tui-%x", sha256.Sum256(packed))
			if got, err := os.ReadFile(filepath.Join(f.base, "bin", name)); err != nil || string(got) != texts[c.kind] {
				t.Errorf("on the host: %q, %v", got, err)
			}
			want := packed
			if c.link == "local" {
				want = []byte(texts[c.kind])
			}
			if n := bytes.Count(sent.kept.Bytes(), want); n != 1 {
				t.Errorf("sent %d times in the right form", n)
			}
		})
	}
}

// TestHostsOfOtherArchitecturesWithCarriedPrograms checks that a program beside ours is used for an
// architecture that is not carried, and that a carried one is preferred to a program beside ours,
// which may be left from another version.
func TestHostsOfOtherArchitecturesWithCarriedPrograms(t *testing.T) {
	programs, texts := carry(t)
	b := newBinaries(programs)
	beside := t.TempDir()
	b.dir = func() (string, error) { return beside, nil }
	for _, kind := range []string{"linux-arm64", "linux-riscv64"} {
		file(t, filepath.Join(beside, "dcs-tui-"+kind), "beside")
	}
	for machine, want := range map[string]int{"aarch64": len(texts["linux-arm64"]), "riscv64": len("beside")} {
		p, advice, err := b.forSystem("Linux", machine)
		if err != nil || p.size != int64(want) {
			t.Fatalf("%s: got %v, %q, %v; want a program of %d bytes", machine, p, advice, err, want)
		}
		defer p.close()
	}
	if _, advice, err := b.forSystem("Linux", "s390x"); err == nil || strings.Contains(advice, "release") ||
		!strings.Contains(advice, "GOARCH=s390x go build -o "+beside+"/dcs-tui-linux-s390x ./hosts/helper/hostprog") {
		t.Errorf("s390x: advice %q, %v", advice, err)
	}
}

// TestStandbyHostsGetTheWholeProgram checks that a host that starts a standby dispatcher gets a
// program that has all commands: this one, and not the carried one, which has only the helper. For
// another architecture, the advice is to build such a program.
func TestStandbyHostsGetTheWholeProgram(t *testing.T) {
	programs, _ := carry(t)
	f := newShellHost(t)
	conn := f.connector()
	conn.binaries = newBinaries(programs)
	whole := filepath.Join(t.TempDir(), "whole")
	file(t, whole, "#!/bin/sh\n[ $1 = __sum ] && { n=$(sha256sum <\"$0\"); echo ${n%% *}; exit 0; }\n"+
		"echo this is whole >&2\nexit 3\n")
	conn.standbys.own = func() (*program, error) { return loadBinary(whole, "our own program") }
	open := &hosts.Open{Run: "r", Host: "h", Standby: true}
	_, err := conn.Connect(t.Context(), &hosts.Host{Name: "h", Link: "local"}, open)
	if err == nil || !strings.Contains(err.Error(), "this is whole") {
		t.Errorf("got %v, want the whole program", err)
	}
	if _, advice, err := conn.standbys.forSystem("Linux", "s390x"); err == nil ||
		!strings.HasSuffix(advice, "/dcs-tui-linux-s390x .") || strings.Contains(advice, "make build") {
		t.Errorf("s390x: advice %q, %v", advice, err)
	}
}

// TestDamagedCarriedProgramIsRefused checks that a program that is not what its compressed form says
// is not sent.
func TestDamagedCarriedProgramIsRefused(t *testing.T) {
	programs, _ := carry(t)
	for name, damage := range map[string]func([]byte) []byte{
		"cut":   func(b []byte) []byte { return b[:len(b)/2] },
		"empty": func([]byte) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			damaged := fstest.MapFS{}
			for file, f := range programs {
				damaged[file] = &fstest.MapFile{Data: damage(f.Data)}
			}
			f := newShellHost(t)
			conn := f.connector()
			conn.binaries = newBinaries(damaged)
			if _, err := f.connect(conn); err == nil || hosts.ClassOf(err) != hosts.Misconfigured ||
				!strings.Contains(err.Error(), "the program for linux-"+runtime.GOARCH+" in this dcs-tui") {
				t.Errorf("got %v", err)
			}
		})
	}
}
