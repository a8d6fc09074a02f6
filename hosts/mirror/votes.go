package mirror

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs/rundir"
)

// The choices of voters.
const (
	VoteAlone    = "alone"    // the dispatcher continues without the mirror
	VoteTakeover = "takeover" // the standby takes the run over from the mirror
)

// votesNeeded returns how many of n votes a choice needs: a takeover more than half of them, and
// the dispatcher at least half, so that both cannot win.
func votesNeeded(n int, choice string) int {
	if choice == VoteAlone {
		return max(1, (n+1)/2)
	}
	return n/2 + 1
}

// A voter is a directory of the run on a host: hosts that share work_dir are one voter. The file
// voter.GENERATION holds its id and the epoch in which the generation began, and vote.GENERATION
// its vote.
const (
	voterPrefix = "voter."
	votePrefix  = "vote."
)

// Answer answers a ballot as the voter in dir. The vote that it returns is durable, and every later
// answer for the generation has the same. A host that is no voter of the generation answers without
// a voter, and never becomes that voter.
func Answer(disk rundir.Disk, dir string, b hosts.Ballot) (_ *hosts.Ballot, err error) {
	if !isID(b.Generation) {
		return nil, fmt.Errorf("%.40q is not a generation of a mirror", b.Generation)
	}
	voter := filepath.Join(dir, voterPrefix+b.Generation)
	if b.Choice == "" {
		// Without its file, a voter of an older generation cannot vote any more, so that none of
		// its choices can win later.
		if err := forgetVoters(disk, dir, b.Generation, b.Epoch); err != nil {
			return nil, err
		}
		text, err := createOrRead(disk, voter, fmt.Sprintf("%s %d", rand.Text(), b.Epoch))
		b.Voter, _ = parseVoter(text)
		if err == nil && b.Voter == "" {
			err = errors.New("the file of the voter is damaged")
		}
		return &b, err
	}
	if b.Choice != VoteAlone && b.Choice != VoteTakeover {
		return nil, fmt.Errorf("%.40q is not a vote", b.Choice)
	}
	if b.Voter, err = voterID(disk, voter); err != nil || b.Voter == "" {
		return &b, err
	}
	if b.Choice, err = createOrRead(disk, filepath.Join(dir, votePrefix+b.Generation), b.Choice); err != nil {
		return nil, err
	}
	// If forgetVoters has removed the vote meanwhile, it has removed the voter before.
	if b.Voter, err = voterID(disk, voter); err != nil || b.Voter == "" {
		return &b, err
	}
	if b.Choice != VoteAlone && b.Choice != VoteTakeover {
		return nil, errors.New("the file of the vote is damaged or is being written")
	}
	return &b, nil
}

