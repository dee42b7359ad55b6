package mcmprovider

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
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
	public = regexp.MustCompile(`(?i)region|zone|url$|endpoint|domain|namespace|tenant|subscription|project|user_?name`)
	// Members that are secret whatever else their names say.
	private = regexp.MustCompile(`(?i)pass|secret|token|credential|private|keys?$`)
	// An address with a password in it.
	withPassword = regexp.MustCompile(`://[^\s/]*@`)
	separator    = regexp.MustCompile("[\\s\\v\\p{Z}\\x{feff}\"'`,;=\\\\]+")
	// Bytes as Go writes them, `[104 117]`, and as JavaScript does, `[104,117]` or `{"0":104,"1":117}`.
	numbers = regexp.MustCompile(`(?:"\d{1,9}":\s*)?\b\d{1,3}(?:(?:\s*,\s*|\s+)(?:"\d{1,9}":\s*)?\b\d{1,3}\b){7,}`)
	index   = regexp.MustCompile(`"\d{1,9}":`)
	number  = regexp.MustCompile(`\d{1,3}`)
	// What may hold more than a value: the whole Secret, a file, or a user with a password.
	encoded = regexp.MustCompile(`[\w+/-]{11,}={0,2}`)
	inPath  = strings.NewReplacer("%24", "$", "%26", "&", "%2B", "+", "%3A", ":", "%3D", "=", "%40", "@")
	// Signs that encodeURIComponent of JavaScript leaves as they are.
	inComponent = strings.NewReplacer("%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*")
	toStandard  = strings.NewReplacer("-", "+", "_", "/", "=", "")
)

// withoutSecrets is a text without the pieces in it; they are ordered, the longest first, as one may hold another.
func withoutSecrets(text string, pieces []string) string {
	if len(pieces) == 0 {
		return text
	}
	for _, piece := range pieces {
		text = strings.ReplaceAll(text, piece, hidden)
	}
	unless := func(written string, meant []byte) string {
		for _, piece := range pieces {
			if bytes.Contains(meant, []byte(piece)) {
				return hidden
			}
		}
		return written
	}
	text = numbers.ReplaceAllStringFunc(text, func(list string) string { return unless(list, bytesIn(list)) })
	return encoded.ReplaceAllStringFunc(text, func(word string) string {
		for _, meant := range decodingsOf(word) {
			if unless(word, meant) == hidden {
				return hidden
			}
		}
		return word
	})
}

func bytesIn(list string) []byte {
	meant := []byte{}
	for _, text := range number.FindAllString(index.ReplaceAllString(list, ""), -1) {
		value, _ := strconv.Atoi(text)
		meant = append(meant, byte(value)) //nolint:gosec // what is no byte is no part of a secret
	}
	return meant
}

// decodingsOf decodes a word that may begin with something else, such as the path before it.
func decodingsOf(word string) [][]byte {
	standard := toStandard.Replace(word)
	all := [][]byte{}
	for offset := range 4 {
		text := standard[offset:]
		if len(text)%4 == 1 {
			text = text[:len(text)-1]
		}
		if meant, err := base64.RawStdEncoding.DecodeString(text); err == nil {
			all = append(all, meant)
		}
	}
	return all
}

// piecesOf is everything of a Secret that must not be shown, the longest first. The manager has the same rules
// (pkg/driver/without-secrets.ts), by the same table of cases (testdata/secrets.json).
func piecesOf(data map[string][]byte) []string {
	pieces := map[string]int{}
	for name, content := range data {
		value := strings.TrimSpace(string(content))
		if public.MatchString(name) && !private.MatchString(name) && !withPassword.MatchString(value) {
			continue
		}
		for _, form := range formsOf(value, content) {
			if utf8.RuneCountInString(form) >= shortestValue {
				pieces[form] = 1
			}
		}
		for _, word := range separator.Split(value, -1) {
			isAddress := strings.Contains(word, "://") && !strings.Contains(word, "@")
			if utf8.RuneCountInString(word) >= shortestWord && !isAddress {
				pieces[word] = 1
			}
		}
	}
	return longestFirst(pieces)
}

// formsOf is a value as programs write it: as it is, in JSON, in base64 (with padding or without, for URLs or not), in hex, in a URL, in a
// form.
func formsOf(value string, content []byte) []string {
	plain := jsonOf(value, false)
	inForm := url.QueryEscape(value)
	inQuery := strings.ReplaceAll(inForm, "+", "%20")
	inHex := hex.EncodeToString(content)
	forms := []string{
		value,
		plain,
		jsonOf(value, true),
		asciiOf(plain),
		base64.StdEncoding.EncodeToString(content),
		base64.RawStdEncoding.EncodeToString(content),
		base64.RawURLEncoding.EncodeToString(content),
		inHex,
		strings.ToUpper(inHex),
	}
	for _, form := range []string{inForm, inQuery, inComponent.Replace(inQuery), inPath.Replace(inQuery)} {
		forms = append(forms, form, withLowerCodes(form))
	}
	return forms
}

// withLowerCodes has the codes of an escaped text, such as %2F, in lower case. A regular expression takes seconds for user data of megabytes.
func withLowerCodes(escaped string) string {
	lower := []byte(escaped)
	for at := 2; at < len(lower); at++ {
		if lower[at-2] != '%' {
			continue
		}
		for i := at - 1; i <= at; i++ {
			if 'A' <= lower[i] && lower[i] <= 'F' {
				lower[i] += 'a' - 'A'
			}
		}
	}
	return string(lower)
}

// jsonOf is a text in JSON without the quotes around it, with or without the signs of HTML as Go escapes them.
func jsonOf(value string, isForHTML bool) string {
	text := &bytes.Buffer{}
	encoder := json.NewEncoder(text)
	encoder.SetEscapeHTML(isForHTML)
	_ = encoder.Encode(value) // a string
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(text.String()), `"`), `"`)
}

// asciiOf escapes what is not ASCII, as Python does it in JSON.
func asciiOf(text string) string {
	escaped := strings.Builder{}
	for _, sign := range text {
		if sign <= 0x7f {
			escaped.WriteRune(sign)
			continue
		}
		for _, unit := range utf16.Encode([]rune{sign}) {
			fmt.Fprintf(&escaped, `\u%04x`, unit)
		}
	}
	return escaped.String()
}
