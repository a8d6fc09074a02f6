package board

import (
	"context"

	"dcs-tui/dispatch"
	"dcs-tui/dispatch/view"
	"dcs-tui/jobs"
)

// Read returns a piece of what an attempt has printed. It waits for no Look, and no
// Look waits for it.
func (b *Board) Read(ctx context.Context, r view.Read) (*view.Piece, error) {
	return nil, nil
}

var _ = dispatch.Result{}
var _ jobs.ID
