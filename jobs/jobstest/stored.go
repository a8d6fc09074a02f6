package jobstest

import "dcs-tui/jobs"

// Stored is what a run directory stores of its jobs.
type Stored struct {
	Specs  []*jobs.Spec
	Damage []string
}

// StoredSpecs returns the specifications that a run directory passes on when it is read.
func StoredSpecs(read func(set func(n int, specs []*jobs.Spec)) ([]string, error)) (all Stored, err error) {
	all.Damage, err = read(func(n int, specs []*jobs.Spec) { all.Specs = append(all.Specs[:n], specs...) })
	return all, err
}
