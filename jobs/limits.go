package jobs

// These limits apply to the jobs file, the command line, the inventory, and host
// reports. Each is defined once, so that no layer accepts what another one truncates.
const (
	MaxSlots  = 4096      // slots and cores of a host, and therefore slots of a job
	MaxGPUs   = 1024      // of a host, and therefore of a job
	MaxShare  = 1_000_000 // share of a queue
	MaxTries  = 1_000_000 // attempts of a job
	MaxTokens = 1_000_000 // tokens of a kind, of a run and therefore of a job
)

// DefaultTries is the number of attempts of a job, in all, if nothing sets another (D2).
const DefaultTries = 3
