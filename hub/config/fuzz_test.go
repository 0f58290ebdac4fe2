package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// FuzzConfig looks for a file that makes the configuration panic, take long, or take a value that its rules refuse.
func FuzzConfig(f *testing.F) {
	f.Add("hub:\n  namespace: plimsoll\nclusters: {qps: 5, allowedNetworks: [10.0.0.0/8]}\n", "PLIMSOLL_CLUSTERS_QPS=7")
	f.Add("spot:\n  windows: &a [*a]\n", "PLIMSOLL_SPOT_MAXMOVES=10%")
	f.Add("a: &a [1]\nb: &b [*a, *a]\nc: [*b, *b]\n", "")
	f.Add("--- {}\n--- {}\n", "PLIMSOLL_=")
	f.Add("clusters: {burst: 1e400, warmTimeout: 9223372036854775807ns}", "PLIMSOLL_SPOT_WORKLOADKINDS=[{}]")
	path := filepath.Join(f.TempDir(), "hub.yaml")
	f.Fuzz(func(t *testing.T, file, variable string) {
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		config, err := Load(path, []string{variable})
		if took := time.Since(began); took > 10*time.Second {
			t.Fatalf("it took %s", took)
		}
		if err == nil {
			if problems := config.check(); len(problems) > 0 {
				t.Fatalf("it was taken, and is wrong: %v", problems)
			}
		} else if strings.TrimSpace(err.Error()) == "" {
			t.Fatal("an error without words")
		}
	})
}
