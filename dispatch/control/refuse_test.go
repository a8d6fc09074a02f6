package control

import (
	"bufio"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// Issue 4.3: who is refused is told why, also when the machine is so busy that the two
// ends do not run at the same time.
func TestRefusalIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		go func() {
			refuse(ours, Hello{V: Version}, "you are somebody else")
			ours.Close()
		}()
		time.Sleep(refuseWithin / 2)
		if h, err := readHello(bufio.NewReader(theirs)); err != nil || h.Refused != "you are somebody else" {
			t.Errorf("%+v, %v", h, err)
		}
	})
}
