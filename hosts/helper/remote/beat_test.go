//go:build linux

package remote

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"dcs-tui/hosts"
)

// Quiet hours are in the host's local time (B7): the hello tells its zone.
func TestZone(t *testing.T) {
	for _, want := range []int{0, 19800, -32400} {
		w := newWorld(t)
		t.Setenv("TZ", zoneFile(t, want))
		f := w.start(w.open())
		if got := f.hello.ZoneSeconds; got != want {
			t.Errorf("%d s ahead of UTC, want %d", got, want)
		}
		f.bye()
	}
}

// zoneFile writes a zone of one offset (RFC 8536, version 1).
func zoneFile(t *testing.T, offset int) string {
	b := append([]byte("TZif"), make([]byte, 16)...)
	for _, count := range []uint32{0, 0, 0, 0, 1, 4} { // one type, four characters
		b = binary.BigEndian.AppendUint32(b, count)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(int32(offset)))
	b = append(b, 0, 0, 'X', 'Y', 'Z', 0)
	path := filepath.Join(t.TempDir(), "zone")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The first beat follows the hello at once and says that it is early: a host with
// a floor starts nothing before it.
func TestFirstBeat(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	first := await(f, func(*hosts.Beat) bool { return true })
	if !first.Early || first.Uptime-f.hello.Uptime >= usual.beat {
		t.Errorf("the first beat came after %v, early %v", first.Uptime-f.hello.Uptime, first.Early)
	}
	if second := await(f, func(b *hosts.Beat) bool { return b.Uptime > first.Uptime }); second.Early {
		t.Error("the second beat calls itself early")
	}
	f.bye()
}
