package attempts

import "dcs-tui/jobs"

// Offers finds the attempts of a run that may be packed while it is dispatched. It is not safe for
// concurrent use.
type Offers struct {
	Least  int // number of new attempts of a directory below which none is returned
	shards map[string]*offeredShard
}

// offeredShard is what Add knows about a directory of attempts.
type offeredShard struct {
	offered  []jobs.AttemptID // at the last call, in order; nil if all of them were returned
	returned int              // number of attempts that the last call with a result returned
}

// Add returns those of the attempts of a directory that were also given to the previous call for it,
// or nil if there is nothing new among them. ids are the attempts whose outcomes are recorded durably,
// in order. Two calls for one directory must be so far apart that no launch from before the first is
// valid at the second.
func (o *Offers) Add(shard string, ids []jobs.AttemptID) (old []jobs.AttemptID) {
	if o.shards == nil {
		o.shards = map[string]*offeredShard{}
	}
	s := o.shards[shard]
	if s == nil {
		s = new(offeredShard)
		o.shards[shard] = s
	}
	before := s.offered
	s.offered = nil
	if len(ids) == s.returned {
		return nil
	}
	if len(before)-s.returned >= max(o.Least, 1) {
		still := Among(ids)
		for _, id := range before {
			if still(id) {
				old = append(old, id)
			}
		}
		s.returned = len(before)
	}
	if len(ids) != s.returned {
		s.offered = ids
	}
	return old
}
