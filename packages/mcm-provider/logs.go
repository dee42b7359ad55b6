package mcmprovider

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"sync"

	"k8s.io/klog/v2"
)

// verbosity of klog by level of this program. Providers write a line about each request at 3.
var verbosity = map[string]int{"error": 0, "warn": 0, "info": 2, "debug": 5}

// startLogs writes JSON lines: those of this program, and those that the provider writes with klog. Neither has secrets of calls that run.
// A provider that calls klog.Fatal would end all other calls with its own: it panics instead.
func startLogs(to io.Writer, level string, secrets *secrets) error {
	var least slog.Level
	if err := least.UnmarshalText([]byte(level)); err != nil {
		return err
	}
	if least <= slog.LevelInfo {
		least = slog.Level(-verbosity[level]) // which is that of klog.V
	}
	slog.SetDefault(slog.New(slog.NewJSONHandler(to, &slog.HandlerOptions{
		Level: least,
		ReplaceAttr: func(_ []string, attribute slog.Attr) slog.Attr {
			switch attribute.Value.Kind() {
			case slog.KindString:
				attribute.Value = slog.StringValue(secrets.clean(attribute.Value.String()))
			case slog.KindAny:
				value := attribute.Value.Any()
				if written, isLevel := value.(slog.Level); isLevel {
					return slog.String(attribute.Key, levelOf(written).String())
				}
				text, written := fmt.Sprint(value), asWritten(value)
				if secrets.clean(text) != text || secrets.clean(written) != written {
					attribute.Value = slog.StringValue(secrets.clean(text))
				}
			}
			return attribute
		},
	})))
	klog.SetSlogLogger(slog.Default())
	klog.OsExit = func(code int) { panic("the provider ended with klog, exit code " + strconv.Itoa(code)) }
	var klogLevel klog.Level
	return klogLevel.Set(strconv.Itoa(verbosity[level]))
}

// levelOf rounds a level of klog.V to one of this program.
func levelOf(level slog.Level) slog.Level {
	switch {
	case level <= slog.LevelDebug:
		return slog.LevelDebug
	case level < slog.LevelInfo:
		return slog.LevelInfo
	default:
		return level
	}
}

// asWritten is a value as the handler writes it: it follows pointers, of which text shows only the address.
func asWritten(value any) (text string) {
	defer func() {
		if recover() != nil {
			text = "" // the handler writes as much
		}
	}()
	written, _ := json.Marshal(value)
	return string(written)
}

// secrets of the calls that run.
type secrets struct {
	mu sync.RWMutex
	// Calls in which a piece must not be shown.
	calls map[string]int
	// The same pieces, the longest first.
	pieces []string
}

// hide keeps the contents of a call's Secret out of all log lines until what it returns is called.
func (s *secrets) hide(data map[string][]byte) (show func()) {
	pieces := piecesOf(data)
	s.count(pieces, 1)
	return func() { s.count(pieces, -1) }
}

func (s *secrets) count(pieces []string, by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls == nil {
		s.calls = map[string]int{}
	}
	before := len(s.calls)
	for _, piece := range pieces {
		if s.calls[piece] += by; s.calls[piece] == 0 {
			delete(s.calls, piece)
		}
	}
	if by > 0 || len(s.calls) != before {
		s.pieces = longestFirst(s.calls)
	}
}

func (s *secrets) clean(text string) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return withoutSecrets(text, s.pieces)
}

func longestFirst(pieces map[string]int) []string {
	sorted := make([]string, 0, len(pieces))
	for piece := range pieces {
		sorted = append(sorted, piece)
	}
	slices.SortFunc(sorted, func(a, b string) int { return len(b) - len(a) })
	return sorted
}
