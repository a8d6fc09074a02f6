package sshlink

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dcs-tui/hosts"
	"dcs-tui/hosts/hosttest"
	"dcs-tui/hosts/sshconf"
)

// Issue 4.3: a socket on another machine is reached through its sshd; of one that is
// not there, or an sshd that forbids it, the error says what it may be.
func TestDialSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "dcs")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			io.Copy(c, c)
			c.Close()
		}
	}()
	s := hosttest.StartSSHD(t, hosttest.Options{})
	forbids := hosttest.StartSSHD(t, hosttest.Options{With: s, Config: []string{"AllowStreamLocalForwarding no"}})
	host := func(s *hosttest.SSHD) (*Opener, *hosts.Host) {
		config, err := sshconf.Load(s.ConfigFile)
		if err != nil {
			t.Fatal(err)
		}
		return New(Options{Config: config}), s.Host("melon4")
	}
	o, h := host(s)
	conn, err := o.DialSocket(patient(t), h, path)
	if err != nil {
		t.Fatal(err)
	}
	var b [5]byte
	if _, err := io.WriteString(conn, "hello"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, b[:]); err != nil || string(b[:]) != "hello" {
		t.Errorf("%q, %v", b, err)
	}
	conn.Close()
	if _, err := conn.Read(b[:]); err == nil {
		t.Error("read after Close")
	}
	if _, err := o.DialSocket(patient(t), h, filepath.Join(dir, "none")); err == nil || !strings.Contains(err.Error(), "does not connect to") {
		t.Error(err)
	}
	o, h = host(forbids)
	var failed *hosts.Error
	if _, err := o.DialSocket(patient(t), h, path); !errors.As(err, &failed) || !strings.Contains(failed.Advice, "AllowStreamLocalForwarding") {
		t.Error(err)
	}
	s.Pause()
	defer s.Resume()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o, h = host(s)
	if _, err := o.DialSocket(ctx, h, path); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
