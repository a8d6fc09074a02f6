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

	"dcs-tui/internal/text"
)

// slotCases are the throughputs against slots: 64 jobs of 2 s on 1 to 8 slots of this machine, and 128
// jobs of 5 s on 4 to 64 slots of four hosts over ssh.
var slotCases = []struct {
	place
	slots []int
	jobs  int
	each  float64
}{{localPlace, []int{1, 2, 4, 8}, 64, 2}, {remotePlace, []int{4, 8, 16, 32, 64}, 128, 5}}

func slotTrials(l *lab) (list []trial, err error) {
	for _, c := range slotCases {
		file := l.file("sleeps.txt", sleeps(c.jobs, c.each*l.scale))
		for _, slots := range c.slots {
			list = append(list, l.beside(fmt.Sprint(c.name, " ", slots), c.place, slots, file)...)
		}
	}
	return list, nil
}

func showSlots(r *report, s *samples) error {
	r.table("hosts", "slots", "jobs", "ideal, jobs/s", "xargs -P, jobs/s", "dcs-tui, jobs/s", "of the ideal")
	var charts []*chart
	for _, c := range slotCases {
		each := c.each * r.scale
		p := newChart(fmt.Sprintf("Jobs of %.3g s, %s", each, c.title), "slots", "jobs/s", c.slots, "ideal", "xargs -P",
			"dcs-tui")
		for _, slots := range c.slots {
			of, n := fmt.Sprint(c.name, " ", slots), float64(c.jobs)
			ideal, a, b := float64(slots)/each, s.of(of, ours, "s", rate(n)), s.of(of, theirs, "s", rate(n))
			p.add(ideal, b.mean, a.mean)
			r.row(c.title, fmt.Sprint(slots), fmt.Sprintf("%d of %.3g s", c.jobs, each), fmt.Sprintf("%.2f", ideal),
				b.text("%.2f"), a.text("%.2f"), fmt.Sprintf("%.0f%%", 100*a.mean/ideal))
		}
		charts = append(charts, p)
	}
	r.say("The jobs of the paper take 2 s and 5 s, and its points are means of five trials. xargs runs on this " +
		"machine alone.")
	return r.chart(charts...)
}

// numberCases are the times of 1 to 256 jobs of 2 s on 4 slots of this machine, and of 5 s on 32 slots of
// four hosts over ssh.
var (
	numberCases = []struct {
		place
		slots int
		each  float64
	}{{localPlace, 4, 2}, {remotePlace, 32, 5}}
	numbersOfJobs = []int{1, 2, 4, 8, 16, 32, 64, 128, 256}
)

func numberTrials(l *lab) (list []trial, err error) {
	for _, c := range numberCases {
		for _, n := range numbersOfJobs {
			file := l.file("sleeps.txt", sleeps(n, c.each*l.scale))
			list = append(list, l.beside(fmt.Sprint(c.name, " ", n), c.place, c.slots, file)...)
		}
	}
	return list, nil
}

func showNumbers(r *report, s *samples) error {
	r.table("hosts", "slots", "jobs", "ideal, s", "xargs -P, s", "dcs-tui, s")
	var charts []*chart
	for _, c := range numberCases {
		each := c.each * r.scale
		p := newChart(fmt.Sprintf("Jobs of %.3g s on %d slots, %s", each, c.slots, c.title), "jobs", "s", numbersOfJobs,
			"ideal", "xargs -P", "dcs-tui")
		for _, n := range numbersOfJobs {
			of := fmt.Sprint(c.name, " ", n)
			ideal, a, b := float64((n+c.slots-1)/c.slots)*each, s.of(of, ours, "s", plain), s.of(of, theirs, "s", plain)
			p.add(ideal, b.mean, a.mean)
			r.row(c.title, fmt.Sprint(c.slots), fmt.Sprintf("%d of %.3g s", n, each), fmt.Sprintf("%.2f", ideal),
				b.text("%.2f"), a.text("%.2f"))
		}
		charts = append(charts, p)
	}
	r.say("The jobs of the paper take 2 s on 4 local clients, and 5 s on 32 HTCondor clients. Its points are " +
		"means of five trials.")
	return r.chart(charts...)
}

// The experiment tries has jobs that fail with a probability C of one half, up to K times each. The
// paper predicts that a share of 1 - C^K succeeds.
const tryJobs, trySlots = 500, 4

var numbersOfTries = []int{1, 2, 3, 4, 5, 6, 8}

