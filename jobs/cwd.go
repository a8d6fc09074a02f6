package jobs

import "path/filepath"

// AbsoluteCwd makes the relative working directories of jobs absolute, below Base.
type AbsoluteCwd struct {
	Base string
	done map[*Options]*Options // jobs share options: each is copied once
}

// Resolve changes the working directory of s if it is relative.
func (c *AbsoluteCwd) Resolve(s *Spec) {
	if s.Options == nil || s.Cwd == "" || filepath.IsAbs(s.Cwd) {
		return
	}
	o := c.done[s.Options]
	if o == nil {
		copied := *s.Options
		copied.Cwd = filepath.Join(c.Base, s.Cwd)
		o = &copied
		if c.done == nil {
			c.done = map[*Options]*Options{}
		}
		c.done[s.Options] = o
	}
	s.Options = o
}
