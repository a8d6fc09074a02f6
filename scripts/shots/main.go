// Command shots makes a real run for screenshots: a lab of sshd servers on loopback, with the
// program in tmux. It saves the content of the terminals with their colors. scripts/screenshots
// draws the pictures.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"dcs-tui/hosts/hosttest"
)

func main() {
	bin := flag.String("bin", "./dcs-tui", "the program")
	out := flag.String("o", "shots", "where the captures go")
	flag.Parse()
	if err := run(*bin, *out); err != nil {
		fmt.Fprintln(os.Stderr, "shots:", err)
		os.Exit(1)
	}
}

const lab = 6 // number of hosts

func run(bin, out string) error {
	dir, err := os.MkdirTemp("", "lab-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	// The user's own state directory contains the list of the user's runs.
	os.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	var inventory strings.Builder
	var hosts []*hosttest.SSHD
	for i := range lab {
		var o hosttest.Options
		if i > 0 {
			o.With = hosts[0]
		}
		sub := filepath.Join(dir, fmt.Sprintf("ws%02d", i+1))
		if err := os.Mkdir(sub, 0o700); err != nil {
			return err
		}
		s, err := hosttest.NewSSHD(sub, o)
		if err != nil {
			return err
		}
		defer s.Stop()
		hosts = append(hosts, s)
		fmt.Fprintf(&inventory, "[[host]]\nname = \"ws%02d\"\naddress = \"127.0.0.1\"\nport = %d\nuser = %q\n"+
			"identity = %q\nslots = %d\nyield = false\nwork_dir = %q\n\n",
			i+1, s.Port, s.User, s.Identity, 4, filepath.Join(sub, "work"))
	}
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		return err
	}
	for name, text := range map[string]string{"lab.toml": inventory.String(), "train.sh": train, "sweep.txt": sweep,
		"tmux.conf": "set -g status off\nset -g default-terminal tmux-256color\n"} {
		if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	t := &tmux{socket: filepath.Join(dir, "s")}
	start := fmt.Sprintf("PATH=%s:$PATH exec dcs-tui grid --hosts lab.toml --ssh-config %s --name sweep sweep.txt",
		filepath.Dir(bin), hosts[0].ConfigFile)
	if err := t.do("-f", filepath.Join(work, "tmux.conf"), "-u", "new-session", "-d", "-x", "160", "-y", "48", "-c",
		work, "env", "LC_ALL=C.UTF-8", "sh", "-c", start); err != nil {
		return err
	}
	defer func() {
		cancel := exec.Command(bin, "cancel", "--all", "--yes", filepath.Join(work, "dcs-runs", "sweep"))
		cancel.Dir = work
		cancel.Run()
		t.do("kill-server")
	}()
	if err := t.until(`\[1 Jobs`); err != nil {
		return err
	}
	time.Sleep(45 * time.Second) // wait for some history
	freeze := func() {           // makes ws05 stop answering
		hosts[4].Freeze()
	}
	defer hosts[4].Resume()
	if err := t.record(out, freeze); err != nil {
		return err
	}
	if err := t.until("✗"); err != nil { // wait until ws05 is lost
		return err
	}
	shots := []struct {
		name string
		w, h int
		keys []string
		wait string // the keys are sent once the screen matches this regular expression
	}{
		{"jobs", 160, 48, []string{"g", "j", "j"}, ""},
		{"failed", 160, 48, []string{"3"}, ""},
		{"jobs", 80, 24, []string{"1", "g", "j", "Space", "j", "Space", "l"}, ""},
		{"hosts", 80, 24, []string{"Escape", "2"}, ""},
		{"details", 80, 24, []string{"1", "/state=failed\n", "g", "Enter"}, ""},
		{"results", 80, 24, []string{"Escape", "Escape", "Escape", "4", ":sort acc desc\n", ":best acc:max\n", "g"},
			`7\d ok`},
		{"heat", 80, 24, []string{"h", "j", "j", "j", "j", "Right", "Right"}, ""},
	}
	for _, s := range shots {
		if err := t.do("resize-window", "-x", fmt.Sprint(s.w), "-y", fmt.Sprint(s.h)); err != nil {
			return err
		}
		if err := t.until(s.wait); err != nil {
			return err
		}
		for _, k := range s.keys {
			if text, typed := strings.CutSuffix(k, "\n"); typed {
				t.do("send-keys", "-l", text[:1])
				time.Sleep(300 * time.Millisecond)
				t.do("send-keys", "-l", text[1:])
				k = "Enter"
			}
			t.do("send-keys", k)
			time.Sleep(300 * time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		shown, err := t.out("capture-pane", "-p", "-e")
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(out, fmt.Sprintf("%s-%dx%d.ans", s.name, s.w, s.h)), shown,
			0o644); err != nil {
			return err
		}
	}
	return nil
}

// recordedKeys are the keys of the animation, by the second at which they are pressed.
var recordedKeys = map[int]string{1: "g", 6: "j", 7: "j", 8: "l", 16: "Escape", 17: "g", 20: "2", 29: "4", 33: "h"}

// record saves the screen once a second while a host stops answering and keys are pressed.
func (t *tmux) record(out string, freeze func()) error {
	if err := t.do("resize-window", "-x", "120", "-y", "32"); err != nil {
		return err
	}
	time.Sleep(2 * time.Second)
	for i := range 40 {
		if i == 3 {
			freeze()
		}
		if key, ok := recordedKeys[i]; ok {
			t.do("send-keys", key)
		}
		time.Sleep(time.Second)
		shown, err := t.out("capture-pane", "-p", "-e")
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(out, fmt.Sprintf("frame-%03d-120x32.ans", i)), shown, 0o644); err != nil {
			return err
		}
	}
	return t.do("send-keys", "h", "1") // leave the heat map
}

// sweep is a typical parameter grid with about a hundred settings. Some fail for one of two
// reasons.
const sweep = `#DCS default tries=2
#DCS name='train C=[C] gamma=[gamma] seed=[seed]'
sh train.sh [C] [gamma] [seed]
[C]     0.01 0.03 0.1 0.3 1 3 10 30 100
[gamma] 0.03 0.1 0.3 1 3 10
[seed]  1..2
@result acc
@result loss
`

// train is the script of a simulated training. It reports its progress and prints every epoch.
const train = `C=$1 gamma=$2 seed=$3 n=$DCS_JOB_ID
epochs=$((20 + n * 7 % 40))
echo "training with C=$C gamma=$gamma, $epochs epochs"
i=0
while [ $i -lt $epochs ]; do
	i=$((i + 1))
	echo "$i/$epochs" >"$DCS_PROGRESS"
	awk -v i=$i -v n=$n 'BEGIN {
		srand(i * 100 + n)
		printf "epoch %2d  loss %.4f  acc %.3f\n", i, 2.1 / (i + 2) + rand() / 50, 1 - 0.9 / (i + 3) - rand() / 80
	}'
	[ $((n % 9)) -eq 4 ] && [ $i -eq 3 ] && { echo "ValueError: input contains NaN" >&2; exit 1; }
	[ $((n % 13)) -eq 6 ] && [ $i -eq 6 ] && { echo "epoch $i" >&2; kill -9 $$; }
	sleep 1
done
awk -v c=$C -v g=$gamma -v n=$n 'BEGIN { srand(n); x = log(c) / 2.3; y = log(g) / 2.3
	acc = 0.55 + 0.4 * exp(-((x - 0.5) ^ 2 + (y + x / 2) ^ 2) / 2) + rand() / 100
	printf "acc=%.3f\nloss=%.4f\n", acc, -log(acc) }'
`

type tmux struct{ socket string }

func (t *tmux) out(args ...string) ([]byte, error) {
	cmd := exec.Command("tmux", append([]string{"-S", t.socket}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TMUX=")
	return cmd.Output()
}

func (t *tmux) do(args ...string) error { _, err := t.out(args...); return err }

// until waits until the screen matches a regular expression.
func (t *tmux) until(expr string) error {
	wanted := regexp.MustCompile(expr)
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if shown, _ := t.out("capture-pane", "-p"); wanted.Match(shown) {
			return nil
		}
	}
	shown, _ := t.out("capture-pane", "-p")
	return fmt.Errorf("the screen does not come to show %q:\n%s", expr, shown)
}
