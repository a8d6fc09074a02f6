package cli

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// parallelNames are GNU parallel's names of flags that exist here under another name, without hyphens.
var parallelNames = map[string]pflag.NormalizedName{
	"retries": "tries", "dryrun": "dry-run", "dr": "dry-run", "workdir": "cwd", "wd": "cwd",
	"keeporder": "keep-order", "maxprocs": "jobs", "sshloginfile": "hosts", "slf": "hosts", "jl": "joblog",
	"haltonerror": "halt",
}

// withoutHyphens returns a name of a flag without hyphens, and with "or" instead of "our", as GNU parallel accepts it.
func withoutHyphens(name string) string {
	return strings.NewReplacer("-", "", "_", "", "our", "or").Replace(name)
}

// parallelName is a pflag normalize function that accepts GNU parallel's names.
func parallelName(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if own, ok := parallelNames[withoutHyphens(name)]; ok {
		return own
	}
	return pflag.NormalizedName(name)
}

// parallelAdvice describes what replaces flags of GNU parallel that do not exist here. Flags with the same
// replacement, also those of one letter, share an entry.
var parallelAdvice = []struct{ names, advice string }{
	// Values.
	{"a arg-file", ":::: FILE takes the values from a file"},
	{"arg-sep arg-file-sep", "the separators are fixed: dcs-tui help jobs lists them"},
	{"link xapply linkinputsource xapplyinputsource",
		":::+ links values to those before it; it ends with the shorter list, and repeats no values"},
	{"0 null d delimiter", `a value is a line of text: tr , '\n' <FILE | dcs-tui run COMMAND :::: -`},
	{"C colsep csv", "in bash, :::: <(cut -f1 FILE) ::::+ <(cut -f2 FILE) takes two columns of a file"},
	{"header skip-first-line", "tail -n +2 FILE | dcs-tui run COMMAND :::: - leaves out the first line"},
	{"trim", "write the values without spaces around them"},
	{"E e eof r no-run-if-empty", "every line of a file is a value, and a file without lines has no jobs"},
	{"filter", "a template selects combinations with @where: dcs-tui grid --help"},
	{"total-jobs total", "all values are read before the first job starts"},
	{"X xargs m n N max-args max-replace-args L l max-lines", "one job takes one value of each source"},
	{"s max-chars x exit max-line-length-allowed show-limits", "a value has at most 127 KiB"},
	{"pipe spreadstdin pipe-part block block-size block-timeout bt recstart recend regexp regex " +
		"remove-rec-sep rrs round-robin round tee cat fifo shard bin group-by",
		"jobs read no standard input; split divides a file, and :::: - takes values from standard input"},
	{"shebang hashbang", "dcs-tui run FILE runs the lines of a file"},
	// The command.
	{"q quote", "values are always quoted, but not the words of the command: the shell reads them again, " +
		"so quote the whole command"},
	{"I i replace U extensionreplace er basenamereplace bnr dirnamereplace dnr basenameextensionreplace bner " +
		"seqreplace slotreplace parens rpl", "the placeholders are fixed: dcs-tui help jobs lists them"},
	{"plus", "{..}, {+/}, {+.}, and the like are always replaced; others, such as {%x}, {#x}, {:1}, {^x}, and {##}, " +
		"are not supported"},
	{"process-slot-var", "$DCS_SLOT is the number of the slot when the job runs"},
	{"shell-quote", "--dry-run shows the commands with their quotes"},
	{"template tmpl", "write the file in the command of the job"},
	{"record-env session", "--env NAME passes a variable"},
	{"o open-tty tty", "jobs have no terminal"},
	// How much runs at once.
	{"P", "-j has this meaning: slots of each host"},
	{"load", `max_load = 4 in hosts.toml keeps jobs off a busy host`},
	{"noswap memsuspend", `min_mem_free = "4G" in hosts.toml keeps jobs off a host without memory`},
	{"memfree", `min_mem_free = "4G" in hosts.toml keeps jobs off a host without memory; ` +
		`#DCS mem=4G says what a job needs`},
	{"limit", `max_load = 4 and min_mem_free = "4G" in hosts.toml keep jobs off a busy host`},
	{"nice", "nice = 10 in hosts.toml; it is the default"},
	{"use-sockets-instead-of-threads use-cores-instead-of-threads use-cpus-instead-of-cores",
		"-j N sets the number of slots of each host"},
	{"number-of-cpus number-of-sockets number-of-cores number-of-threads",
		"dcs-tui hosts check shows the slots of each host"},
	{"semaphore semaphore-name id semaphore-timeout st fg bg wait",
		"dcs-tui submit RUN adds jobs to a run that is dispatched; dcs-tui wait RUN waits for its end"},
	// Hosts and files.
	{"S sshlogin", "--host USER@HOST,... names the hosts"},
	{"hgrp hostgrp hostgroup hostgroups", "#DCS tags= in a jobs file selects hosts"},
	{"onall nonall", "a job runs on one host: run ssh in a loop instead"},
	{"filter-hosts filter-host", "a host that cannot be reached gets no jobs until it can"},
	{"ssh M controlmaster ssh-delay", "each host has one connection, with the options of ~/.ssh/config"},
	{"transfer-file transfer-files tf transfer basefile bf trc",
		"--send PATH copies files to each host; --return PATTERN copies results back"},
	{"cleanup", "files that were copied to hosts are removed at the end, unless --keep-files is given"},
	{"rsync-opts", "--send and --return copy files without rsync"},
	// Output and results.
	{"results result res", "the output of each job is kept in the run directory: dcs-tui logs RUN JOB; " +
		"dcs-tui results --result finds metrics in it"},
	{"files output-as-files tmpdir tempdir compress compress-program use-compress-program decompress-program " +
		"use-decompress-program", "the outputs of jobs are files of the run directory: dcs-tui logs RUN JOB"},
	{"sql sql-master sql-worker sql-and-worker", "dcs-tui results --format csv prints the values and results of a run"},
	{"eta", "the screen shows when the run will end; so does dcs-tui status"},
	{"bar progress", "the screen shows the progress; so does dcs-tui status"},
	{"tmux tmux-pane latest-line ll", "the screen shows the output of each job"},
	{"u ungroup line-buffer line-buffered lb", "dcs-tui logs --follow RUN JOB shows the output of a running job"},
	{"group", "--output prints the output of each job, whole, when it ends"},
	{"no-keep-order no-k nok", "the output has the order in which jobs end, unless -k is given"},
	{"tagstring tag-string ctag ctag-string", "--tag begins each line of output with the values of its job"},
	{"color color-failed color-fail cf", "a terminal shows failed jobs in red"},
	{"t verbose v silent", "each job is shown with its command when it ends"},
	{"p interactive", "--dry-run shows the commands before they run"},
	// Failures.
	{"resume-failed retry-failed", "dcs-tui requeue RUN --failed && dcs-tui resume RUN runs failed jobs again"},
	{"resume", "dcs-tui resume RUN continues a run"},
	{"term-seq", "cancel sends SIGTERM, and SIGKILL after the grace period of the host"},
	// The program itself.
	{"J profile plain", "there are no profiles, and $PARALLEL and ~/.parallel/config are not read"},
	{"will-cite nn no-notice", "dcs-tui asks for no citation"},
	{"V version min-version", "dcs-tui version prints the version"},
	{"embed shell-completion", "dcs-tui completion prints completions for a shell"},
	{"gnu tollef D debug bug g B W T H Y ctrl-c no-ctrl-c", "leave it out: it changes no job"},
}

