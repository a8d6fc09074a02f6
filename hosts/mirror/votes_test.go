package mirror

import (
	"testing"

	"dcs-tui/hosts"
	"dcs-tui/jobs/rundir/memdisk"
)

// TestVoterVotesOnceForAGeneration checks that a voter votes once for a generation, not at all
// before it is enlisted or after it has joined a later one, and that an older dispatcher cannot
// take it away from a later one.
func TestVoterVotesOnceForAGeneration(t *testing.T) {
	disk := memdisk.New().Mount("a")
	if err := disk.Mkdir("/work", 0o700); err != nil {
		t.Fatal(err)
	}
	const first, second, third = "AAAABBBBCCCCDDDD", "EEEEFFFFGGGGHHHH", "IIIIJJJJKKKKLLLL"
	voters := map[string]string{}
	for i, c := range []struct {
		ask  hosts.Ballot
		want string // the vote; "enlisted", "no voter", or "refused"
	}{
		{hosts.Ballot{Generation: first, Choice: VoteAlone}, "no voter"},
		{hosts.Ballot{Generation: first, Epoch: 2}, "enlisted"},
		{hosts.Ballot{Generation: first, Choice: VoteTakeover}, VoteTakeover},
		{hosts.Ballot{Generation: first, Choice: VoteAlone}, VoteTakeover},
		{hosts.Ballot{Generation: first, Epoch: 2}, "enlisted"},
		{hosts.Ballot{Generation: first, Choice: VoteAlone}, VoteTakeover},
		{hosts.Ballot{Generation: second, Epoch: 1}, "refused"},
		{hosts.Ballot{Generation: first, Choice: VoteAlone}, VoteTakeover},
		{hosts.Ballot{Generation: second, Epoch: 3}, "enlisted"},
		{hosts.Ballot{Generation: first, Choice: VoteTakeover}, "no voter"},
		{hosts.Ballot{Generation: third, Epoch: 3}, "enlisted"},
		{hosts.Ballot{Generation: third, Choice: "both"}, "refused"},
		{hosts.Ballot{Generation: "../AAAABBBBCCCCDDDD", Epoch: 9}, "refused"},
		{hosts.Ballot{Generation: third, Choice: VoteAlone}, VoteAlone},
	} {
		a, err := Answer(disk, "/work", c.ask)
		got := "refused"
		switch {
		case err != nil:
		case a.Voter == "":
			got = "no voter"
		default:
			if got = a.Choice; got == "" {
				got = "enlisted"
			}
			if id := voters[c.ask.Generation]; !isID(a.Voter) || id != "" && id != a.Voter {
				t.Errorf("%d: the voter is %q, it was %q", i, a.Voter, id)
			}
			voters[c.ask.Generation] = a.Voter
		}
		if got != c.want {
			t.Errorf("%d, %+v: got %s (%v), want %s", i, c.ask, got, err, c.want)
		}
	}
}