// voterID returns the id in the file of a voter, or "" if there is none.
func voterID(disk rundir.Disk, path string) (string, error) {
	b, err := rundir.ReadFile(disk, path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	id, _ := parseVoter(strings.TrimSuffix(string(b), "\n"))
	return id, err
}

// parseVoter returns the id of a voter, or "" if the text is damaged, and the epoch of the
// dispatcher that began the generation.
func parseVoter(text string) (id string, epoch int) {
	id, digits, _ := strings.Cut(text, " ")
	epoch, err := strconv.Atoi(digits)
	if err != nil || !isID(id) {
		return "", 0
	}
	return id, epoch
}

// createOrRead creates a file with a text unless it exists, and returns its durable text.
func createOrRead(disk rundir.Disk, path, text string) (string, error) {
	err := rundir.WriteNew(disk, path, []byte(text+"\n"))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	// Whoever created it may not have made it durable yet.
	if err := errors.Join(rundir.SyncFile(disk, path), disk.SyncDir(filepath.Dir(path))); err != nil {
		return "", err
	}
	b, err := rundir.ReadFile(disk, path)
	text, whole := strings.CutSuffix(string(b), "\n")
	if err == nil && !whole {
		err = fmt.Errorf("%s is not whole", filepath.Base(path))
	}
	return text, err
}

// forgetVoters removes the voters of other generations. It returns an error if a dispatcher of a
// later epoch began one of them: the caller then does not know yet that it is fenced off, and must
// not cost the later dispatcher its voters.
func forgetVoters(disk rundir.Disk, dir, generation string, epoch int) error {
	names, err := disk.Names(dir)
	for _, name := range names {
		if !strings.HasPrefix(name, voterPrefix) {
			continue
		}
		b, _ := rundir.ReadFile(disk, filepath.Join(dir, name)) // a damaged one cannot vote
		if _, by := parseVoter(strings.TrimSuffix(string(b), "\n")); by > epoch {
			return fmt.Errorf("a later dispatcher (epoch %d, ours is %d) has begun another mirror", by, epoch)
		}
	}
	for _, prefix := range []string{voterPrefix, votePrefix} {
		for _, name := range names {
			if of, ok := strings.CutPrefix(name, prefix); ok && of != generation && isID(of) {
				if e := disk.Remove(filepath.Join(dir, name)); e != nil && !errors.Is(e, fs.ErrNotExist) {
					err = errors.Join(err, e)
				}
			}
		}
		// A voter must not come back without its vote, so the voters go first.
		if err == nil {
			err = disk.SyncDir(dir)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Polls connects to the hosts of a run.
type Polls struct {
	Connect func(context.Context, *hosts.Host, *hosts.Open) (hosts.Worker, error)
	Hosts   func() []*hosts.Host
	Open    hosts.Open // with the id and the name of the run, and a nonce
}

// otherHosts returns all hosts but those of the dispatcher's own machine.
func (p *Polls) otherHosts() []*hosts.Host {
	return slices.DeleteFunc(slices.Clone(p.Hosts()), func(h *hosts.Host) bool { return h.Link == "local" })
}

// askTimeout bounds the wait for the answers of the voters.
const askTimeout = 10 * time.Second

// maxAsked bounds the number of hosts that are asked at the same time.
const maxAsked = 64

// voting holds the answers of voters.
type voting struct {
	votes    map[string]string // by id of the voter
	answered int               // hosts
	missing  []string          // hosts that have not answered, and why
}

// askHosts sends a ballot to all hosts but those of the dispatcher's own machine. It returns when
// enough reports true, or when all have answered or askTimeout is over.
func (p *Polls) askHosts(ctx context.Context, b hosts.Ballot, enough func(*voting) bool) *voting {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	v := &voting{votes: map[string]string{}}
	var mu sync.Mutex
	var all sync.WaitGroup
	places := make(chan struct{}, maxAsked)
	for _, h := range p.otherHosts() {
		all.Go(func() {
			select {
			case places <- struct{}{}:
				defer func() { <-places }()
			case <-ctx.Done():
			}
			answer, err := p.askHost(ctx, h, b)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				v.missing = append(v.missing, fmt.Sprintf("%s (%v)", h.Name, withoutHost(err)))
			} else {
				v.answered++
			}
			if err == nil && answer.Voter != "" {
				v.votes[answer.Voter] = answer.Choice
			}
			if enough(v) {
				cancel()
			}
		})
	}
	all.Wait()
	slices.Sort(v.missing)
	return v
}

// withoutHost returns an error without the name of its host.
func withoutHost(err error) error {
	if e, ok := errors.AsType[*hosts.Error](err); ok && e.Err != nil {
		return e.Err
	}
	return err
}

func (p *Polls) askHost(ctx context.Context, h *hosts.Host, b hosts.Ballot) (*hosts.Ballot, error) {
	open := p.Open
	open.Host, open.WorkDir, open.Ballot = h.Name, h.WorkDir, &b
	w, err := p.Connect(ctx, h, &open)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	answer := w.Hello().Ballot
	if answer == nil || answer.Generation != b.Generation || answer.Voter != "" && !isID(answer.Voter) ||
		answer.Voter == "" && b.Choice == "" {
		return nil, errors.New("it has not answered the ballot")
	}
	return answer, nil
}

// enlist makes the hosts voters of a new generation, and returns their ids. More than half of the
// hosts must answer.
func (p *Polls) enlist(ctx context.Context, generation string, epoch int) ([]string, error) {
	n := len(p.otherHosts())
	if n == 0 {
		return nil, errors.New("the run has no hosts that could decide who continues it")
	}
	v := p.askHosts(ctx, hosts.Ballot{Generation: generation, Epoch: epoch}, func(*voting) bool { return false })
	if 2*len(v.missing) >= n {
		return nil, fmt.Errorf("not enough hosts answer: %s", strings.Join(v.missing, ", "))
	}
	return slices.Sorted(maps.Keys(v.votes)), nil
}

// decide asks the voters of d for a choice. It returns the choice that has won, or "" and the hosts
// that have not answered. If none is missing then, no choice can ever win.
func (p *Polls) decide(ctx context.Context, d *Description, choice string) (won string, missing []string) {
	v := p.askHosts(ctx, hosts.Ballot{Generation: d.Generation, Choice: choice},
		func(v *voting) bool { return d.winner(v.votes) != "" })
	if v.answered+len(v.missing) < len(d.Voters) {
		v.missing = append(v.missing, "hosts that have left the inventory")
	}
	return d.winner(v.votes), v.missing
}

// winner returns the choice that has enough of these votes, or "".
func (d *Description) winner(votes map[string]string) string {
	count := map[string]int{}
	for _, id := range d.Voters {
		count[votes[id]]++
	}
	for _, choice := range []string{VoteAlone, VoteTakeover} {
		if count[choice] >= votesNeeded(len(d.Voters), choice) {
			return choice
		}
	}
	return ""
}
