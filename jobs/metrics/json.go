package metrics

import (
	"bytes"
	"encoding/json"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// jsonLine is a decoded piece of a Text.
type jsonLine struct {
	line  int // number of the line, counted from the last
	value any // nil: the line is not JSON
}

// maxJSON bounds the number of JSON lines that are decoded to find a member.
const maxJSON = 10_000

// findJSON searches the whole text if it is one document, such as a metrics.json, and otherwise
// the last line that is an object with the wanted member.
func (c *Metric) findJSON(t *Text) (value string) {
	if c.File != "" && t.whole {
		if t.doc == nil {
			t.doc = &jsonLine{value: decode(t.lines)}
		}
		if t.doc.value != nil {
			return walk(t.doc.value, c.path)
		}
	}
	if c.File != "" && !t.whole && strings.HasSuffix(c.File, ".json") {
		return "" // the last lines of a document may look like documents
	}
	number, seen := 0, 0
	linesBackward(t.lines, func(line []byte) bool {
		number++
		line = bytes.TrimSpace(line)
		if len(line) < 2 || line[0] != '{' || line[len(line)-1] != '}' {
			return false
		}
		if t.decoded == nil || t.decoded.line != number {
			t.decoded = &jsonLine{number, decode(line)}
		}
		value = walk(t.decoded.value, c.path)
		seen++
		return value != "" || seen == maxJSON
	})
	return value
}

// decode decodes a document of JSON, in which NaN and infinities are accepted. It returns nil for
// other text.
func decode(b []byte) any {
	v, err := decodeOne(b)
	if err != nil {
		if v, err = decodeOne(quoteNaN(b)); err != nil {
			return nil
		}
	}
	return v
}

// decodeOne decodes one document. It keeps numbers as they were written.
func decodeOne(b []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err = d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, nil // more data follows the document
	}
	return v, nil
}

// notJSON matches NaN, Infinity, and -Infinity, which Python writes although they are not JSON, and
// the strings, in which they stay as they are.
var notJSON = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?s)"(?:[^"\\]|\\.)*"?|NaN|-?Infinity`)
})

// quoteNaN puts quotes around NaN and the infinities.
func quoteNaN(b []byte) []byte {
	return notJSON().ReplaceAllFunc(b, func(word []byte) []byte {
		if word[0] == '"' {
			return word
		}
		return slices.Concat([]byte{'"'}, word, []byte{'"'})
	})
}

// walk follows a path and returns the value at its end as text, or "" if there is none. A member
// whose name contains dots is found by joining the rest of the path.
func walk(v any, path []string) string {
	for len(path) > 0 {
		switch at := v.(type) {
		case map[string]any:
			if end, ok := at[strings.Join(path, ".")]; ok {
				return jsonText(end)
			}
			v = at[path[0]]
		case []any:
			i, err := strconv.Atoi(path[0])
			if i < 0 {
				i += len(at) // -1 is the last
			}
			if err != nil || i < 0 || i >= len(at) {
				return ""
			}
			v = at[i]
		default:
			return ""
		}
		path = path[1:]
	}
	return jsonText(v)
}

func jsonText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case json.Number:
		return limitValue([]byte(v))
	case string:
		return limitValue([]byte(v))
	case bool:
		return strconv.FormatBool(v)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return limitValue(b)
}
