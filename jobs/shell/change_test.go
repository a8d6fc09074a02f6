package shell

import "testing"

// TestCommandsThatChangeOnlyTheirShell checks which commands are of no use as jobs of their own: those
// that change the directory or a setting of their shell, and do nothing else.
func TestCommandsThatChangeOnlyTheirShell(t *testing.T) {
	for want, commands := range map[Change][]string{
		DirectoryChange: {"cd data", "cd", "cd ..", `cd "my data"`, " cd /x ", "pushd data"},
		StateChange: {"export X=1", "export X=1 Y=2", "X=1", "X+=1", "X=", "source env/bin/activate", ". ./env.sh",
			"module load cuda/12", "ml load gcc", "conda activate sim", "set -e", "set -o pipefail", "unset X",
			"alias ll='ls -l'", "declare -x X=1"},
		NoChange: {"cd data && ./sim", "cd data; ./sim", "(cd data)", "X=1 ./sim", "export", "export -p", "./sim X=1",
			"source", "module avail", "conda run x", "set", "cdparanoia 1", "./cd x", "X=$(./sim)", "X=`./sim`",
			"cd data > log", "export X=1; ./sim", "", "alias", "a[1]=2", "2x=3", "echo cd"},
	} {
		for _, command := range commands {
			if got := ChangeOf(command); got != want {
				t.Errorf("%q: got %d, want %d", command, got, want)
			}
		}
	}
}
