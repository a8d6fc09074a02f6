package cli

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"strings"
	"testing"

	"dcs-tui/hosts"
	"dcs-tui/internal/cli/console"
)

// elfWith is a program of one segment.
func elfWith(segment elf.ProgType) []byte {
	var b bytes.Buffer
	head := elf.Header64{Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: 1, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1, Shentsize: 64}
	copy(head.Ident[:], "\x7fELF\x02\x01\x01")
	binary.Write(&b, binary.LittleEndian, head)
	binary.Write(&b, binary.LittleEndian, elf.Prog64{Type: uint32(segment)})
	return b.Bytes()
}

func TestNeedsLibraries(t *testing.T) {
	for _, test := range []struct {
		name    string
		program []byte
		want    bool
	}{
		{"static", elfWith(elf.PT_LOAD), false},
		{"dynamic", elfWith(elf.PT_INTERP), true},
		{"a script", []byte("#!/bin/sh\n"), false},
		{"empty", nil, false},
		{"cut off", elfWith(elf.PT_INTERP)[:80], false},
	} {
		if got := needsLibraries(bytes.NewReader(test.program)); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

// The warning is for hosts that the program is sent to: this machine can start
// what it has started.
func TestTheWarningAboutTheBinary(t *testing.T) {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	dynamic := needsLibraries(self) // of this test, as the machine's compiler makes it
	for link, want := range map[string]bool{"local": false, "ssh": dynamic, "docker exec -i box": dynamic} {
		var b strings.Builder
		a := &app{con: console.To(&b)}
		a.checkBinary([]*hosts.Host{{Name: "here", Link: "local"}, {Name: "there", Link: link}})
		if got := strings.Contains(b.String(), "make build"); got != want || strings.Count(b.String(), "\n") > 1 {
			t.Errorf("%s: %q", link, b.String())
		}
	}
}