func tryTrials(l *lab) (list []trial, err error) {
	const coin = "test $(od -An -N1 -tu1 /dev/urandom) -lt 128"
	file := l.file("coins.txt", strings.Repeat(coin+"\n", tryJobs))
	for _, k := range numbersOfTries {
		loop := l.file("loop.txt", strings.Repeat(fmt.Sprintf("for i in $(seq %d); do %s && exit 0; done; exit 1\n",
			k, coin), tryJobs))
		list = append(list, trial{fmt.Sprint(k), ours, func() (values, error) {
			log := filepath.Join(l.dir, fmt.Sprintf("tries%d.tsv", l.serial))
			v, err := seconds(l.local(trySlots, "--tries", fmt.Sprint(k), "--retry-delay", "0", "--joblog", log, file))
			if err != nil {
				return nil, err
			}
			rows, err := logRows(log)
			for _, f := range rows {
				if f[exitColumn] == "0" {
					v["succeeded"] += 100.0 / tryJobs
				}
			}
			return v, err
		}}, trial{fmt.Sprint(k), theirs, func() (values, error) {
			failed := l.file("failed.txt", "")
			v, err := seconds(exec.Command("xargs", "-a", loop, "-d", "\n", "-P", fmt.Sprint(trySlots), "-I{}", "sh",
				"-c",
				`sh -c "$1" || echo >>"$0"`, failed, "{}"))
			if err != nil {
				return nil, err
			}
			lines, err := os.ReadFile(failed)
			v["succeeded"] = 100 - 100*float64(len(lines))/tryJobs
			return v, err
		}})
	}
	return list, nil
}

// Columns of a job log.
const (
	startColumn   = 2
	runtimeColumn = 3
	exitColumn    = 6
)

// logRows returns the fields of each job in a job log.
func logRows(file string) (rows [][]string, err error) {
	text, err := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		if f := strings.Split(line, "\t"); len(f) > exitColumn && f[0] != "Seq" {
			rows = append(rows, f)
		}
	}
	return rows, err
}

func showTries(r *report, s *samples) error {
	p := newChart(fmt.Sprint(tryJobs, " jobs that fail with probability 0.5"), "tries K", "% succeeded", numbersOfTries,
		"1 - C^K", "xargs and a loop", "dcs-tui")
	times := newChart("Time of the same jobs", "tries K", "s", numbersOfTries, "xargs and a loop", "dcs-tui")
	r.table("K", "the paper: 1 - C^K", "xargs and a loop of K tries", "dcs-tui --tries K", "xargs, s", "dcs-tui, s")
	for _, k := range numbersOfTries {
		of, expected := fmt.Sprint(k), 100*(1-math.Pow(0.5, float64(k)))
		a, b := s.of(of, ours, "succeeded", plain), s.of(of, theirs, "succeeded", plain)
		p.add(expected, b.mean, a.mean)
		as, bs := s.of(of, ours, "s", plain), s.of(of, theirs, "s", plain)
		times.add(bs.mean, as.mean)
		r.row(of, fmt.Sprintf("%.1f%%", expected), b.text("%.1f%%"), a.text("%.1f%%"), bs.text("%.2f"), as.text("%.2f"))
	}
	r.say("%d jobs on %d slots of this machine, as in the paper, whatever the scale. The standard deviation of a "+
		"single rate is %.1f points at K = 1. The paper's points are means of five trials.",
		tryJobs, trySlots, 100*0.5/math.Sqrt(tryJobs))
	return r.chart(p, times)
}

// emptyJobs are jobs that do nothing, on numbers of slots of this machine and of one host over ssh.
type emptyJobs struct {
	command string
	jobs    int
	places  []place
	slots   []int
}

var (
	zeroJobs   = emptyJobs{"sleep 0", 10000, []place{localPlace, singlePlace}, []int{1, 2, 4, 8, 16}}
	workerJobs = emptyJobs{":", 8000, []place{singlePlace}, []int{1, 2, 4, 8}}
)

func zeroTrials(l *lab) (list []trial, err error) {
	file := l.file("empty.txt", strings.Repeat(zeroJobs.command+"\n", l.scaled(zeroJobs.jobs)))
	for _, p := range zeroJobs.places {
		for _, slots := range zeroJobs.slots {
			list = append(list, l.beside(fmt.Sprint(p.name, " ", slots), p, slots, file)...)
		}
	}
	return list, nil
}

