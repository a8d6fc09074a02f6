package dispatch

import (
	"fmt"
	"os"
	"os/user"
	"sync"
)

// Asker names the user of this process and its machine, for those who read in the event
// log who has asked for what.
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
