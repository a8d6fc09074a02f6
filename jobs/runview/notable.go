package runview

import "dcs-tui/jobs"

// Notable says whether a person wants to hear of a record without asking: what
// happened to hosts and the run, losses, failures, retries, what people asked for. What
// goes well, and what is done to each of very many jobs, is not notable; nor that a
// request was carried out, which an event announced in words. One that was refused is.
func Notable(r *jobs.Record) bool {
	switch r.Kind {
	case jobs.KindEpoch, jobs.KindEnded, jobs.KindDamaged, jobs.KindLost, jobs.KindForgiven:
		return true
	case jobs.KindEvent, jobs.KindRequest: // of requests, those that were refused
		return r.Reason != ""
	case jobs.KindClosed:
		return r.How != jobs.ClosedDone // else KindEnded says it
	case jobs.KindExited:
		return r.Next != jobs.Succeeded && r.Outcome != nil && !r.Outcome.OK()
	case jobs.KindJob:
		return r.Next == jobs.Failed
	case jobs.KindRunning:
		return r.Reason != "" // it had been given up as lost
	}
	return false
}

// Bad says whether a record is of a failure or a loss: worth a warning sign.
func Bad(r *jobs.Record) bool {
	switch r.Kind {
	case jobs.KindLost, jobs.KindDamaged:
		return true
	case jobs.KindExited:
		return r.Outcome != nil && !r.Outcome.OK() && !r.Outcome.Stopped
	case jobs.KindJob:
		return r.Next == jobs.Failed
	case jobs.KindEnded, jobs.KindRequest:
		return r.Reason != ""
	case jobs.KindClosed:
		return r.How == jobs.ClosedNoHosts
	}
	return false
}
