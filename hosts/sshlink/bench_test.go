package sshlink

import (
	"io"
	"testing"

	"dcs-tui/hosts/hosttest"
)

// BenchmarkRoundTrip sends a frame of 200 bytes to a real sshd and waits for it
// to come back.
func BenchmarkRoundTrip(b *testing.B) {
	s := hosttest.StartSSHD(b, hosttest.Options{})
	l, err := New(Options{}).dialTarget(b.Context(), "melon4", target(s))
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	st, err := l.Start(b.Context(), "exec cat")
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	frame := make([]byte, 200)
	for b.Loop() {
		if _, err := st.Stdin().Write(frame); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(st, frame); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpen opens a link and closes it.
func BenchmarkOpen(b *testing.B) {
	s := hosttest.StartSSHD(b, hosttest.Options{})
	o := New(Options{})
	for b.Loop() {
		l, err := o.dialTarget(b.Context(), "melon4", target(s))
		if err != nil {
			b.Fatal(err)
		}
		l.Close()
	}
}