func showZero(r *report, s *samples) error {
	n := max(1, math.Round(float64(zeroJobs.jobs)*r.scale))
	r.table("hosts", "slots", "xargs -P, jobs/s", "dcs-tui, jobs/s", "ratio")
	var charts []*chart
	for _, place := range zeroJobs.places {
		p := newChart(fmt.Sprintf("%.0f jobs of %s, %s", n, zeroJobs.command, place.title), "slots", "jobs/s",
			zeroJobs.slots, "xargs -P", "dcs-tui")
		for _, slots := range zeroJobs.slots {
			of := fmt.Sprint(place.name, " ", slots)
			a, b := s.of(of, ours, "s", rate(n)), s.of(of, theirs, "s", rate(n))
			p.add(b.mean, a.mean)
			r.row(place.title, fmt.Sprint(slots), b.text("%.0f"), a.text("%.0f"), fmt.Sprintf("%.2f", a.mean/b.mean))
		}
		charts = append(charts, p)
	}
	r.say("%.0f jobs, connecting and leaving included. xargs runs on this machine alone, and keeps nothing.", n)
	return r.chart(charts...)
}

// workerTrials measure how long it takes until each eighth of the jobs has ended.
func workerTrials(l *lab) (list []trial, err error) {
	file := l.file("empty.txt", strings.Repeat(workerJobs.command+"\n", l.scaled(workerJobs.jobs)))
	for _, slots := range workerJobs.slots {
		list = append(list, trial{fmt.Sprint(slots), ours, func() (values, error) {
			dir, start := l.runDir(), time.Now()
			v, err := seconds(l.dcs(1, slots, dir, file))
			if err != nil {
				return nil, err
			}
			rows, err := logRows(filepath.Join(dir, "joblog.tsv"))
			if err != nil {
				return nil, err
			}
			var ends []float64
			for _, f := range rows {
				var began, took float64
				if _, err := fmt.Sscan(f[startColumn]+" "+f[runtimeColumn], &began, &took); err != nil {
					return nil, fmt.Errorf("job log of %s: %w", dir, err)
				}
				ends = append(ends, began+took-float64(start.UnixMilli())/1e3)
			}
			slices.Sort(ends)
			for part := 1; part <= 8 && len(ends) >= 8; part++ {
				v[fmt.Sprint("until ", part, "/8")] = ends[len(ends)*part/8-1]
			}
			return v, nil
		}}, trial{fmt.Sprint(slots), theirs, func() (values, error) { return seconds(xargs(slots, file, "sh")) }})
	}
	return list, nil
}

func showWorkers(r *report, s *samples) error {
	const paperRate = 65 // of a single worker in the paper, whose 8 workers were about 8 times as fast
	n := max(1, math.Round(float64(workerJobs.jobs)*r.scale))
	rates := newChart(fmt.Sprintf("%.0f jobs of %s", n, workerJobs.command), "workers", "jobs/s", workerJobs.slots,
		"xargs -P", "dcs-tui", "65 a worker")
	r.table("slots", "xargs -P, jobs/s", "dcs-tui, jobs/s", "ratio", "the paper, jobs/s")
	var parts []int
	for part := 0; part <= 8; part++ {
		parts = append(parts, int(n)*part/8)
	}
	names := text.Each(workerJobs.slots, func(slots int) string { return fmt.Sprint(slots, " slots") })
	curve := newChart("Time until so many jobs have ended", "jobs", "s", parts, names...)
	var until [9][]float64
	for _, slots := range workerJobs.slots {
		of := fmt.Sprint(slots)
		a, b := s.of(of, ours, "s", rate(n)), s.of(of, theirs, "s", rate(n))
		rates.add(b.mean, a.mean, paperRate*float64(slots))
		said := map[int]string{1: "about 65", 8: "about 8 times 65"}[slots] // the others are only in a figure
		r.row(of, b.text("%.0f"), a.text("%.0f"), fmt.Sprintf("%.2f", a.mean/b.mean), said)
		for part := range until {
			until[part] = append(until[part], s.of(of, ours, fmt.Sprint("until ", part, "/8"), plain).mean)
		}
	}
	for _, values := range until {
		curve.add(values...)
	}
	r.say("%.0f jobs on one host over ssh, connecting and leaving included. xargs runs on this machine alone, and "+
		"keeps nothing. The second chart is the paper's curve: the time from the start of the program until so many "+
		"jobs have ended.", n)
	return r.chart(rates, curve)
}

var (
	sleepSlots = []int{1, 2, 4, 8, 16}
	sleepTimes = []int{1, 2, 4, 8}
)

// sleepTotal is the time of sleep for each slot, in seconds.
func (o options) sleepTotal() float64 { return max(8, 80*o.scale) }

func sleepTrials(l *lab) (list []trial, err error) {
	for _, slots := range sleepSlots {
		for _, each := range sleepTimes {
			file := l.file("sleeps.txt", sleeps(int(l.sleepTotal())/each*slots, float64(each)))
			list = append(list, l.beside(fmt.Sprintf("%d slots, %d s", slots, each), remotePlace, slots, file)...)
		}
	}
	return list, nil
}

