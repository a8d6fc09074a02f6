package arch

import (
	"bufio"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// A line of a Go file has at most maxColumns columns. A tab counts as tabColumns.
const maxColumns, tabColumns = 120, 4

// TestLinesFitTheScreen checks that no line of a Go file has more than maxColumns columns.
func TestLinesFitTheScreen(t *testing.T) {
	for path := range sourceFiles(t, token.NewFileSet(), 0, func(string) bool { return false }) {
		for _, number := range longLines(t, filepath.Join("../..", path)) {
			t.Errorf("%s:%d: the line has more than %d columns", path, number, maxColumns)
		}
	}
}

// longLines returns the numbers of the lines of a file that have more than maxColumns columns.
func longLines(t *testing.T, path string) (numbers []int) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for number := 1; lines.Scan(); number++ {
		columns := utf8.RuneCountInString(lines.Text()) + (tabColumns-1)*strings.Count(lines.Text(), "\t")
		if columns > maxColumns {
			numbers = append(numbers, number)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return numbers
}
