package arch

import (
	"regexp"
	"strings"
	"testing"
)

// glossaryTerms match uses of the terms of docs/glossary.md as nouns; the term is the first group.
var glossaryTerms = map[string]*regexp.Regexp{
	"run": regexp.MustCompile(`(?i)\b(?:a|an?other|the|this|each|every|of|your|old|other|several|all|two|` +
		`whole|such) (runs?)\b`),
	"dispatcher": regexp.MustCompile(`(?i)\b(dispatchers?)\b`),
	"inventory":  regexp.MustCompile(`(?i)\b(inventor(?:y|ies))\b`),
	"job":        regexp.MustCompile(`(?i)\b(jobs?)\b`),
	"try":        regexp.MustCompile(`(?i)\b(?:a|one|no|next|last|each|of|three|that|its|many|current) (try|tries)\b`),
	"attempt":    regexp.MustCompile(`(?i)\b(attempts?)\b`),
	"round":      regexp.MustCompile(`(?i)\b(?:a|the|this|new|next|each|newest|one) (rounds?)\b`),
	"slot":       regexp.MustCompile(`(?i)\b(slots?)\b`),
	"epoch":      regexp.MustCompile(`(?i)\b(epochs?)\b`),
	"mirror":     regexp.MustCompile(`(?i)\b(mirrors?)\b`),
}

var (
	generated    = regexp.MustCompile(`(?s)<!-- keys.*?<!-- end of .*?-->\n`)
	codeBlock    = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	codeSpan     = regexp.MustCompile("`[^`]*`")
	heading      = regexp.MustCompile(`(?m)^#.*$`)
	glossaryLink = regexp.MustCompile(`\[([^\]]*)\]\((?:docs/)?glossary\.md\)`)
	otherLink    = regexp.MustCompile(`\[[^\]]*\]\([^)]*\)`)
	otherMeaning = regexp.MustCompile(`(?i)\b(?:run director(?:y|ies)|run times?|jobs files?|round trips?)\b`)
)

// TestTermsAreLinked checks that each page of the guide links each term of the glossary where it uses
// it first.
func TestTermsAreLinked(t *testing.T) {
	const begin, end = "\x01", "\x02" // of a link to the glossary
	pages := markdown(t)
	for term := range glossaryTerms {
		if !strings.Contains(pages["docs/glossary.md"], "\n| "+term+" |") {
			t.Errorf("docs/glossary.md does not explain %q", term)
		}
	}
	for page, text := range pages {
		if !isGuide(page) {
			continue
		}
		for _, r := range []*regexp.Regexp{generated, codeBlock, marker} {
			text = r.ReplaceAllString(text, "")
		}
		text = glossaryLink.ReplaceAllString(text, begin+"$1"+end)
		for _, r := range []*regexp.Regexp{codeSpan, heading, otherLink} {
			text = r.ReplaceAllString(text, "·")
		}
		text = otherMeaning.ReplaceAllString(strings.Join(strings.Fields(text), " "), "·")
		for term, uses := range glossaryTerms {
			first := uses.FindStringSubmatchIndex(strings.NewReplacer(begin, "", end, "").Replace(text))
			if first == nil {
				continue
			}
			if linked := glossaryUse(text, begin, end, first[2]); !linked {
				t.Errorf("%s: the first use of %q has no link to the glossary", page, term)
			}
		}
	}
}

// glossaryUse reports whether what is at an offset of a text without the marks begin and end is
// between them.
func glossaryUse(text, begin, end string, offset int) bool {
	linked := false
	for i := 0; i < len(text); i++ {
		switch text[i : i+1] {
		case begin:
			linked = true
		case end:
			linked = false
		default:
			if offset == 0 {
				return linked
			}
			offset--
		}
	}
	return false
}

// isGuide reports whether a page is for users: those of docs/ itself, and the README.
func isGuide(page string) bool {
	return page == "README.md" || strings.HasPrefix(page, "docs/") && strings.Count(page, "/") == 1 &&
		page != "docs/README.md" && page != "docs/glossary.md" && page != "docs/compare.md"
}
