package ask

import (
	"slices"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// SubmitRequests returns the requests that add jobs to a run. Each is at most rundir.MaxSubmit
// bytes.
func SubmitRequests(specs []*jobs.Spec) ([]*rundir.Request, error) {
	blocks := submitBlocks(specs)
	if len(blocks) > 1 && slices.ContainsFunc(specs, func(s *jobs.Spec) bool { return len(s.After) > 0 }) {
		return nil, text.Errorf("jobs with the option after must be submitted in one request of at most %d MiB", rundir.MaxSubmit>>20).
			WithAdvice("submit several files, each with the jobs that depend on each other")
	}
	var requests []*rundir.Request
	for _, block := range blocks {
		requests = append(requests, &rundir.Request{Do: rundir.DoSubmit, Specs: rundir.JobsText(block)})
	}
	return requests, nil
}

// submitBlocks splits jobs into blocks that fit into a request, and numbers the jobs of each block
// from 1.
func submitBlocks(specs []*jobs.Spec) (blocks [][]*jobs.Spec) {
	if len(specs) == 0 {
		return nil
	}
	size, from := 0, 0
	var text []byte
	for i, s := range specs {
		text = jobs.AppendSpecJSON(text[:0], s)
		if size += len(text) + 1; size > rundir.MaxSubmit && i > from {
			blocks = append(blocks, specs[from:i])
			from, size = i, len(text)+1
		}
	}
	blocks = append(blocks, specs[from:])
	for _, b := range blocks {
		for i, s := range b {
			s.ID = jobs.ID(i + 1)
		}
	}
	return blocks
}
