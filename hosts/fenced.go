package hosts

import "fmt"

// FencedError says that a host knows a higher epoch of this run: another
// dispatcher has taken it over, and this one may start nothing more anywhere.
type FencedError struct {
	Host string // inventory name
	By   int    // the higher epoch
}

// Error gives one line.
func (e *FencedError) Error() string {
	return fmt.Sprintf("%s: another dispatcher has taken this run over (its epoch is %d)", e.Host, e.By)
}
