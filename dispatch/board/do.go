package board

import (
	"context"

	"dcs-tui/dispatch/view"
)

// Do asks for an action and returns when it is carried out, or refused.
func (b *Board) Do(ctx context.Context, a view.Action) (*view.Answer, error) {
	return nil, nil
}