// adviceOnParallel returns what to use instead of a flag of GNU parallel, or "".
func adviceOnParallel(name string) string {
	for _, a := range parallelAdvice {
		has := func(n string) bool { return withoutHyphens(n) == withoutHyphens(name) }
		if slices.ContainsFunc(strings.Fields(a.names), has) {
			return a.advice
		}
	}
	return ""
}

// parseTimeout parses --timeout.
func parseTimeout(s string) (time.Duration, error) {
	if s == "0" || strings.HasSuffix(s, "%") {
		return 0, text.Errorf("%s is no time: GNU parallel's N%% of the median run time, and 0, are not supported",
			text.Shorten(s)).WithAdvice("--speculate runs copies of jobs that take much longer than others; " +
			"without --timeout a job has no limit")
	}
	return jobs.ParseDuration(s)
}

// parseLaunchDelay parses --delay.
func parseLaunchDelay(s string) (time.Duration, error) {
	if strings.HasSuffix(s, "auto") {
		return 0, text.Errorf("%s: GNU parallel's delay that adapts to failures is not supported", text.Shorten(s)).
			WithAdvice("give a TIME, such as 0.5s; a host where jobs fail gets fewer jobs")
	}
	return jobs.ParseDelay(s)
}

// parseTries parses --tries.
func parseTries(s string) (int, error) {
	if s == "0" {
		return 0, text.Errorf("tries without a limit, as 0 in GNU parallel, are not supported").
			WithAdvice("the largest number is %d", jobs.MaxTries)
	}
	return parseCountTo(jobs.MaxTries)(s)
}

// parseJobLog parses --joblog.
func parseJobLog(s string) (string, error) {
	if strings.HasPrefix(s, "+") {
		return "", text.Errorf("%s: GNU parallel's + appends to a job log, which is not supported", text.Shorten(s)).
			WithAdvice("give another file; ./%s is the name of a file", s)
	}
	return absolutePath(s)
}

// parseCwd parses --cwd.
func parseCwd(s string) (string, error) {
	if s == "..." {
		return "", text.Errorf("... is a new directory for each job in GNU parallel, which is not supported").
			WithAdvice("jobs with --send run in directories of their own")
	}
	return s, nil
}

// parseInventoryName parses --hosts.
func parseInventoryName(s string) (string, error) {
	if s == "-" || s == "." || s == ".." {
		return "", text.Errorf("%s: GNU parallel's names for standard input and its files are not supported", s).
			WithAdvice("give the name of a file, such as ~/.parallel/sshloginfile")
	}
	return s, nil
}

// typedName returns the name by which the command line gives a value to a flag: the flag's own, or
// GNU parallel's.
func typedName(args []string, flag, value string) string {
	for i, arg := range args {
		word, isLong := strings.CutPrefix(arg, "--")
		name, given, hasValue := strings.Cut(word, "=")
		if !hasValue && i+1 < len(args) {
			given = args[i+1]
		}
		if isLong && given == value && string(parallelName(nil, name)) == flag {
			return name
		}
	}
	return flag
}
