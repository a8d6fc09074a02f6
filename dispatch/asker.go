package dispatch

import (
	"os"
	"sync"

	"dcs-tui/internal/account"
)

// Asker names the user of this process and its machine, to show in the event log who made a
// request.
var Asker = sync.OnceValue(func() string {
	name := account.Current().Name
	if host, err := os.Hostname(); err == nil {
		name += " on " + host
	}
	return name
})
