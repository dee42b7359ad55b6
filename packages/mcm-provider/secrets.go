package mcmprovider

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

const (
	hidden = "[redacted]"
	// Shorter values (`true`, `default`) would be found in any text.
	shortestValue = 8
	// Of a longer text, such as user data or a key file, words from this length on are keys and tokens, or as good as.
	shortestWord = 20
)

var (
	// Members of Secrets that say where, and no secret: without them an error would not say where either.
	public    = regexp.MustCompile(`(?i)region|zone|url$|endpoint|domain|namespace|tenant|subscription|project|user_?name`)
	separator = regexp.MustCompile("[\\s\"'`,;=\\\\]+")
)

// withoutSecrets is a text without the pieces in it; they are ordered, the longest first, as one may hold another.
func withoutSecrets(text string, pieces []string) string {
	for _, piece := range pieces {
		text = strings.ReplaceAll(text, piece, hidden)
	}
	return text
}

// piecesOf is everything of a Secret that must not be shown, the longest first. The manager has the same rules
// (pkg/driver/without-secrets.ts).
func piecesOf(data map[string][]byte) []string {
	pieces := map[string]int{}
	for name, bytes := range data {
		if public.MatchString(name) {
			continue
		}
		value := strings.TrimSpace(string(bytes))
		for _, form := range formsOf(value, bytes) {
			if len(form) >= shortestValue {
				pieces[form] = 1
			}
		}
		for _, word := range separator.Split(value, -1) {
			isAddress := strings.Contains(word, "://") && !strings.Contains(word, "@")
			if len(word) >= shortestWord && !isAddress {
				pieces[word] = 1
			}
		}
	}
	return longestFirst(pieces)
}

// formsOf is a value as programs write it: as it is, in JSON, as Go prints bytes, in base64, in hex, in a URL.
func formsOf(value string, bytes []byte) []string {
	quoted, _ := json.Marshal(value) // a string
	forms := []string{
		value,
		strings.Trim(string(quoted), `"`),
		base64.StdEncoding.EncodeToString(bytes),
		base64.RawStdEncoding.EncodeToString(bytes),
		base64.RawURLEncoding.EncodeToString(bytes),
		hex.EncodeToString(bytes),
		url.QueryEscape(value),
		url.PathEscape(value),
	}
	if len(value) >= shortestValue {
		forms = append(forms, strings.Trim(fmt.Sprint(bytes), "[]"))
	}
	return forms
}
