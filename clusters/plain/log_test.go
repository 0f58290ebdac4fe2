package plain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// refusing is a sink that refuses long lines and those that are no JSON.
type refusing struct {
	t     *testing.T
	most  int
	lines []map[string]any
}

func (r *refusing) Write(line []byte) (int, error) {
	read := map[string]any{}
	if err := json.Unmarshal(line, &read); err != nil || len(line) > r.most || bytes.Count(line, []byte("\n")) != 1 {
		r.t.Errorf("a line of %d bytes, %v: %.200s", len(line), err, line)
	}
	r.lines = append(r.lines, read)
	return len(line), nil
}

func refusingLog(t *testing.T, most int) (*slog.Logger, *refusing) {
	to := &refusing{t: t, most: most}
	return Log(slog.New(slog.NewJSONHandler(to, &slog.HandlerOptions{Level: slog.LevelDebug}))), to
}

// told has methods that slog calls.
type told struct{ text string }

func (s told) LogValue() slog.Value { return slog.AnyValue(errors.New(s.text)) }

func TestWhateverIsLoggedIsBoundedAndPlain(t *testing.T) {
	long := strings.Repeat("x\x1b\n\u202e", 1<<16)
	many := make([]any, 0, 2000)
	for i := range 1000 {
		many = append(many, fmt.Sprint(i), long)
	}
	log, to := refusingLog(t, maxAttributes*(maxValue+100))
	log.Info(long)
	log.Info("", "error", errors.New(long), "text", long, "bytes", []byte(long), "value", told{long}, "list", []string{long, long})
	log.Info("", slog.Group("a", slog.Group("b", "c", long)), long, 1)
	log.Info("", many...)
	log.With("member", long).WithGroup(long).Info("", "a", long)
	log.Error("", "stack", strings.Repeat("frame\n", 1<<16))
	for _, line := range to.lines {
		visit(line, func(text string) {
			if len(text) > maxStack || strings.ContainsAny(text, "\x1b\u202e") {
				t.Errorf("%d bytes: %.80q", len(text), text)
			}
		})
	}
	if n := len(to.lines); n != 6 {
		t.Errorf("%d lines", n)
	}
}

func visit(value any, each func(string)) {
	switch of := value.(type) {
	case string:
		each(of)
	case map[string]any:
		for key, inside := range of {
			each(key)
			visit(inside, each)
		}
	case []any:
		for _, inside := range of {
			visit(inside, each)
		}
	}
}

func TestNumbersTimesAndGroupsStayWhatTheyAre(t *testing.T) {
	log, to := refusingLog(t, 1<<10)
	log.Info("m", "n", 7, "d", time.Second, "yes", true, slog.Group("g", "f", 0.5), "level", slog.LevelWarn, "none", nil)
	is := to.lines[0]
	if is["n"] != 7.0 || is["d"] != 1e9 || is["yes"] != true || is["g"].(map[string]any)["f"] != 0.5 || is["level"] != "WARN" {
		t.Errorf("%v", is)
	}
}

func TestASourceWritesSoManyLinesASecondAndOthersGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, to := refusingLog(t, 1<<10)
		for range 10 * LineBurst {
			log.Warn("noise", "member", "mallory")
			log.With("member", "mallory").Error("noise")
			log.Info("API call", "user", "", "remote", "10.0.0.1:5")
		}
		log.Warn("heard", "member", "alpha")
		log.Warn("heard", "user", "alice", "remote", "10.0.0.1:7")
		for range 2 * LineBurst {
			log.Info("of the hub")
			log.Debug("asked for", "member", "mallory")
		}
		count := map[any]int{}
		for _, line := range to.lines {
			count[line["msg"]]++
		}
		if count["noise"] != LineBurst || count["API call"] != LineBurst || count["heard"] != 2 || count["of the hub"] != 2*LineBurst || count["asked for"] != 2*LineBurst {
			t.Errorf("written: %v", count)
		}
		time.Sleep(time.Second)
		log.Warn("again", "member", "mallory")
		if last := to.lines[len(to.lines)-1]; last["leftOut"] != float64(20*LineBurst-LineBurst) {
			t.Errorf("the last line is %v", last)
		}
	})
}

func TestSourcesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, to := refusingLog(t, 1<<10)
		for i := range maxSources + 3*LineBurst {
			log.Info("", "user", fmt.Sprint(i))
		}
		if n := len(to.lines); n != maxSources+LineBurst {
			t.Errorf("%d lines of %d users", n, maxSources+3*LineBurst)
		}
		h := log.Handler().(*handler)
		if n := len(h.sources.known); n != maxSources {
			t.Errorf("%d sources are known", n)
		}
		time.Sleep(time.Minute)
		to.lines = nil
		log.Info("", "user", "new")
		if len(to.lines) != 1 || len(h.sources.known) != 1 {
			t.Errorf("%d lines, %d sources are known after a minute", len(to.lines), len(h.sources.known))
		}
	})
}
