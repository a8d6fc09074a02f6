package dispatch

import (
	"fmt"
	"os"
	"os/user"
	"sync"
)

// Asker names the user of this process and its machine, to show in the event log who made a
// request.
var Asker = sync.OnceValue(func() string {
	name := fmt.Sprintf("user %d", os.Getuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += " on " + host
	}
	return name
})
