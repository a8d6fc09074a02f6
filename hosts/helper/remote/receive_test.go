//go:build linux

package remote

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"dcs-tui/hosts"
	"dcs-tui/hosts/files"
	wire "dcs-tui/hosts/helper"
)

// TestContentsAreReceivedInPieces checks that small contents share a piece and large ones have
// several, that all are stored, and that a content which changes while it is sent is named, and is
// not stored.
func TestContentsAreReceivedInPieces(t *testing.T) {
	base := t.TempDir()
	texts := map[files.Sum]string{}
	for i := range 300 {
		must(t, os.WriteFile(filepath.Join(base, fmt.Sprintf("small%d", i)), fmt.Appendf(nil, "%d", i), 0o600))
	}
	must(t, os.WriteFile(filepath.Join(base, "empty"), nil, 0o600))
	must(t, os.WriteFile(filepath.Join(base, "large"), bytes.Repeat([]byte("0123456789"), 50_000), 0o600))
	m, err := files.NewSource(base).Manifest([]string{"."})
	must(t, err)
	for _, e := range m {
		text, err := os.ReadFile(filepath.Join(base, e.Path))
		must(t, err)
		texts[e.Sum] = string(text)
	}
	changed := files.Entry{Path: "changed", Kind: 'f', Size: 3, Sum: files.Sum{1}}
	texts[changed.Sum] = "new"

	h := &helper{files: newReceiver(filepath.Join(t.TempDir(), "files"))}
	must(t, h.files.store.Open("boot"))
	r, w := io.Pipe()
	t.Cleanup(func() { r.Close() })
	h.outbox = newOutbox(wire.NewWriter(w))
	var numWants atomic.Int64
	go func() { // the dispatcher
		for in := wire.NewReader(r); ; numWants.Add(1) {
			got, err := in.Read()
			want, ok := got.(*hosts.Want)
			if err != nil || !ok {
				return
			}
			p := &hosts.Piece{ID: want.ID}
			if n := len(want.Sums); n == 0 || n > hosts.MaxContents {
				p.Why = fmt.Sprintf("%d contents are wanted", n)
			}
			var all strings.Builder
			for _, text := range want.Sums {
				sum, _ := files.ParseSum(text)
				all.WriteString(texts[sum])
			}
			p.Bulk = []byte(all.String()[want.Offset:][:want.Limit])
			h.files.answer(p)
		}
	}()
	must(t, h.receiveContents(h.files.store.Missing(m, false)))
	if left := h.files.store.Missing(m, false); len(left) > 0 {
		t.Errorf("%d contents are missing, such as %s", len(left), left[0].Path)
	}
	if n := numWants.Load(); n > 40 {
		t.Errorf("%d contents were received in %d pieces, want few", len(m), n)
	}
	if n, _ := h.files.transfers.Progress(); n != 0 {
		t.Errorf("%d transfers are under way after all have ended", n)
	}

	err = h.receiveContents([]*files.Entry{&changed})
	if err == nil || !strings.HasPrefix(err.Error(), "changed: ") {
		t.Errorf("a content that changed: got %v, want an error that names it", err)
	}
	if left := h.files.store.Missing(files.Manifest{changed}, false); len(left) != 1 {
		t.Error("a content that changed was stored")
	}
}
