package jobstest

import "dcs-tui/jobs"

// Newer calls write as a program would that knows the next version of a format. Tests that call it
// cannot run in parallel.
func Newer(f *jobs.Format, write func()) {
	f.Version++
	defer func() { f.Version-- }()
	write()
}
