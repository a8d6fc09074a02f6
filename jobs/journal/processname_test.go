package journal

import "testing"

// X2: the name of a process says of it what the owner file would, and holds nothing that a
// file name may not; another machine's and what is no name prove nothing.
func TestProcessName(t *testing.T) {
	p := proc{"/proc"}
	me, err := p.self()
	if err != nil {
		t.Skip(err)
	}
	past, far, far2 := me, me, me
	past.Start--
	far.Boot = "c0ffee00-0000-4000-8000-000000000000"
	far2.PIDNS = "pid:[1]"
	for name, want := range map[string]Life{
		ProcessName(): Alive, past.name(): Dead, far.name(): Unsure, far2.name(): Unsure,
		"": Unsure, "1.2": Unsure, "." + past.name(): Unsure, past.name() + ".x": Unsure, "+" + past.name(): Unsure, "-1.0.1.x": Unsure, "../../1": Unsure,
	} {
		if got := ProcessLife(name); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
}
