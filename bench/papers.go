package main

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// papers are the experiments of the papers whose features the program has. Each prints the result
// of dcs-tui, that of xargs on the same machine, and the paper's number where its text has one. A
// scale below 1 shortens them by that factor; each experiment describes how.
var papers = []experiment{
	{"slots", "throughput against slots", paperSlots},
	{"jobs", "time against the number of jobs", paperJobs},
	{"tries", "success rate and time against the number of tries K", paperTries},
	{"zero", "jobs of `sleep 0` a second against slots", paperZero},
	{"sleep", "efficiency with a fixed time of sleep for each slot", paperSleep},
	{"start", "the time of one job, with its host up and with its host to be created", paperStart},
	{"foreign", "the work of three hosts of four slots, one with two foreign processes that compute", paperForeign},
	{"workers", "jobs that do nothing, a second, on 1 to 8 workers", paperWorkers},
}

// scaled returns a scaled number of jobs, which is at least one.
func (l *lab) scaled(n int) int { return max(1, int(float64(n)*l.scale+0.5)) }

// local prepares a run on slots of this machine without ssh.
func (l *lab) local(slots int, extra ...string) *exec.Cmd {
	return l.command(append([]string{"run", "--no-tui", "--hosts", l.here(slots), "--run-dir",
		l.runDir()}, extra...)...)
}

// here writes a hosts.toml with slots of this machine.
func (l *lab) here(slots int) string {
	return l.file("local.toml", fmt.Sprintf("[[host]]\nname = \"here\"\nlink = \"local\"\nslots = %d\n"+
		"yield = false\nnice = 0\nwork_dir = %q\n",
		slots, filepath.Join(l.dir, "here")))
}

// beside runs ours and theirs alternately. It returns the median times in seconds and the median of
// the ratios of successive runs.
func (l *lab) beside(ours, theirs func() *exec.Cmd) (a, b, ratio float64, err error) {
	var as, bs, ratios []float64
	for range l.rounds {
		x, err := timed(ours())
		if err != nil && !someFailed(err) {
			return 0, 0, 0, err
		}
		y, err := timed(theirs())
		if err != nil && !someFailed(err) {
			return 0, 0, 0, err
		}
		as, bs = append(as, x.wall.Seconds()), append(bs, y.wall.Seconds())
		ratios = append(ratios, y.wall.Seconds()/x.wall.Seconds())
	}
	return median(as), median(bs), median(ratios), nil
}

// someFailed reports whether the program completed all of its work but some jobs failed: exit code
// 1 of dcs-tui, 123 of xargs.
func someFailed(err error) bool {
	return strings.Contains(err.Error(), "exit status 1\n") || strings.Contains(err.Error(), "exit status 123\n")
}

// sleeps returns n lines that sleep for a time.
func sleeps(n int, each float64) string {
	return strings.Repeat(fmt.Sprintf("sleep %.3g\n", each), n)
}

func number(format string, v ...float64) []string {
	words := make([]string, len(v))
	for i := range v {
		words[i] = fmt.Sprintf(format, v[i])
	}
	return words
}

// paperSlots runs 64 jobs of 2 s on 1 to 8 slots of this machine, and 128 jobs of 5 s on 4 to
// 64 slots of four hosts over ssh.
func paperSlots(l *lab, r *report) error {
	r.table("hosts", "slots", "jobs", "ideal, jobs/s", "xargs -P, jobs/s", "dcs-tui, jobs/s", "of the ideal")
	var charts []*chart
	for _, e := range []struct {
		where string
		slots []int
		jobs  int
		each  float64
	}{{"this machine", []int{1, 2, 4, 8}, 64, 2 * l.scale}, {"4 over ssh", []int{4, 8, 16, 32, 64}, 128, 5 * l.scale}} {
		file := l.file("sleeps.txt", sleeps(e.jobs, e.each))
		p := newChart("Jobs of "+fmt.Sprintf("%.3g s, %s", e.each, e.where), "slots", "jobs/s", e.slots, "ideal",
			"xargs -P", "dcs-tui")
		for _, slots := range e.slots {
			ours := func() *exec.Cmd { return l.local(slots, file) }
			if e.where != "this machine" {
				ours = func() *exec.Cmd { return l.spread(4, slots, l.runDir(), file) }
			}
			a, b, _, err := l.beside(ours, func() *exec.Cmd { return xargs(slots, file, "sh") })
			if err != nil {
				return err
			}
			n, ideal := float64(e.jobs), float64(slots)/e.each
			p.add(ideal, n/b, n/a)
			r.row(append([]string{e.where, fmt.Sprint(slots), fmt.Sprintf("%d of %.3g s", e.jobs, e.each)},
				append(number("%.2f", ideal, n/b, n/a), fmt.Sprintf("%.0f%%", 100*n/a/ideal))...)...)
		}
		charts = append(charts, p)
	}
	r.say("Scale %.3g: the jobs of the paper take 2 s and 5 s. What is shorter is harder, because starting and "+
		"ending weigh more. xargs runs on this machine alone. The paper's points are means of five trials, these %s.",
		l.scale, l.roundsText())
	return r.chart(charts...)
}

