package cli

import (
	"errors"

	"github.com/spf13/pflag"
)

// parallelNames are GNU parallel's names of flags that mean the same here.
var parallelNames = map[string]pflag.NormalizedName{
	"retries": "tries", "dryrun": "dry-run", "workdir": "cwd", "wd": "cwd", "keeporder": "keep-order", "max-procs": "jobs",
	"sshloginfile": "hosts", "slf": "hosts",
}

// parallelName is a normalize function for flags that accepts GNU parallel's names.
func parallelName(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if own, ok := parallelNames[name]; ok {
		return own
	}
	return pflag.NormalizedName(name)
}

// parallelAdvice maps flags of GNU parallel that are not here to what does the same.
var parallelAdvice = map[string]string{
	"resume-failed": "dcs-tui requeue RUN --failed runs failed jobs again",
	"retry-failed":  "dcs-tui requeue RUN --failed runs failed jobs again",
	"results":       "the output of each job is kept in the run directory: dcs-tui logs RUN JOB",
	"eta":           "the screen shows when the run will end; so does dcs-tui status",
	"bar":           "the screen shows the progress; so does dcs-tui status",
	"progress":      "the screen shows the progress; so does dcs-tui status",
	"load":          `max_load = 4 in hosts.toml keeps jobs off a busy host`,
	"noswap":        `min_mem_free = "4G" in hosts.toml keeps jobs off a host without memory`,
	"memfree":       `min_mem_free = "4G" in hosts.toml keeps jobs off a host without memory; #DCS mem=4G says what a job needs`,
	"memsuspend":    `min_mem_free = "4G" in hosts.toml keeps jobs off a host without memory`,
	"nice":          "nice = 10 in hosts.toml; it is the default",
	"arg-file":      ":::: FILE takes the values from a file",
	"link":          ":::+ links values to those before it",
	"xapply":        ":::+ links values to those before it",
	"ungroup":       "dcs-tui logs --follow RUN JOB shows the output of a running job",
	"line-buffer":   "dcs-tui logs --follow RUN JOB shows the output of a running job",
	"lb":            "dcs-tui logs --follow RUN JOB shows the output of a running job",
	"group":         "--output prints the output of each job, whole, when it ends",
	"quote":         "values are always quoted for the shell",
	"colsep":        "a template has several parameters: dcs-tui grid --help",
	"header":        "a template has parameters with names: dcs-tui grid --help",
	"pipe":          "jobs read no standard input; :::: - takes values from it",
	"xargs":         "one job takes one value of each source",
	"max-args":      "one job takes one value of each source",
	"semaphore":     "dcs-tui submit RUN adds jobs to a run that goes on",
	"termseq":       "cancel sends SIGTERM, and SIGKILL after the grace period of the host",
	"tmux":          "the screen shows the output of each job",
	"shebang":       "dcs-tui run FILE runs the lines of a file",
	"will-cite":     "nothing is asked of you here",
}

// unknownFlagAdvice returns what to use instead of a flag of GNU parallel, "" for
// other errors.
func unknownFlagAdvice(err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return ""
	}
	return parallelAdvice[unknown.GetSpecifiedName()]
}
