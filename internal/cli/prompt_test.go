package cli

import (
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/internal/ptytest"
)

func echoes(t *testing.T, tty *os.File) bool {
	t.Helper()
	conn, err := tty.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	on := false
	conn.Control(func(fd uintptr) {
		s, e := unix.IoctlGetTermios(int(fd), unix.TCGETS)
		err, on = e, e == nil && s.Lflag&unix.ECHO != 0
	})
	if err != nil {
		t.Fatal(err)
	}
	return on
}

// A passphrase is read without echo, and the terminal echoes again afterwards.
func TestSecretIsNotEchoed(t *testing.T) {
	person, program := ptytest.Open(t)
	type answer struct {
		secret []byte
		err    error
	}
	got := make(chan answer)
	go func() {
		s, err := readSecret(program)
		got <- answer{s, err}
	}()
	for echoes(t, program) { // until it asks
		select {
		case a := <-got:
			t.Fatalf("it did not wait: %q, %v", a.secret, a.err)
		default:
		}
	}
	if _, err := person.WriteString("open sesame\n"); err != nil {
		t.Fatal(err)
	}
	if a := <-got; a.err != nil || string(a.secret) != "open sesame" {
		t.Errorf("%q, %v", a.secret, a.err)
	}
	if !echoes(t, program) {
		t.Error("the terminal was left without echo")
	}
}

// A question that is interrupted ends, and leaves the terminal as it was.
func TestSecretCanBeInterrupted(t *testing.T) {
	_, program := ptytest.Open(t)
	if err := program.SetReadDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := readSecret(program); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if !echoes(t, program) {
		t.Error("the terminal was left without echo")
	}
}
