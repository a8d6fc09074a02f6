package action

import (
	"strings"
	"testing"

	"dcs-tui/jobs"
)

// TestAnswersNameTheirObject checks that the answers of an action on jobs or on a host have a place
// for their number or its name, that other answers have none, and that an action on jobs has an
// answer if it had no effect.
func TestAnswersNameTheirObject(t *testing.T) {
	for name, a := range Table {
		isOnJobs, isOnHost := a.accepts("jobs"), a.accepts("host")
		for _, text := range []string{a.done, a.doneIdle, a.doneAway} {
			if text != "" && strings.Contains(text, "%s") != (isOnJobs || isOnHost) {
				t.Errorf("%s: %q", name, text)
			}
		}
		if a.text == nil {
			t.Errorf("%s has no description", name)
		}
		if (a.Command.Use != "" || a.Screen.Name != "") && a.done == "" {
			t.Errorf("%s has a command but no answer", name)
		}
		if (a.none != "") != isOnJobs || (a.left != "") != isOnJobs {
			t.Errorf("%s: the answers are %q and %q if it had no effect", name, a.none, a.left)
		}
	}
}

// TestAnswerTellsWhatBecameOfEachJob checks that the answer to a cancel counts a job once: as canceled, as
// ended by itself, as left alone, or as not ended yet.
func TestAnswerTellsWhatBecameOfEachJob(t *testing.T) {
	for _, c := range []struct {
		q    Request
		o    Outcome
		want string
	}{
		{Request{Do: Cancel, Jobs: jobs.Ranges{{First: 1, Last: 4}}},
			Outcome{Done: 3, Left: 1, EndedItself: 1, Ending: []jobs.ID{2}},
			"1 job canceled, 1 finished before that, 1 had already finished; job 2 has not ended yet, or its host " +
				"cannot be reached; it will be ended as soon as possible"},
		{Request{Do: Cancel, Jobs: jobs.One(3)}, Outcome{Done: 1}, "job 3 canceled"},
		{Request{Do: Cancel, All: true}, Outcome{Done: 5, Left: 1, Ending: []jobs.ID{2, 4}, IsEarly: true},
			"3 jobs canceled, 2 being ended, 1 had already finished"},
		{Request{Do: Cancel, All: true}, Outcome{Done: 2, Ending: []jobs.ID{2, 4}, IsEarly: true},
			"2 jobs are being ended"},
		{Request{Do: Cancel, Jobs: jobs.One(3)}, Outcome{Done: 1, Ending: []jobs.ID{3}, IsEarly: true},
			"job 3 is being ended"},
		{Request{Do: Cancel, All: true}, Outcome{Done: 2, EndedItself: 1, Ending: []jobs.ID{4}, IsEarly: true},
			"1 job is being ended, 1 finished before that"},
		{
			Request{Do: Cancel, Jobs: jobs.One(3), Spare: SpareStarted},
			Outcome{Left: 1},
			"nothing to cancel, 1 left alone",
		},
		{Request{Do: Requeue, Jobs: jobs.One(3)}, Outcome{Left: 1}, "nothing to requeue, 1 had not finished"},
	} {
		t.Run(c.want, func(t *testing.T) {
			if got := c.q.Answer(c.o); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestAnswerNamesTheNewNumberOfSlots checks that the answer to a change of slots has the new number.
func TestAnswerNamesTheNewNumberOfSlots(t *testing.T) {
	five, none := 5, 0
	for _, c := range []struct {
		slots *int
		want  string
	}{
		{&five, "the slots of a are changed to 5"},
		{&none, "a has the slots of the inventory again"},
		{nil, "the slots of a are changed"},
	} {
		t.Run(c.want, func(t *testing.T) {
			q := Request{Do: Slots, Host: "a", Number: 1, Relative: true}
			if got := q.Answer(Outcome{Done: 1, Slots: c.slots}); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestNumbersOfRequestsAreBounded checks that no number of slots passes that a host cannot have, also
// the smallest integer, whose negative is itself.
func TestNumbersOfRequestsAreBounded(t *testing.T) {
	for _, n := range []int{0, -1 << 63, 1<<63 - 1, -jobs.MaxSlots - 1, jobs.MaxSlots + 1} {
		if q := (Request{Do: Slots, Host: "a", Number: n, Relative: true}); q.Problem() == "" {
			t.Errorf("%d slots more are accepted", n)
		}
	}
	for _, n := range []int{-jobs.MaxSlots, -1, 1, jobs.MaxSlots} {
		if q := (Request{Do: Slots, Host: "a", Number: n, Relative: true}); q.Problem() != "" {
			t.Errorf("%d slots more: %s", n, q.Problem())
		}
	}
}