// paperJobs runs 1 to 256 jobs of 2 s on 4 slots of this machine, and of 5 s on 32 slots of four
// hosts over ssh.
func paperJobs(l *lab, r *report) error {
	counts := []int{1, 2, 4, 8, 16, 32, 64, 128, 256}
	r.table("hosts", "slots", "jobs", "ideal, s", "xargs -P, s", "dcs-tui, s")
	var charts []*chart
	for _, e := range []struct {
		where string
		slots int
		each  float64
	}{{"this machine", 4, 2 * l.scale}, {"4 over ssh", 32, 5 * l.scale}} {
		p := newChart(fmt.Sprintf("Jobs of %.3g s on %d slots, %s",
			e.each, e.slots, e.where), "jobs", "s", counts, "ideal",
			"xargs -P", "dcs-tui")
		for _, n := range counts {
			file := l.file("sleeps.txt", sleeps(n, e.each))
			ours := func() *exec.Cmd { return l.local(e.slots, file) }
			if e.where != "this machine" {
				ours = func() *exec.Cmd { return l.spread(4, e.slots, l.runDir(), file) }
			}
			a, b, _, err := l.beside(ours, func() *exec.Cmd { return xargs(e.slots, file, "sh") })
			if err != nil {
				return err
			}
			ideal := float64((n+e.slots-1)/e.slots) * e.each
			p.add(ideal, b, a)
			r.row(append([]string{e.where, fmt.Sprint(e.slots), fmt.Sprintf("%d of %.3g s", n, e.each)},
				number("%.2f", ideal, b, a)...)...)
		}
		charts = append(charts, p)
	}
	r.say("Scale %.3g: the jobs of the paper take 2 s on 4 local clients, and 5 s on 32 HTCondor clients. "+
		"Its points are means of five trials, these %s.", l.scale, l.roundsText())
	return r.chart(charts...)
}

// roundsText describes how many rounds a figure is the median of.
func (l *lab) roundsText() string {
	if l.rounds == 1 {
		return "of a single round"
	}
	return fmt.Sprintf("medians of %d rounds", l.rounds)
}

// paperTries runs 500 jobs that fail with a probability of one half, up to K times each. The paper
// predicts that a share of 1 - C^K succeeds.
func paperTries(l *lab, r *report) error {
	const n, slots = 500, 4
	const coin = "test $(od -An -N1 -tu1 /dev/urandom) -lt 128"
	file := l.file("coins.txt", strings.Repeat(coin+"\n", n))
	tries := []int{1, 2, 3, 4, 5, 6, 8}
	p := newChart("500 jobs that fail with probability 0.5", "tries K", "% succeeded", tries, "1 - C^K",
		"xargs and a loop", "dcs-tui")
	r.table("K", "the paper: 1 - C^K", "xargs and a loop of K tries", "dcs-tui --tries K", "xargs, s", "dcs-tui, s")
	for _, k := range tries {
		loop := l.file("loop.txt",
			strings.Repeat(fmt.Sprintf("for i in $(seq %d); do %s && exit 0; done; exit 1\n", k, coin), n))
		log, failed := filepath.Join(l.dir, fmt.Sprintf("tries%d.tsv", k)), l.file("failed.txt", "")
		ours, theirs, _, err := l.beside(func() *exec.Cmd {
			os.Remove(log)
			return l.local(slots, "--tries", fmt.Sprint(k), "--retry-delay", "0", "--joblog", log, file)
		},
			func() *exec.Cmd {
				os.Truncate(failed, 0)
				return exec.Command("xargs", "-a", loop, "-d", "\n", "-P", fmt.Sprint(slots), "-I{}", "sh", "-c",
					`sh -c "$1" || echo >>"$0"`, failed, "{}")
			})
		if err != nil {
			return err
		}
		rows, err := os.ReadFile(log)
		if err != nil {
			return err
		}
		ok := 0 // the seventh column is the exit code
		for line := range strings.Lines(string(rows)) {
			if f := strings.Split(line, "\t"); len(f) > 6 && f[6] == "0" {
				ok++
			}
		}
		bad, err := os.ReadFile(failed)
		if err != nil {
			return err
		}
		expected := 100 * (1 - 1/float64(int(1)<<k))
		a, b := 100*float64(ok)/n, 100-100*float64(len(bad))/n
		p.add(expected, b, a)
		r.row(append(append([]string{fmt.Sprint(k)}, number("%.1f%%", expected, b, a)...),
			number("%.2f", theirs, ours)...)...)
	}
	r.say("%d jobs on %d slots of this machine, as in the paper. The standard deviation of a rate is %.1f points "+
		"at K = 1. The paper's points are means of five trials; these rates are of the last round.",
		n, slots, 100*0.5/math.Sqrt(n))
	return r.chart(p)
}

