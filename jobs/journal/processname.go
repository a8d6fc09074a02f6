package journal

import (
	"fmt"
	"strings"
)

// ProcessName names this process in a few characters that a file name may hold, so that who
// finds a file it has left knows whether it lives; "" when /proc does not say enough.
func ProcessName() string {
	p, err := proc{"/proc"}.self()
	if err != nil {
		return ""
	}
	return p.name()
}

func (p process) name() string {
	ns := strings.TrimSuffix(strings.TrimPrefix(p.PIDNS, "pid:["), "]")
	return fmt.Sprintf("%d.%d.%s.%s", p.PID, p.Start, ns, p.Boot)
}

// ProcessLife says whether the process that a ProcessName names lives, as far as this
// machine can prove. What is no ProcessName is Unsure.
func ProcessLife(name string) Life { return proc{"/proc"}.nameLife(name) }

func (p proc) nameLife(name string) Life {
	var q process
	if n, _ := fmt.Sscanf(strings.ReplaceAll(name, ".", " "), "%d %d %s %s", &q.PID, &q.Start, &q.PIDNS, &q.Boot); n < 4 {
		return Unsure
	}
	if q.PIDNS = "pid:[" + q.PIDNS + "]"; q.name() != name {
		return Unsure
	}
	return p.life(q)
}
