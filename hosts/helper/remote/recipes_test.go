//go:build linux

package remote

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// recipe returns the value of the key or flag in docs/environments.md that contains the word.
func recipe(t *testing.T, word string) string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/environments.md")
	must(t, err)
	value := regexp.MustCompile(`(?m)^(?:setup = |dcs-tui run --shell )'([^'\n]*)'`)
	for _, m := range value.FindAllStringSubmatch(string(page), -1) {
		if strings.Contains(m[1], word) {
			return m[1]
		}
	}
	t.Fatalf("docs/environments.md has no recipe with %q", word)
	return ""
}

// laboratory is a host with a made-up home directory and made-up programs.
type laboratory struct {
	*world
	home string
}

// newLaboratory makes the files of the home directory, and programs in PATH.
func newLaboratory(t *testing.T, files, programs map[string]string) laboratory {
	t.Helper()
	replacePrograms(t, programs)
	home := t.TempDir()
	for name, text := range files {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o700))
		must(t, os.WriteFile(filepath.Join(home, name), []byte(text), 0o700))
	}
	return laboratory{newWorld(t, "HOME="+home), home}
}

// outputWith runs a command with a setup and a shell, and returns its outcome and its output.
func (l laboratory) outputWith(setup, shell, command string) (jobs.Outcome, string) {
	l.t.Helper()
	o := l.open()
	o.Setup, o.Shell = setup, shell
	f := l.start(o)
	f.launch(job("1.1", command))
	outcome := f.exit("1.1")
	f.endRun()
	return outcome, l.content("1.1", jobs.FileOut)
}

// checkOutput runs a command that must succeed and print want.
func (l laboratory) checkOutput(setup, shell, command, want string) {
	l.t.Helper()
	if o, out := l.outputWith(setup, shell, command); !o.OK() || out != want {
		l.t.Errorf("%+v with the output %q, want %q", o, out, want)
	}
}

// checkFailure runs a command, which must not run, because the setup fails.
func (l laboratory) checkFailure(setup, shell string, exit int) {
	l.t.Helper()
	if o, out := l.outputWith(setup, shell, "echo the job ran"); o.Exit != exit || out != "" {
		l.t.Errorf("%+v with the output %q, want exit %d and no output", o, out, exit)
	}
}

// condaFiles define a function that changes the environment of the shell, as conda.sh does.
var condaFiles = map[string]string{
	"miniconda3/etc/profile.d/conda.sh": `conda() {
	case $1 in
	activate)
		if [ ! -d "$HOME/miniconda3/envs/$2" ]; then echo "EnvironmentNameNotFound: $2" >&2; return 1; fi
		export CONDA_DEFAULT_ENV="$2" CONDA_PREFIX="$HOME/miniconda3/envs/$2"
		export PATH="$CONDA_PREFIX/bin:$PATH";;
	*) return 2;;
	esac
}
`,
	"miniconda3/envs/lab/bin/python": "#!/bin/sh\necho python of $CONDA_DEFAULT_ENV\n",
}

// TestRecipeForConda checks that a job has the programs of a conda environment, and fails if there
// is no such environment.
func TestRecipeForConda(t *testing.T) {
	setup := recipe(t, "conda activate")
	newLaboratory(t, condaFiles, nil).checkOutput(setup, "", "python", "python of lab\n")
	newLaboratory(t, condaFiles, nil).checkOutput(setup, "bash -e", "python", "python of lab\n")
	newLaboratory(t, condaFiles, nil).checkFailure(strings.ReplaceAll(setup, "activate lab", "activate none"), "", 1)
}

// TestRecipeForModules checks that a job has the programs of the loaded modules, and fails without
// them, also with an old module command, which reports success.
func TestRecipeForModules(t *testing.T) {
	files := map[string]string{
		// Like the real one, the function evaluates what a program prints.
		"modules.sh": `module() { eval "$("$HOME/modulecmd" sh "$@")"; }` + "\n",
		"modulecmd": `#!/bin/sh
[ "$1 $2" = "sh load" ] || exit 2
shift 2
for m; do
	if [ -d "$HOME/modules/$m" ]; then
		echo "PATH='$HOME/modules/$m/bin':\$PATH; LOADEDMODULES=\$LOADEDMODULES:$m; export PATH LOADEDMODULES;"
	else echo "ModuleCmd_Load.c: ERROR: Unable to locate a modulefile for '$m'" >&2; fi
done
`,
		"modules/gcc/13/bin/gcc":     "#!/bin/sh\necho gcc 13\n",
		"modules/openmpi/bin/mpirun": "#!/bin/sh\necho mpirun with $LOADEDMODULES\n",
	}
	lab := newLaboratory(t, files, nil)
	at := func(home string) string { return strings.ReplaceAll(recipe(t, "module load"), "/etc/profile.d", home) }
	lab.checkOutput(at(lab.home), "", "mpirun; gcc", "mpirun with :gcc/13:openmpi\ngcc 13\n")
	delete(files, "modules/openmpi/bin/mpirun")
	lab = newLaboratory(t, files, nil)
	setup := strings.ReplaceAll(at(lab.home), "mpirun", "program-of-openmpi") // this host may have the real one
	if o, out := lab.outputWith(setup, "", "echo ran"); o.OK() || out != "" {
		t.Errorf("without the module: %+v with the output %q", o, out)
	}
}