// paperZero runs 10,000 jobs of `sleep 0` on 1 to 16 slots.
func paperZero(l *lab, r *report) error {
	return l.empty(r, "sleep 0", 10000, []int{1, 2, 4, 8, 16}, 0)
}

// paperWorkers runs 8,000 empty jobs on 1 to 8 workers.
func paperWorkers(l *lab, r *report) error { return l.empty(r, ":", 8000, []int{1, 2, 4, 8}, 65) }

// empty runs jobs that do nothing on slots of one host over ssh. paper is the rate of a single worker
// in the paper, whose 8 workers were about 8 times as fast, or 0 if its text has none.
func (l *lab) empty(r *report, command string, most int, slots []int, paper float64) error {
	n := l.scaled(most)
	file := l.file("empty.txt", strings.Repeat(command+"\n", n))
	names := []string{"xargs -P", "dcs-tui"}
	columns := []string{"slots", "xargs -P, jobs/s", "dcs-tui, jobs/s", "ratio"}
	if paper > 0 {
		names, columns = append(names, "65 a worker"), append(columns, "the paper, jobs/s")
	}
	rounds := l.rounds
	l.rounds = max(3, rounds) // more rounds, because they are short
	defer func() { l.rounds = rounds }()
	p := newChart(fmt.Sprintf("%d jobs of %s", n, command), "slots", "jobs/s", slots, names...)
	r.table(columns...)
	for _, s := range slots {
		a, b, ratio, err := l.beside(func() *exec.Cmd { return l.dcs(1, s, l.runDir(), file) },
			func() *exec.Cmd { return xargs(s, file, "sh") })
		if err != nil {
			return err
		}
		ours, theirs := float64(n)/a, float64(n)/b
		values, row := []float64{theirs, ours}, append([]string{fmt.Sprint(s)},
			append(number("%.0f", theirs, ours), fmt.Sprintf("%.2f", ratio))...)
		if paper > 0 {
			values = append(values, paper*float64(s))
			switch s {
			case 1:
				row = append(row, fmt.Sprintf("about %.0f", paper))
			case 8:
				row = append(row, fmt.Sprintf("about 8 times %.0f", paper))
			default: // only in a figure
				row = append(row, "")
			}
		}
		p.add(values...)
		r.row(row...)
	}
	r.say("Scale %.3g: %d jobs instead of %d, on one host over ssh, connecting and leaving included; "+
		"medians of %d, the ratio of runs that follow each other. xargs keeps nothing.", l.scale, n, most, l.rounds)
	return r.chart(p)
}

