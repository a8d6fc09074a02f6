package jobs

// The largest numbers that a jobs file, the command line, the inventory, and what a
// host says of itself may hold. Each is in one place, so that no layer takes what
// another cuts down.
const (
	MaxSlots = 4096      // slots and cores of a host, and therefore slots of a job
	MaxGPUs  = 1024      // of a host, and therefore of a job
	MaxShare = 1_000_000 // share of a queue
	MaxTries = 1_000_000 // attempts of a job
)
