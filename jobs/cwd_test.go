package jobs

import "testing"

// TestRelativeCwd checks that equal options stay shared when their cwd is made absolute, and that
// other options do not change.
func TestRelativeCwd(t *testing.T) {
	shared, absolute := &Options{Cwd: "sub", Queue: "q"}, &Options{Cwd: "/data"}
	a, b := &Spec{Options: shared}, &Spec{Options: shared}
	c, d, e := &Spec{Options: absolute}, &Spec{Options: NoOptions}, &Spec{}
	r := AbsoluteCwd{Base: "/home/me"}
	for _, s := range []*Spec{a, b, c, d, e} {
		r.Resolve(s)
	}
	if a.Cwd != "/home/me/sub" || a.Queue != "q" || a.Options != b.Options || shared.Cwd != "sub" || c.Options != absolute || d.Options != NoOptions || e.Options != nil {
		t.Errorf("%+v %+v %+v", a.Options, c.Options, shared)
	}
}
