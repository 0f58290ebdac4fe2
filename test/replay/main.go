package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/replay"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "replay:", err)
		os.Exit(1)
	}
}

func run() error {
	traces := flag.String("traces", "", "folders with traces, by commas")
	out := flag.String("out", "build/replay.json", "file for the figures")
	replicas := flag.Int("n", 4, "replicas that are wanted")
	ratio := flag.Float64("ratio", 3, "price of on-demand, in prices of spot")
	refusal := flag.Int64("refusal", 10, "seconds until it is known that spot has no room")
	start := flag.Int64("start", 0, "seconds that a replica takes to be ready; 0: the three scenarios")
	notice := flag.Int64("notice", 0, "seconds of notice; read with -start only")
	leave := flag.Bool("leave-out", true, "replay with each zone, and each third of the days, left out")
	prices := flag.Bool("prices", true, "count prices over time where the traces have them")
	aged := flag.Bool("ages", false, "replay our policy at several availabilities as well, as it is and with the ages of all zones known")
	foretold := flag.Bool("foretold", false, "count what it comes to if losses are foretold as well as they can be in hindsight")
	plots := flag.String("plots", filepath.Join("build", "replay"), "folder for plots over time; empty: none")
	generate := flag.String("generate", "", "write a synthetic trace into this folder, and replay nothing")
	made := replay.Made{Regions: 3, Zones: 3, Most: 4, Days: 30}
	flag.Uint64Var(&made.Seed, "seed", 1, "seed of the synthetic trace: the same trace from the same seed")
	flag.Parse()
	if *generate != "" {
		return replay.Generate(made).Save(*generate)
	}

	found, err := replay.FindTraces(strings.FieldsFunc(*traces, func(r rune) bool { return r == ',' || r == ' ' }))
	if err != nil {
		return err
	}
	settings := []replay.Setting{{Start: 120, Notice: 120}, {Start: 240, Notice: 30}, {Start: 240}}
	if *start > 0 {
		settings = []replay.Setting{{Start: *start, Notice: *notice}}
	}
	var rows []replay.Row
	for _, t := range found {
		if !*prices {
			t = t.WithoutPrices()
		}
		for _, s := range settings {
			s.Replicas, s.Ratio, s.Refusal = *replicas, *ratio, *refusal
			compared, curves := replay.Compare(t, s)
			rows = append(rows, compared...)
			if *plots != "" {
				if _, err := Draw(*plots, t, s, curves); err != nil {
					return err
				}
			}
			if *aged {
				rows = append(rows, replay.Aged(t, s)...)
			}
			if *foretold {
				rows = append(rows, replay.Foretold(t, s, compared)...)
			}
			if *leave {
				rows = append(rows, replay.LeaveOut(t, s)...)
			}
		}
	}
	replay.Print(os.Stdout, rows)
	return write(*out, rows)
}

func write(file string, rows []replay.Row) error {
	text, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
