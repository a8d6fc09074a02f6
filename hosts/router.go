package hosts

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Router opens each host's link with the Opener that is registered for the
// host's kind of link ("ssh", "local", "command"). It is filled in once, by
// main, so that the dispatcher need not know any of them.
type Router map[string]Opener

// Open opens a link to h. A kind that nobody registered is Misconfigured.
func (r Router) Open(ctx context.Context, h *Host) (Link, error) {
	if o := r[h.Link]; o != nil {
		return o.Open(ctx, h)
	}
	return nil, &Error{
		Host:   h.Name,
		Class:  Misconfigured,
		Err:    fmt.Errorf("no link of the kind %q", h.Link),
		Advice: "this program knows: " + strings.Join(slices.Sorted(maps.Keys(r)), ", "),
	}
}
