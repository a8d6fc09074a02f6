package attempts

import (
	"slices"

	"dcs-tui/jobs"
)

// Packing packs the attempts of a run while it is dispatched. It is not safe for concurrent use.
type Packing struct {
	Packer
	shards map[string]*packingShard
}

// packingShard is what Offer knows about a directory of attempts.
type packingShard struct {
	offered []jobs.AttemptID // at the last call, in order; nil if all of them were tried
	tried   int              // number of attempts that were offered before the last packing
}

// Offer packs those of the attempts of a directory that were also offered by the previous call for
// it, and returns their number. ids are the attempts whose outcomes are recorded durably, in order.
// Two calls for one directory must be so far apart that no launch from before the first is valid at
// the second.
func (p *Packing) Offer(shard string, ids []jobs.AttemptID) (packed int, err error) {
	if p.shards == nil {
		p.shards = map[string]*packingShard{}
	}
	s := p.shards[shard]
	if s == nil {
		s = new(packingShard)
		p.shards[shard] = s
	}
	before := s.offered
	s.offered = nil
	if len(ids) == s.tried {
		return 0, nil
	}
	if len(before)-s.tried >= max(p.Least, 1) {
		p.May = func(id jobs.AttemptID) bool {
			_, is := slices.BinarySearchFunc(before, id, jobs.AttemptID.Compare)
			_, still := slices.BinarySearchFunc(ids, id, jobs.AttemptID.Compare)
			return is && still
		}
		packed, err = p.Pack(shard)
		s.tried = len(before)
	}
	if len(ids) != s.tried {
		s.offered = ids
	}
	return packed, err
}
