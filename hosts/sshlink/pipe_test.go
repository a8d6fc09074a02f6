package sshlink

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"testing/synctest"
)

// A pipe holds back its writer, hands every byte on in order, and gives its
// error after the last byte.
func TestPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipe()
		sent := make([]byte, 3*pipeBuffer+17)
		rand.NewChaCha8([32]byte{1}).Read(sent)
		written := false
		go func() {
			if n, err := p.Write(sent); n != len(sent) || err != nil {
				t.Errorf("wrote %d, %v", n, err)
			}
			written = true
			p.end(io.EOF, false)
		}()
		synctest.Wait()
		if written {
			t.Error("the writer was not held back")
		}
		got, err := io.ReadAll(p)
		if err != nil || !bytes.Equal(got, sent) {
			t.Errorf("%d bytes of %d, %v", len(got), len(sent), err)
		}
	})
}

// Ending a pipe frees both sides; dropped bytes are gone.
func TestPipeEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full, empty := newPipe(), newPipe()
		ends := make(chan error, 2)
		go func() { _, err := full.Write(make([]byte, pipeBuffer+1)); ends <- err }()
		go func() { _, err := empty.Read(make([]byte, 1)); ends <- err }()
		synctest.Wait()
		full.end(net.ErrClosed, true)
		empty.end(net.ErrClosed, true)
		for range 2 {
			if err := <-ends; !errors.Is(err, net.ErrClosed) {
				t.Errorf("got %v", err)
			}
		}
		if n, err := full.Read(make([]byte, 1)); n != 0 || !errors.Is(err, net.ErrClosed) {
			t.Errorf("after dropping: %d, %v", n, err)
		}
	})
}