// paperSleep gives each slot 80 s of sleep, in jobs of 1 to 8 s.
func paperSleep(l *lab, r *report) error {
	total := max(8, 80*l.scale)
	slots := []int{1, 2, 4, 8, 16}
	p := newChart(fmt.Sprintf("%.3g s of sleep for each slot", total), "slots", "% efficiency", slots, "jobs of 1 s",
		"2 s", "4 s", "8 s")
	r.table("slots", "jobs of 1 s: xargs -P", "dcs-tui", "2 s: xargs -P", "dcs-tui", "4 s: xargs -P", "dcs-tui",
		"8 s: xargs -P", "dcs-tui")
	for _, s := range slots {
		row, values := []string{fmt.Sprint(s)}, []float64(nil)
		for _, each := range []float64{1, 2, 4, 8} {
			file := l.file("sleeps.txt", sleeps(int(total/each)*s, each))
			a, b, _, err := l.beside(func() *exec.Cmd { return l.spread(4, s, l.runDir(), file) },
				func() *exec.Cmd { return xargs(s, file, "sh") })
			if err != nil {
				return err
			}
			ideal := 100 * float64(int(total/each)) * each
			row, values = append(row, number("%.1f%%", ideal/b, ideal/a)...), append(values, ideal/a)
		}
		p.add(values...)
		r.row(row...)
	}
	r.say("Scale %.3g: %.3g s of sleep for each slot instead of 80 s, over up to four hosts. "+
		"Connecting and leaving, about half a second, are inside; they weigh %.3g times as much as in the report, "+
		"whose 80 s are measured at its client, with all workers up. Its points are means of three runs, these %s.",
		total/80, total, 80/total, l.roundsText())
	return r.chart(p)
}

// paperStart measures one job of `sleep 1` on a host that is up, and on a host that a provider has
// to create. That host is an sshd of its own, which a script starts.
func paperStart(l *lab, r *report) error {
	script, err := filepath.Abs("examples/instances/instance.sh")
	if err != nil {
		return err
	}
	base := filepath.Join(l.dir, "instances")
	os.Setenv("DCS_INSTANCES", base)
	if out, err := exec.Command(script, "setup").CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	inventory := l.file("provider.toml",
		fmt.Sprintf("[[provider]]\nname = \"loopback\"\ncreate = \"%[1]s create {name} {idle}\"\n"+
			"list = \"%[1]s list {run}\"\n"+
			"terminate = \"%[1]s terminate {name}\"\nmax = 1\nstartup = \"2s\"\nidle = \"60s\"\nslots = 1\n"+
			"yield = false\nnice = 0\nwork_dir = \"%[2]s/{name}/work\"\nidentity = \"%[2]s/identity\"\n", script, base))
	ended := filepath.Join(l.dir, "ended")
	file := l.file("one.txt", "sleep 1; touch "+ended+"\n")
	started := func(host ...string) *exec.Cmd {
		return l.command(slices.Concat([]string{"run", "--no-tui", "--run-dir", l.runDir()}, host, []string{file})...)
	}
	rounds := max(3, l.rounds)
	r.table("one job of `sleep 1`", "the paper, ms", "xargs, ms", "dcs-tui, until the job's end, ms",
		"until the program's end, ms")
	for _, e := range []struct {
		what, paper string
		ours        func() *exec.Cmd
	}{
		{"its host is up", "3,256", func() *exec.Cmd {
			return started("--ssh-config", l.sshd[0].ConfigFile, "--hosts", l.inventory(1, 1))
		}},
		{"its host is to be created", "151,129", func() *exec.Cmd {
			return started("--ssh-config", filepath.Join(base, "ssh_config"), "--hosts", inventory)
		}},
	} {
		var jobs, ours, theirs []float64
		for range rounds {
			start := time.Now()
			a, err := timed(e.ours())
			if err != nil {
				return err
			}
			info, err := os.Stat(ended)
			if err != nil {
				return err
			}
			b, err := timed(xargs(1, file, "sh"))
			if err != nil {
				return err
			}
			jobs, ours, theirs = append(jobs, info.ModTime().Sub(start).Seconds()), append(ours,
				a.wall.Seconds()), append(theirs, b.wall.Seconds())
		}
		r.row(e.what, e.paper, fmt.Sprintf("%.0f", 1e3*median(theirs)), fmt.Sprintf("%.0f", 1e3*median(jobs)),
			fmt.Sprintf("%.0f", 1e3*median(ours)))
	}
	r.say("From the start of the program, medians of %d. The instance is an sshd that a script starts and ends, "+
		"so the time that a cloud takes to boot a machine, most of the paper's figure, is not in ours. "+
		"The program ends when the instance is gone.", rounds)
	return nil
}
