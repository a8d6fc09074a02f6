package sim

// The names of the invariants, as they stand in messages and in docs/wounds.md.
const (
	OneResult           = "one result a round"
	SeqWithoutGaps      = "result numbers without gaps"
	SuccessIsProved     = "no success without a whole sentinel"
	TrueOutcome         = "recorded outcomes are what happened"
	StartsOnce          = "an attempt starts at most once"
	RecordBeforeStart   = "no start without a durable record"
	RecordBeforeOrder   = "no launch leaves before its record is durable"
	LaunchedOnce        = "an attempt is handed over once"
	OneLiveAttempt      = "one live attempt of a job unless by policy"
	NoStartAfterEnd     = "an attempt that is recorded as over never starts"
	NoStartAfterLease   = "nothing starts after its lease"
	SlotsHold           = "slots are never exceeded"
	LimitsHold          = "tokens and the slots of a queue are never exceeded"
	KeptHolds           = "what a host keeps for a queue is given to no other"
	DevicesHold         = "no half of a device has two jobs"
	SharedSlotsHold     = "no more slots of a shared host are held than there are"
	CopiesHold          = "no more copies of a job than allowed, within its tries, each on a host of its own"
	UnknownNotRerun     = "a job with an attempt of unknown fate is not run again"
	SettledByItsMachine = "an attempt is settled only by the machine on which it was launched"
	AskedHostsStay      = "a host that people added or removed stays so"
	InstanceRecorded    = "an instance is created, and terminated, after its record"
	InstanceUnused      = "no instance is terminated with open attempts or unfetched output"
	InstancesGo         = "no instance is left at the end of the run"
	NotLostEarly        = "no attempt is given up before its time"
	NeverStartedIsTrue  = "what is recorded as never started never ran"
	FencedChanges       = "a fenced dispatcher changes nothing"
	FenceIsTrue         = "a dispatcher is fenced by a newer one only"
	DurableFactsKept    = "what was durable stays"
	ResultsDurable      = "results are shown only when durable"
	ResultsSame         = "a result never changes"
	ResultsShown        = "every result is shown"
	JournalIsState      = "the journal gives the live state"
	ReplayIsState       = "recovery gives the state of the journal"
	JournalFolds        = "every durable record fits the facts"
	CoreHasNoDefects    = "the core makes no record that does not fit"
	CancelledStays      = "a cancelled job is not launched again"
	CancelledByPeople   = "a job is cancelled only when a person asked"
	HarderSkipped       = "no job is launched that is as hard as one that timed out"
	HarderStopped       = "what runs and is as hard as a job that timed out is stopped"
	SkippedForCause     = "a job is skipped only for a timeout as easy, or after one that did not succeed"
	PauseHolds          = "nothing is launched while paused"
	DrainedHolds        = "nothing is launched on a drained host"
	OwnersHold          = "nothing is launched on a host whose owner is there"
	NothingSuspended    = "no job stays suspended"
	WishesHold          = "what people asked of a host holds until they take it back"
	RequestsOnce        = "a request of people is carried out once"
	RequestsExpire      = "a request for another dispatcher is refused"
	OwnFailuresOnly     = "only its own failures use up a job's tries"
	TriesHold           = "a job fails no more often than it may"
	RunsAsEdited        = "a job runs, and has its result, as it was last edited"
	TimeGoesOn          = "the next tick is not in the past"
	RunEnds             = "the run ends"
	NothingLeft         = "nothing of the run is alive at its end"
	CleanEnd            = "the end is written when all is over and clean"
)

// Invariants are all of them.
var Invariants = []string{
	OneResult, SeqWithoutGaps, SuccessIsProved, TrueOutcome, StartsOnce, RecordBeforeStart, RecordBeforeOrder, LaunchedOnce,
	OneLiveAttempt, NoStartAfterEnd, NoStartAfterLease, SlotsHold, SharedSlotsHold, LimitsHold, KeptHolds, DevicesHold, CopiesHold, UnknownNotRerun, SettledByItsMachine, AskedHostsStay, InstanceRecorded, InstanceUnused, InstancesGo, NotLostEarly, NeverStartedIsTrue,
	FencedChanges, FenceIsTrue, DurableFactsKept, ResultsDurable, ResultsSame, ResultsShown, JournalIsState, ReplayIsState,
	JournalFolds, CoreHasNoDefects, CancelledStays, CancelledByPeople, HarderSkipped, HarderStopped, SkippedForCause, PauseHolds, DrainedHolds, OwnersHold, NothingSuspended, WishesHold, RequestsOnce, RequestsExpire, OwnFailuresOnly, TriesHold, RunsAsEdited, TimeGoesOn, RunEnds,
	NothingLeft, CleanEnd,
}