func showSleep(r *report, s *samples) error {
	total := r.sleepTotal()
	p := newChart(fmt.Sprintf("%.3g s of sleep for each slot", total), "slots", "% efficiency", sleepSlots,
		"jobs of 1 s", "2 s", "4 s", "8 s")
	r.table("slots", "jobs of 1 s: xargs -P", "dcs-tui", "2 s: xargs -P", "dcs-tui", "4 s: xargs -P", "dcs-tui",
		"8 s: xargs -P", "dcs-tui")
	for _, slots := range sleepSlots {
		row, line := []string{fmt.Sprint(slots)}, []float64(nil)
		for _, each := range sleepTimes {
			of, ideal := fmt.Sprintf("%d slots, %d s", slots, each), 100*float64(int(total)/each*each)
			a, b := s.of(of, ours, "s", rate(ideal)), s.of(of, theirs, "s", rate(ideal))
			row, line = append(row, b.text("%.1f%%"), a.text("%.1f%%")), append(line, a.mean)
		}
		p.add(line...)
		r.row(row...)
	}
	note := "Over up to four hosts. Connecting and leaving, about half a second, are inside. The report measures its " +
		"80 s at its client, with all workers up. Its points are means of three runs."
	if total != 80 {
		note += fmt.Sprintf(" What is inside weighs %.3g times as much here.", 80/total)
	}
	r.say("%s", note)
	return r.chart(p)
}

// startTrials measure one job of `sleep 1` on a host that is up, and on a host that a provider has to
// create. That host is an sshd of its own, which a script starts.
func startTrials(l *lab) (list []trial, err error) {
	script, err := filepath.Abs("examples/instances/instance.sh")
	if err != nil {
		return nil, err
	}
	base := filepath.Join(l.dir, "instances")
	if _, err := os.Stat(base); err != nil {
		os.Setenv("DCS_INSTANCES", base)
		if out, err := exec.Command(script, "setup").CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%w: %s", err, out)
		}
	}
	inventory := l.file("provider.toml",
		fmt.Sprintf("[[provider]]\nname = \"loopback\"\ncreate = \"%[1]s create {name} {idle}\"\n"+
			"list = \"%[1]s list {run}\"\n"+
			"terminate = \"%[1]s terminate {name}\"\nmax = 1\nstartup = \"2s\"\nidle = \"60s\"\nslots = 1\n"+
			"yield = false\nnice = 0\nwork_dir = \"%[2]s/{name}/work\"\nidentity = \"%[2]s/identity\"\n", script, base))
	ended := filepath.Join(l.dir, "ended")
	file := l.file("one.txt", "sleep 1; touch "+ended+"\n")
	measure := func(of string, host ...string) trial {
		return trial{of, ours, func() (values, error) {
			start := time.Now()
			v, err := seconds(l.command(slices.Concat([]string{"run", "--no-tui", "--run-dir", l.runDir()}, host,
				[]string{file})...))
			if err != nil {
				return nil, err
			}
			info, err := os.Stat(ended)
			if err != nil {
				return nil, err
			}
			v["job"] = info.ModTime().Sub(start).Seconds()
			return v, nil
		}}
	}
	return []trial{
		measure("up", "--ssh-config", l.sshd[0].ConfigFile, "--hosts", l.inventory(1, 1)),
		{"up", theirs, func() (values, error) { return seconds(xargs(1, file, "sh")) }},
		measure("created", "--ssh-config", filepath.Join(base, "ssh_config"), "--hosts", inventory),
	}, nil
}

func showStart(r *report, s *samples) error {
	ms := func(v float64) float64 { return 1e3 * v }
	r.table("one job of `sleep 1`", "the paper, ms", "xargs, ms", "dcs-tui, until the job's end, ms",
		"until the program's end, ms")
	for _, c := range []struct{ of, what, paper string }{
		{"up", "its host is up", "3,256"}, {"created", "its host is to be created", "151,129"},
	} {
		r.row(c.what, c.paper, s.of("up", theirs, "s", ms).text("%.0f"), s.of(c.of, ours, "job", ms).text("%.0f"),
			s.of(c.of, ours, "s", ms).text("%.0f"))
	}
	r.say("From the start of the program. The instance is an sshd that a script starts and ends, so the time that a " +
		"cloud takes to boot a machine, most of the paper's figure, is not in ours. The program ends when the " +
		"instance is gone.")
	return nil
}