// TestFirstFailingSetupDecides checks that a job fails if the setup of its host fails, although
// that of its run succeeds, and that variables of both reach the job.
func TestFirstFailingSetupDecides(t *testing.T) {
	newLaboratory(t, nil, nil).checkFailure(hosts.JoinSetups("", "(exit 3)", "", "true"), "", 3)
	setup := hosts.JoinSetups("bash", "A=1 # of the host", "B=2")
	newLaboratory(t, nil, nil).checkOutput(setup, "bash", "echo $A $B", "1 2\n")
	if got := hosts.JoinSetups("fish", "set A 1", "set B 2"); got != "set A 1\nset B 2" {
		t.Errorf("for fish, got %q", got)
	}
}

// TestRecipeForVirtualEnvironments checks that a job uses the Python of an environment.
func TestRecipeForVirtualEnvironments(t *testing.T) {
	lab := newLaboratory(t, map[string]string{
		"lab/venv/bin/activate": `VIRTUAL_ENV="$HOME/lab/venv"; PATH="$VIRTUAL_ENV/bin:$PATH"; export PATH` + "\n",
		"lab/venv/bin/python":   "#!/bin/sh\necho python of a virtual environment\n",
	}, nil)
	lab.checkOutput(recipe(t, "venv"), "", "python", "python of a virtual environment\n")
}

// apptainer is a stand-in that takes the options of exec, checks the image, and runs the command in
// the current directory with the environment of its caller, as the real one does.
const apptainer = `[ "$1" = exec ] || exit 2
shift
while :; do case $1 in --nv) nv=yes; shift;; --bind) shift 2;; -*) exit 2;; *) break;; esac; done
image=$1; shift
[ -f "$image" ] || { echo "FATAL: could not open image $image" >&2; exit 255; }
APPTAINER_CONTAINER=$image APPTAINER_NV=$nv exec "$@"
`

// TestRecipeForContainers checks that a job runs in a container, with its variables, its directory,
// and its setup, that the exit code is that of the job, and that a failing setup or a missing image
// fails it.
func TestRecipeForContainers(t *testing.T) {
	lab := func() (laboratory, string) {
		lab := newLaboratory(t, map[string]string{"lab.sif": ""}, map[string]string{"apptainer": apptainer})
		return lab, strings.ReplaceAll(recipe(t, "apptainer"), "/shared", lab.home)
	}
	l, shell := lab()
	l.checkOutput("IN=$APPTAINER_CONTAINER", shell, `echo "$DCS_JOB_ID $APPTAINER_NV $IN"; pwd`,
		"1 yes "+l.home+"/lab.sif\n"+l.runDir+"\n")
	l, shell = lab()
	if o, _ := l.outputWith("", shell, "exit 7"); o.Exit != 7 {
		t.Errorf("%+v, want exit 7", o)
	}
	l, shell = lab()
	l.checkFailure("false", shell, 1)
	l, shell = lab()
	must(t, os.Remove(l.home+"/lab.sif"))
	l.checkFailure("", shell, 255)
}

// TestRecipesForTickets checks that the setup of a job can renew a ticket, that a job fails if that
// fails, and that a job can have a ticket of its own that a program renews until the job ends.
func TestRecipesForTickets(t *testing.T) {
	renews := map[string]string{"krenew": `[ "$*" = "-H 600 -t" ] && echo renewed >> "$HOME/cache"`}
	newLaboratory(t, nil, renews).checkOutput(recipe(t, "krenew -H"), "", `cat "$HOME/cache"`, "renewed\n")
	fails := map[string]string{"krenew": `echo "krenew: error renewing credentials" >&2; exit 1`}
	newLaboratory(t, nil, fails).checkFailure(recipe(t, "krenew -H"), "", 1)
	// With a command, both programs run it with a cache of its own.
	const wraps = `while [ "$1" != -- ]; do
	case $1 in -t|-q|-U) ;; -f) shift; [ -f "$1" ] || exit 1;; *) exit 2;; esac
	shift
done
shift
KRB5CCNAME=FILE:private "$@"
`
	programs := map[string]string{"krenew": wraps, "k5start": wraps}
	const show, own = "echo $KRB5CCNAME", "FILE:private\n"
	newLaboratory(t, nil, programs).checkOutput("", recipe(t, "krenew -t --"), show, own)
	lab := newLaboratory(t, map[string]string{".keytab": ""}, programs)
	lab.checkOutput("", strings.ReplaceAll(recipe(t, "k5start"), "/home/ada", lab.home), show, own)
}
